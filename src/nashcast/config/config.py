"""A federation described in a file: read and checked once, then stored as frozen values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nashcast.agents.agent import Agent
from nashcast.agents.lookback.paper_agent import PaperAgent
from nashcast.config.config_changes import changed, read_toml
from nashcast.config.paper_settings import AGENT, PaperSettings, read_paper
from nashcast.config.run_encoders import ENCODERS, encoder_options, make_encoder
from nashcast.config.run_schema import Place, options_of, read, read_options, refuse_unknown, table
from nashcast.datasets.catalog import REQUIRED, entry
from nashcast.encoders import Trend
from nashcast.errors import InvalidInput
from nashcast.federation.federation import Federation
from nashcast.suggest import near

# Settings of `Federation` other than its agents and its game.
_IN_CODE_ONLY = ("agents", "game", "x_dim", "y_dim", "start", "seed", "coverages", "agent_intervals", "history")
FEDERATION = options_of(Federation, _IN_CODE_ONLY)
# Keys by table, without those of each encoder and of each stream.
TOP = ("name", "seed", "steps", "stream", *FEDERATION, "game", "agents", "paper")
# Read by `nashcast sweep`, ignored by `nashcast run`.
OF_SWEEPS = ("sweep", "grid")
# Read by `nashcast serve`, ignored by the other commands, which take the stream from the file.
OF_SERVICE = ("serve",)
DEFAULT = "default"


@dataclass(frozen=True)
class StreamConfig:
    """name: a stream of the catalogue.   options: its options."""

    name: str
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class AgentConfig:
    """`count` agents that differ in their seeds only. inputs: the inputs they may see, None for all.

    decoder: ridge, decay, window and forgetting of an agent of the paper's federation; empty for others.
    """

    count: int
    name: str | None
    encoder: str
    options: Mapping[str, Any]
    inputs: tuple[int | str, ...] | None = None
    decoder: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Config:
    """One federation on one stream. agents: none for the default ones.   paper: settings of the paper's federation.

    source, folder: the settings file, and the folder its paths are relative to.
    """

    name: str
    seed: int
    steps: int | None
    stream: StreamConfig
    horizon: int
    season: int | None
    mixing: str
    game: bool
    agents: tuple[AgentConfig, ...]
    paper: PaperSettings | None = None
    source: str = field(default="settings", compare=False)
    folder: Path = field(default=Path(), compare=False)

    def settings(self) -> dict[str, Any]:
        """The whole configuration in plain values; `parse` reads it back unchanged."""
        top: dict[str, Any] = {"name": self.name, "seed": self.seed}
        top |= {} if self.steps is None else {"steps": self.steps}
        top["stream"] = {"name": self.stream.name, **self.stream.options}
        if self.paper is None:
            own = {name: getattr(self, name) for name in FEDERATION}
            top |= {name: value for name, value in own.items() if value is not None} | {"game": self.game}
        else:
            top["paper"] = self.paper.table()
        return top | {"agents": [_agent_settings(agent) for agent in self.agents] or DEFAULT}


def _agent_settings(agent: AgentConfig) -> dict[str, Any]:
    own = {"count": agent.count, "name": agent.name, "encoder": agent.encoder, **agent.options}
    own |= {"inputs": agent.inputs, **agent.decoder}
    return {name: _listed(value) for name, value in own.items() if value is not None}


def _listed(value: Any) -> Any:
    return [_listed(part) for part in value] if isinstance(value, tuple) else value


def load(path: str | Path, changes: Mapping[str, Any] | None = None) -> Config:
    """The federation a TOML file describes. changes: values by dotted name that replace the file's, see `assign`."""
    return parse(changed(read_toml(path), changes or {}, str(path)), source=str(path), folder=Path(path).parent)


def load_live(path: str | Path | None, changes: Mapping[str, Any] | None = None) -> Config:
    """The federation of a file, for a stream from another source; without a file, the default federation."""
    document = {} if path is None else read_toml(path)
    source, folder = ("settings", Path()) if path is None else (str(path), Path(path).parent)
    return parse(changed(document, changes or {}, source), source=source, folder=folder, live=True)


def parse(
    document: Mapping[str, Any], *, source: str = "settings", folder: Path = Path(), live: bool = False
) -> Config:
    """Check a document as `tomllib` reads it: every key is known, every value has its type and is in its range.

    live: the stream comes from another source: the file's own is ignored, and its agents may be left out.
    """
    top = Place(source)
    refuse_unknown(top, document, (*TOP, *OF_SWEEPS, *OF_SERVICE), "A federation file")
    game = _plays(top.at("game"), document.get("game", True))
    paper = read_paper(top.at("paper"), document["paper"], game) if "paper" in document else None
    agents = document.get("agents", DEFAULT if live else None)
    return Config(
        name=read(top.at("name"), document.get("name", Path(source).stem), "str"),
        seed=whole(top.at("seed"), document.get("seed", 0), least=0),
        steps=None if "steps" not in document else whole(top.at("steps"), document["steps"], least=1),
        stream=StreamConfig("live") if live else read_stream(top.at("stream"), document.get("stream")),
        **_federation(top, document, paper),
        game=game if paper is None else paper.game is not None,
        agents=_agents(top.at("agents"), agents, paper, folder),
        paper=paper,
        source=source,
        folder=folder,
    )


