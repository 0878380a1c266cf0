"""A federation described in a file: read, checked once, and from there on plain frozen values."""

from __future__ import annotations

import copy
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nashcast.agents.paper_agent import PaperAgent
from nashcast.encoders import Persistence
from nashcast.errors import InvalidInput
from nashcast.experiments.run_encoders import ENCODERS, encoder_options, make_encoder
from nashcast.experiments.run_schema import Place, options_of, read, read_options, refuse_unknown, table
from nashcast.federation.paper import LookbackGame, PaperFederation
from nashcast.streams.catalog import REQUIRED, entry
from nashcast.streams.suggest import near

# Keys by table, beside those of each encoder and of each stream. They are the parameters of what the table describes.
TOP = ("name", "seed", "steps", "stream", "federation", "game", "agents")
# Read by `nashcast sweep`, and left alone by `nashcast run`.
OF_SWEEPS = ("sweep", "grid")
# Read by `nashcast serve`, and left alone by the others. What it leaves alone: the stream comes from outside.
OF_SERVICE = ("serve",)
_IN_CODE_ONLY = ("deadline", "history", "transcript", "coverages", "agent_intervals")
FEDERATION = options_of(PaperFederation, ("agents", "game", "y_dim", "start", "seed", *_IN_CODE_ONLY))
GAME = options_of(LookbackGame)
AGENT = options_of(PaperAgent, ("encoder", "name", "share"))
# What says, set to false, that there is no game.
_SWITCHES = ("game", "game.lookback", "game.every", "game.placement")


@dataclass(frozen=True)
class StreamConfig:
    """name: of a stream in the catalogue.   options: what it takes."""

    name: str
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class AgentConfig:
    """`count` agents that differ in their seeds only."""

    count: int
    name: str | None
    encoder: str
    options: Mapping[str, Any]
    ridge: float
    decay: float
    window: int
    forgetting: float | None


@dataclass(frozen=True)
class Config:
    """One federation on one stream. source and folder: the file it came from, and where its paths start."""

    name: str
    seed: int
    steps: int | None
    stream: StreamConfig
    ridge: float
    budget: float
    anchored: bool
    mixing: str
    game: LookbackGame | None
    agents: tuple[AgentConfig, ...]
    source: str = field(default="settings", compare=False)
    folder: Path = field(default=Path(), compare=False)

    def settings(self) -> dict[str, Any]:
        """The whole description in plain values; `parse` reads it back as the same."""
        own = {name: getattr(self.game, name) for name in GAME} if self.game is not None else {}
        game = {name: value for name, value in own.items() if value is not None} or False
        top = {"name": self.name, "seed": self.seed} | ({} if self.steps is None else {"steps": self.steps})
        return top | {
            "stream": {"name": self.stream.name, **self.stream.options},
            "federation": {name: getattr(self, name) for name in FEDERATION},
            "game": game,
            "agents": [_agent_settings(agent) for agent in self.agents],
        }


def _agent_settings(agent: AgentConfig) -> dict[str, Any]:
    own = {"count": agent.count, "name": agent.name, "encoder": agent.encoder, **agent.options}
    own |= {name: getattr(agent, name) for name in AGENT}
    return {
        name: list(value) if isinstance(value, tuple) else value for name, value in own.items() if value is not None
    }


def load(path: str | Path, changes: Mapping[str, Any] | None = None) -> Config:
    """The federation a TOML file describes. changes: values by dotted name that replace the file's, see `assign`."""
    return parse(changed(read_toml(path), changes or {}, str(path)), source=str(path), folder=Path(path).parent)


def read_toml(path: str | Path) -> dict[str, Any]:
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise InvalidInput(
            "file", f"{path} ({error.strerror})", "Pass a TOML file that describes a federation."
        ) from None
    try:
        return tomllib.loads(content.decode())
    except UnicodeDecodeError as error:
        raise InvalidInput(
            str(path), f"bytes that are no UTF-8, from byte {error.start}", "Save it as UTF-8."
        ) from None
    except tomllib.TOMLDecodeError as error:
        raise InvalidInput(str(path), "text that is not TOML", f"{error}.") from None


def parse(
    document: Mapping[str, Any], *, source: str = "settings", folder: Path = Path(), live: bool = False
) -> Config:
    """A document as `tomllib` reads it, checked: every key is known, every value of its type and in its range.

    live: the stream comes from outside, so the file's own, if it has one, is left aside; and there may be no agents.
    """
    top = Place(source)
    hub = ("hub",) if live else ()
    refuse_unknown(top, document, (*TOP, *OF_SWEEPS, *OF_SERVICE, *hub), "A federation file")
    game = read_game(top.at("game"), document.get("game", False))
    federation = read_federation(top.at("federation"), document.get("federation", {}), game)
    return Config(
        name=read(top.at("name"), document.get("name", Path(source).stem), "str"),
        seed=whole(top.at("seed"), document.get("seed", 0), least=0),
        steps=None if "steps" not in document else whole(top.at("steps"), document["steps"], least=1),
        stream=StreamConfig("live") if live else read_stream(top.at("stream"), document.get("stream")),
        game=game,
        agents=() if live and not document.get("agents") else _agents(top.at("agents"), document.get("agents"), folder),
        source=source,
        folder=folder,
        **federation,
    )


