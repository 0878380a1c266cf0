"""Builds the stream and the federation that a configuration describes."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from nashcast import seeds
from nashcast.agents.agent import Agent
from nashcast.agents.arrangement import BASELINES, JOINT, RESERVED, distinct
from nashcast.agents.lookback.paper_agent import PaperAgent
from nashcast.config.config import FEDERATION, AgentConfig, Config, StreamConfig
from nashcast.config.paper_settings import PaperSettings
from nashcast.config.run_encoders import encoder_options, function_file, make_encoder
from nashcast.config.run_schema import Place
from nashcast.datasets import Stream
from nashcast.datasets.catalog import entry, open_stream
from nashcast.encoders import Encoder
from nashcast.errors import InvalidInput
from nashcast.federation.default import default_agents
from nashcast.federation.federation import Federation
from nashcast.federation.incoming.objects import object_columns
from nashcast.federation.paper import paper_federation
from nashcast.games.joint import JointGame
from nashcast.suggest import near

Maker = Callable[[], Federation]
Wrap = Callable[[str, Encoder], Encoder]


def build(config: Config) -> tuple[Stream, Maker]:
    """The stream, and a function that makes a fresh federation for it each time it is called."""
    stream = open_config_stream(config)
    check_fit(config, stream.inputs.shape[1], stream.targets.shape[1], stream.input_names)
    return stream, federation_maker(config, stream)


def check_fit(config: Config, x_dim: int, y_dim: int, input_names: Sequence[str] = ()) -> None:
    """Check that every encoder accepts inputs and targets of these sizes; the error names the table at fault."""
    for i, agent in enumerate(config.agents):
        place = Place(config.source, "agents").item(i)
        inputs = input_places(place, agent, input_names)
        if inputs is not None and max(inputs) >= x_dim:
            remedy = f"Inputs have {x_dim} numbers; the first place is 0."
            raise place.at("inputs").refused(f"place {max(inputs)}", remedy)
        try:
            encoder = make_encoder(agent.encoder, agent.options, 0, config.folder)
            if getattr(encoder, "objects", ()):
                remedy = "Inputs are numbers here: pass its embedding, or `nashcast run` a table with its column."
                raise InvalidInput("encoder", f"{agent.encoder!r}, which reads a text or a picture", remedy)
            encoder.build(x_dim if inputs is None else len(inputs), y_dim)
        except InvalidInput as error:
            raise place.moved(error) from None


class OnStream(Protocol):
    """The configuration of a run on a stream, from a file in `folder`."""

    @property
    def source(self) -> str: ...
    @property
    def folder(self) -> Path: ...
    @property
    def stream(self) -> StreamConfig: ...
    @property
    def steps(self) -> int | None: ...


def open_config_stream(config: OnStream) -> Stream:
    """The stream, cut to the configured number of steps."""
    place = Place(config.source, "stream")
    options = dict(config.stream.options)
    if isinstance(options.get("path"), str):
        options["path"] = str(config.folder / Path(options["path"]).expanduser())
    try:
        stream = open_stream(config.stream.name, **options)
    except InvalidInput as error:
        known = error.argument in entry(config.stream.name).options
        raise place.moved(error) if known else Place(config.source).moved(error) from None
    if config.steps is None:
        return stream
    if config.steps > len(stream.targets):
        remedy = f"The stream has {len(stream.targets)} steps: pass at most that many."
        raise Place(config.source, "steps").refused(str(config.steps), remedy)
    first = slice(0, config.steps)
    return stream._replace(
        inputs=stream.inputs[first], targets=stream.targets[first], dates=stream.dates[first]
    )  # fmt: skip


def stream_digest(stream: Stream) -> str:
    """A digest of the stream's numbers."""
    digest = hashlib.sha256()
    for array in (stream.inputs, stream.targets, stream.start):
        digest.update(f"{array.shape} {array.dtype}".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()[:24]


def federation_maker(config: Config, stream: Stream) -> Maker:
    """As `maker`, for a recorded stream."""
    return maker(config, stream.targets.shape[1], start=stream.start, input_names=stream.input_names)


def maker(
    config: Config, y_dim: int, *, input_names: Sequence[str] = (), wrap: Wrap | None = None, **settings: Any
) -> Maker:
    """Make the encoders once; each call of the returned function makes an untrained federation.

    input_names: names of the input columns, if any.   settings: settings of the federation that no file has.
    wrap: called with the name of each encoder's family and the encoder; its result replaces the encoder.
    """
    if config.paper is not None:
        return _paper_maker(config, config.paper, y_dim, settings, wrap)
    agents = _agents(config, input_names, wrap)
    own = {name: getattr(config, name) for name in FEDERATION} | {"game": JointGame() if config.game else None}
    return lambda: Federation(agents, y_dim=y_dim, seed=config.seed, **own, **settings)


def _agents(config: Config, input_names: Sequence[str], wrap: Wrap | None = None) -> list[Agent]:
    if not config.agents:
        return default_agents(seed=config.seed)
    place = Place(config.source, "agents")
    owners = [i for i, agent in enumerate(config.agents) for _ in range(agent.count)]
    parts = zip(owners, agent_names(config), _encoders(config, wrap), strict=True)
    inputs = [input_places(place.item(i), agent, input_names) for i, agent in enumerate(config.agents)]
    return [Agent(encoder, name=name, inputs=inputs[i]) for i, name, encoder in parts]


def _paper_maker(
    config: Config, paper: PaperSettings, y_dim: int, settings: Mapping[str, Any], wrap: Wrap | None
) -> Maker:
    decoders = [agent.decoder for agent in config.agents for _ in range(agent.count)]
    parts = list(zip(agent_names(config), _encoders(config, wrap), decoders, strict=True))

    def make() -> Federation:
        agents = [PaperAgent(encoder, name=name, **own) for name, encoder, own in parts]
        return paper_federation(
            agents, game=paper.game, anchored=paper.anchored, ridge=paper.ridge, budget=paper.budget,
            mixing=paper.mixing, y_dim=y_dim, seed=config.seed, **settings,
        )  # fmt: skip

    return make


def _encoders(config: Config, wrap: Wrap | None = None) -> list[Encoder]:
    """One encoder for each agent, each with its own seed."""
    found: list[Encoder] = []
    for agent in config.agents:
        for k in range(agent.count):
            given = agent.options.get("seed")
            seed = seeds.key(config.seed, "encoder", len(found)) if given is None else given + k
            options = {name: value for name, value in agent.options.items() if name != "seed"}
            encoder = make_encoder(agent.encoder, options, seed, config.folder)
            found.append(encoder if wrap is None else wrap(agent.encoder, encoder))
    return found


def text_columns(config: Config) -> tuple[str, ...]:
    """The columns of texts and pictures that the agents read."""
    return object_columns([Agent(encoder) for encoder in _encoders(config)])


def input_places(place: Place, agent: AgentConfig, names: Sequence[str]) -> list[int] | None:
    """Positions of the inputs that an agent may see; a name stands for all lags of its column."""
    if agent.inputs is None:
        return None
    places: list[int] = []
    for i, one in enumerate(agent.inputs):
        if isinstance(one, int):
            places.append(one)
            continue
        found = [at for at, name in enumerate(names) if name == one]
        if not found:
            known = (
                f"Pass some of {', '.join(dict.fromkeys(names))}."
                if names
                else "Inputs have no names here: pass places."
            )
            raise place.at("inputs").item(i).refused(repr(one), f"{near(one, names)}{known}")
        places += found
    return places


def files_of(config: Config) -> dict[str, Path]:
    """Files that encoders are loaded from, by their name in the settings; their contents count as settings."""
    found = {}
    for agent in config.agents:
        for name, option in encoder_options(agent.encoder).items():
            value = agent.options.get(name)
            if value is None or option.kind not in ("Path", "Function"):
                continue
            path = config.folder / value if option.kind == "Path" else function_file(value, config.folder)
            if path.is_file():
                found[value] = path
    return found


def agent_names(config: Config) -> list[str]:
    """One name for each agent; equal names are numbered."""
    if not config.agents:
        return [agent.name for agent in default_agents()]
    plain = [agent.name or agent.encoder.replace("_", " ") for agent in config.agents for _ in range(agent.count)]
    return distinct(plain, RESERVED if config.paper is None else ())


def member_names(config: Config) -> list[str]:
    """Names of the forecasts that the federation mixes: the agents', persistence and the joint game's."""
    if config.paper is not None:
        return agent_names(config)
    return [BASELINES, *agent_names(config), *([JOINT] if config.game else [])]


def without_game(config: Config, *, anchored: bool = False) -> Config:
    """The same agents without the game, for comparison. anchored: applies to the paper's agents."""
    if config.paper is None:
        return replace(config, game=False)
    return replace(config, game=False, paper=replace(config.paper, game=None, anchored=anchored))