def whole(place: Place, value: Any, least: int) -> int:
    if read(place, value, "int") < least:
        raise place.refused(str(value), f"Pass a whole number ≥ {least}.")
    return value


def read_stream(place: Place, value: Any) -> StreamConfig:
    if value is None:
        raise place.refused("nothing", 'Add a table [stream] with name = "…": a stream of the catalogue, or "file".')
    options = table(place, value)
    if "name" not in options:
        raise place.at("name").refused("nothing", 'Add name = "…": a stream of the catalogue, or "file".')
    name = read(place.at("name"), options.pop("name"), "str")
    try:
        known = entry(name).options
    except InvalidInput as error:
        raise place.at("name").moved(error, below=False) from None
    refuse_unknown(place, options, known, f"The stream {name!r}")
    for option, default in known.items():
        if default is REQUIRED and option not in options:
            raise place.at(option).refused("nothing", f"Add {option} = … here: the stream {name!r} needs it.")
    return StreamConfig(name, options)


def _plays(place: Place, value: Any) -> bool:
    if isinstance(value, Mapping):
        raise place.refused("a table", "Pass true or false. The paper's look-back game is set in the table [paper].")
    return read(place, value, "bool")


def _federation(top: Place, document: Mapping[str, Any], paper: PaperSettings | None) -> dict[str, Any]:
    given = {name: document[name] for name in FEDERATION if name in document}
    if paper is not None and given:
        name = next(iter(given))
        remedy = "Write it in the table [paper]." if name == "mixing" else "Leave it out, or leave out [paper]."
        raise top.at(name).refused("a key that is not valid with [paper]", remedy)
    values = read_options(top, given, FEDERATION)
    try:
        Federation([Agent(Trend())], **values)
    except InvalidInput as error:
        raise top.moved(error) from None
    return values


def _agents(place: Place, value: Any, paper: PaperSettings | None, folder: Path) -> tuple[AgentConfig, ...]:
    if value is None or value == []:
        remedy = 'Add at least one table [[agents]] with encoder = "…", or agents = "default".'
        raise place.refused("nothing", remedy)
    if value == DEFAULT:
        if paper is not None:
            raise place.refused("the default agents with [paper]", "Add tables [[agents]], or leave out [paper].")
        return ()
    if not isinstance(value, list):
        raise place.refused(
            "one table" if isinstance(value, Mapping) else repr(value), "Write [[agents]], twice [ and ]."
        )
    return tuple(_agent(place.item(i), part, paper, folder) for i, part in enumerate(value))


def _agent(place: Place, value: Any, paper: PaperSettings | None, folder: Path) -> AgentConfig:
    given = table(place, value)
    names = ", ".join(ENCODERS)
    if "encoder" not in given:
        # The valid keys depend on the encoder, so a misspelt `encoder` is checked separately.
        meant = next((name for name in given if near(name, ["encoder"])), None)
        got = "nothing" if meant is None else f"nothing, but a key {meant!r}"
        raise place.at("encoder").refused(got, f"Pass one of {names}.")
    kind = read(place.at("encoder"), given["encoder"], "str")
    if kind not in ENCODERS:
        raise place.at("encoder").refused(repr(kind), f"{near(kind, ENCODERS)}Pass one of {names}.")
    own = encoder_options(kind)
    _refuse_of_paper(place, given, own, paper)
    known = ("count", "name", "encoder", "inputs", *(AGENT if paper else ()), *own)
    refuse_unknown(place, given, known, f"An agent with encoder = {kind!r}")
    options, decoder = read_options(place, given, own), read_options(place, given, AGENT) if paper else {}
    if options.get("seed") is not None:
        whole(place.at("seed"), options["seed"], least=0)
    name = None if "name" not in given else read(place.at("name"), given["name"], "str")
    count = whole(place.at("count"), given.get("count", 1), least=1)
    inputs = _inputs(place.at("inputs"), given["inputs"]) if "inputs" in given else None
    if paper is not None and inputs is not None:
        raise place.at("inputs").refused("a key of the joint federation", "Leave it out, or leave out [paper].")
    try:
        encoder = make_encoder(kind, options, 0, folder)
        if paper is None:
            Agent(encoder, inputs=inputs)
        else:
            PaperAgent(encoder, **decoder)
    except InvalidInput as error:
        raise place.moved(error) from None
    return AgentConfig(count, name, kind, options, inputs, decoder)


def _refuse_of_paper(place: Place, given: Mapping, own: Mapping, paper: PaperSettings | None) -> None:
    for name in given:
        if paper is None and name in AGENT and name not in own:
            remedy = "Leave it out: decoders find it themselves. Or add a table [paper]."
            raise place.at(name).refused("a key of the paper's agents", remedy)


def _inputs(place: Place, value: Any) -> tuple[int | str, ...]:
    if not isinstance(value, list | tuple) or not value:
        raise place.refused(repr(value), "Pass a list of places or names of inputs.")
    for i, one in enumerate(value):
        if isinstance(one, bool) or not isinstance(one, int | str):
            raise place.item(i).refused(repr(one), "Pass the place or the name of an input.")
    return tuple(value)