def changed(document: Mapping[str, Any], changes: Mapping[str, Any], source: str = "settings") -> dict[str, Any]:
    """A copy with values replaced by dotted name. False for a key of the game, or for it, is no game at all."""
    result = copy.deepcopy(dict(document))
    no_game = any(value is False and path in _SWITCHES for path, value in changes.items())
    for path, value in changes.items():
        if not (no_game and path in _SWITCHES):
            assign(result, path, value, source)
    return {**result, "game": False} if no_game else result


def assign(document: dict[str, Any], path: str, value: Any, source: str = "settings") -> None:
    """Set `agents.ridge` (in every table of agents), `agents[0].ridge` (in one), `game.lookback`, `seed` and so on."""
    place = Place(source, path)
    parts = re.findall(r"([^.\[\]]+)(?:\[(\d+)\])?(?:\.|$)", path)
    if ".".join(name + (f"[{index}]" if index else "") for name, index in parts) != path or not path:
        raise place.refused("a name that cannot be read", "Write it as agents.ridge, agents[0].ridge or game.lookback.")
    targets: list[Any] = [document]
    for depth, (name, index) in enumerate(parts):
        last = depth == len(parts) - 1
        below = []
        for target in targets:
            if not isinstance(target, dict):
                raise place.refused(f"a key below {parts[depth - 1][0]}, which is no table", "Name a key of a table.")
            if last and not index:
                target[name] = copy.deepcopy(value)
                continue
            if name == "game" and target.get(name) is False:
                target[name] = {}
            found = target.setdefault(name, {})
            if index:
                if not isinstance(found, list) or int(index) >= len(found) or last:
                    count = len(found) if isinstance(found, list) else 0
                    raise place.refused(f"{name}[{index}]", f"Name a key of one of the {count} tables [[{name}]].")
                found = found[int(index)]
            below += found if isinstance(found, list) else [found]
        targets = below


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


def read_game(place: Place, value: Any) -> LookbackGame | None:
    if value is False:
        return None
    given = table(place, value)
    refuse_unknown(place, given, GAME, "A game")
    values = read_options(place, given, GAME)
    try:
        return LookbackGame(**values)
    except InvalidInput as error:
        raise place.moved(error) from None


def read_federation(place: Place, value: Any, game: LookbackGame | None) -> dict[str, Any]:
    given = table(place, value)
    refuse_unknown(place, given, FEDERATION, "The federation")
    values = read_options(place, given, FEDERATION)
    if values["anchored"] and game is not None:
        remedy = "Leave out the table [game], or set anchored = false: the game says where agents start."
        raise place.at("anchored").refused("true with a game", remedy)
    try:
        PaperFederation([PaperAgent(Persistence())], game=game, **values)
    except InvalidInput as error:
        raise place.moved(error) from None
    return values


def _agents(place: Place, value: Any, folder: Path) -> tuple[AgentConfig, ...]:
    if value is None or value == []:
        raise place.refused("nothing", 'Add at least one table [[agents]] with encoder = "…".')
    if not isinstance(value, list):
        raise place.refused(
            "one table" if isinstance(value, Mapping) else repr(value), "Write [[agents]], twice [ and ]."
        )
    return tuple(_agent(place.item(i), part, folder) for i, part in enumerate(value))


def _agent(place: Place, value: Any, folder: Path) -> AgentConfig:
    given = table(place, value)
    names = ", ".join(ENCODERS)
    if "encoder" not in given:
        # Which other keys belong here depends on the encoder, so a misspelt `encoder` is looked for by itself.
        meant = next((name for name in given if near(name, ["encoder"])), None)
        got = "nothing" if meant is None else f"nothing, but a key {meant!r}"
        raise place.at("encoder").refused(got, f"Pass one of {names}.")
    kind = read(place.at("encoder"), given["encoder"], "str")
    if kind not in ENCODERS:
        raise place.at("encoder").refused(repr(kind), f"{near(kind, ENCODERS)}Pass one of {names}.")
    own = encoder_options(kind)
    refuse_unknown(place, given, ("count", "name", "encoder", *AGENT, *own), f"An agent with encoder = {kind!r}")
    options, settings = read_options(place, given, own), read_options(place, given, AGENT)
    if options.get("seed") is not None:
        whole(place.at("seed"), options["seed"], least=0)
    name = None if "name" not in given else read(place.at("name"), given["name"], "str")
    count = whole(place.at("count"), given.get("count", 1), least=1)
    try:
        PaperAgent(make_encoder(kind, options, 0, folder), **settings)
    except InvalidInput as error:
        raise place.moved(error) from None
    return AgentConfig(count, name, kind, options, **settings)
