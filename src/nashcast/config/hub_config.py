"""The settings file of `nashcast hub`: a federation with remote agents."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from nashcast.config.config import OF_SERVICE, StreamConfig, read_stream, whole
from nashcast.config.config_changes import changed, read_toml
from nashcast.config.paper_settings import GAME, read_federation, read_game
from nashcast.config.run_schema import Place, read, refuse_unknown, show, table
from nashcast.federation.paper import LookbackGame

TOP = ("name", "seed", "steps", "stream", "federation", "game", "hub")
JOINT = "joint"
# Keys that switch the game off when set to false.
_SWITCHES = ("game", "game.lookback", "game.every", "game.placement")
HUB = ("folder", "agents", "broker", "certs", "deadline", "wait", "pace", "masked")


@dataclass(frozen=True)
class HubConfig:
    """folder: the federation's folder, made by `nashcast enroll create`.   agents: names, or None for all enrolled.

    broker: address of a running broker, or None to start one.   certs: if not those that the folder names.
    deadline: seconds for an agent's reply, or None to adapt it.   wait: seconds for agents before the first step.
    pace: minimum seconds between two steps.   masked: whether terms of a spread game reach the hub as sums only.
    joint: whether the joint game is played (default); else the paper's federation, with or without its game.
    """

    name: str
    seed: int
    steps: int | None
    stream: StreamConfig
    federation: Mapping[str, Any]
    game: LookbackGame | None
    hub: Path
    agents: tuple[str, ...] | None
    broker: str | None
    certs: Path | None
    deadline: float | None
    wait: float
    pace: float
    masked: bool
    joint: bool = False
    source: str = field(default="settings", compare=False)
    folder: Path = field(default=Path(), compare=False)

    def settings(self) -> dict[str, Any]:
        """The settings that determine a run's numbers, in plain values, without addresses, paths and timeouts."""
        game: Any = False if self.game is None else {name: getattr(self.game, name) for name in GAME}
        if self.joint:
            game = JOINT
        hub = {"agents": None if self.agents is None else list(self.agents), "masked": self.masked}
        return {
            "name": self.name, "seed": self.seed, "steps": self.steps,
            "stream": {"name": self.stream.name, **self.stream.options},
            "federation": dict(self.federation), "game": game, "hub": hub,
        }  # fmt: skip


def load(path: str | Path, changes: Mapping[str, Any] | None = None) -> HubConfig:
    """The hub's settings in a TOML file. changes: values by dotted name that replace the file's."""
    changes = changes or {}
    if any(value is False and name in _SWITCHES for name, value in changes.items()):
        changes = {name: value for name, value in changes.items() if name not in _SWITCHES} | {"game": False}
    return parse(changed(read_toml(path), changes, str(path)), source=str(path), folder=Path(path).parent)


def parse(document: Mapping[str, Any], *, source: str = "settings", folder: Path = Path()) -> HubConfig:
    top = Place(source)
    if isinstance(document.get("agents"), list):
        remedy = 'Name the agents in the table [hub]: agents = ["…"]. Their owners choose their encoders.'
        raise top.at("agents").refused("tables of agents", remedy)
    refuse_unknown(top, document, (*TOP, *OF_SERVICE), "A hub's file")
    joint = document.get("game", JOINT) in (JOINT, True)
    game = None if joint else read_game(top.at("game"), document["game"])
    read_settings = read_joint if joint else partial(read_federation, game=game)
    return HubConfig(
        name=read(top.at("name"), document.get("name", Path(source).stem), "str"),
        seed=whole(top.at("seed"), document.get("seed", 0), least=0),
        steps=None if "steps" not in document else whole(top.at("steps"), document["steps"], least=1),
        stream=read_stream(top.at("stream"), document.get("stream")),
        federation=read_settings(top.at("federation"), document.get("federation", {})),
        game=game,
        joint=joint,
        source=source,
        folder=folder,
        **read_hub(top.at("hub"), document.get("hub"), folder, game),
    )


def read_joint(place: Place, value: Any) -> dict[str, Any]:
    """The table [federation] with the joint game."""
    given = table(place, value)
    refuse_unknown(place, given, ("horizon", "season"), "A federation of the joint game")
    return {name: whole(place.at(name), given[name], least=1 + (name == "season")) for name in given}


def read_hub(place: Place, value: Any, folder: Path, game: LookbackGame | None) -> dict[str, Any]:
    """The table [hub]. folder: the folder its paths are relative to."""
    if value is None:
        raise place.refused("nothing", 'Add a table [hub] with folder = "…", made by `nashcast enroll create`.')
    given = table(place, value)
    refuse_unknown(place, given, HUB, "The hub")
    if "folder" not in given:
        raise place.at("folder").refused("nothing", "Add the folder that `nashcast enroll create` made.")
    deadline = given.get("deadline", "learned")
    masked = read(place.at("masked"), given.get("masked", False), "bool")
    if masked and (game is None or game.placement != "spread"):
        remedy = 'Set placement = "spread" in [game]; in the joint game the agents mask: --share joint.'
        raise place.at("masked").refused("true without a spread game", remedy)
    certs = given.get("certs")
    return {
        "hub": folder / Path(read(place.at("folder"), given["folder"], "str")).expanduser(),
        "agents": _names(place.at("agents"), given["agents"]) if "agents" in given else None,
        "broker": read(place.at("broker"), given["broker"], "str") if "broker" in given else None,
        "certs": None if certs is None else folder / Path(read(place.at("certs"), certs, "str")).expanduser(),
        "deadline": None if deadline == "learned" else _seconds(place.at("deadline"), deadline, 1e-3),
        "wait": _seconds(place.at("wait"), given.get("wait", 60.0), 0.0),
        "pace": _seconds(place.at("pace"), given.get("pace", 0.0), 0.0),
        "masked": masked,
    }


def _names(place: Place, value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not value:
        raise place.refused(show(value), 'Pass a list of names: ["desk-1", "desk-2"].')
    return tuple(read(place.item(i), name, "str") for i, name in enumerate(value))


def _seconds(place: Place, value: Any, least: float) -> float:
    if isinstance(value, str):
        other = ', or "learned"' if place.path.endswith(".deadline") else ""
        raise place.refused(show(value), f"Pass seconds as a number{other}.")
    if read(place, value, "float") < least:
        raise place.refused(show(value), f"Pass at least {least:g} seconds.")
    return float(value)
