"""Settings that `nashcast serve` reads from a federation file: [serve] and all other tables except [stream]."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

from nashcast import validation as check
from nashcast.config.build import check_fit, files_of
from nashcast.config.config import Config, parse
from nashcast.config.config_changes import read_toml
from nashcast.config.paper_settings import PaperSettings, read_federation, read_game
from nashcast.config.run_schema import Place, options_of, read_options, refuse_unknown, table
from nashcast.errors import InvalidInput

LARGEST_DIM = 10_000
# Tables with the same form as in a hub's file.
_OF_HUB = ("hub", "game", "federation")


@dataclass(frozen=True)
class ServeSettings:
    """x_dim, y_dim: sizes of an input and of a target.   coverages: nominal coverages of the forecast intervals.

    time_step: seconds between two observations, for timestamps of forecasts; None: the interval between the last two.
    units: display units of the targets.
    deadline: seconds before the step continues without an agent in a separate process; None for 5.
    memory: limit of such a process in megabytes; None for 2000.
    compare: whether the same agents also run without a game, for comparison.
    window: steps over which errors are averaged.   retain: steps stored in the journal; None for all.
    snapshot_every: steps between two snapshots of the learnt state; None for 250, or for 1 where foreign code or a
        deadline prevents a step from being recomputed exactly.
    """

    x_dim: int
    y_dim: int
    coverages: Sequence[float] = (0.5, 0.9)
    time_step: float | None = None
    units: str | None = None
    deadline: float | None = None
    memory: int | None = None
    compare: bool = False
    window: int = 500
    snapshot_every: int | None = None
    retain: int | None = None

    def __post_init__(self):
        for name in ("x_dim", "y_dim"):
            if check.integer(name, getattr(self, name), min=1) > LARGEST_DIM:
                raise InvalidInput(name, str(getattr(self, name)), f"Pass a whole number ≤ {LARGEST_DIM}.")
        for coverage in self.coverages:
            if not 0 < coverage < 1:
                raise InvalidInput("coverages", f"{coverage:g}", "Pass numbers between 0 and 1.")
        if not self.coverages:
            raise InvalidInput("coverages", "an empty list", "Pass at least one, such as [0.9].")
        if sorted(set(self.coverages)) != list(self.coverages):
            raise InvalidInput("coverages", f"{list(self.coverages)}", "Pass each once, the smallest first.")
        for name in ("deadline", "time_step"):
            if getattr(self, name) is not None:
                check.number(name, getattr(self, name), above=0.0)
        if self.memory is not None:
            check.integer("memory", self.memory, min=64)
        if self.units is not None and len(self.units) > 40:
            raise InvalidInput("units", f"{len(self.units)} characters", "Pass at most 40.")
        check.integer("window", self.window, min=1)
        if self.snapshot_every is not None:
            check.integer("snapshot_every", self.snapshot_every, min=1)
        if self.retain is not None and check.integer("retain", self.retain, min=1) < 1000:
            raise InvalidInput("retain", str(self.retain), "Pass at least 1000 steps, or false for all.")


SERVE = options_of(ServeSettings)
# Settings that may change without altering forecasts.
_NOT_LEARNT = ("snapshot_every", "retain", "window", "deadline", "memory", "time_step", "units")


class HubPlace(NamedTuple):
    """As in a hub's file. agents: names; all enrolled agents if the file lists none.   paper: settings of its game."""

    folder: Path
    agents: tuple[str, ...]
    broker: str | None
    certs: Path | None
    deadline: float | None
    wait: float
    masked: bool
    paper: PaperSettings


class ServedConfig(NamedTuple):
    """A federation file as the service reads it; without agents it describes the default federation.

    hub: settings of the hub for remote agents, if the file has one; all agents are then remote.
    """

    federation: Config
    serve: ServeSettings
    hub: HubPlace | None = None

    def settings(self) -> dict:
        """The full configuration as plain values."""
        described = self.federation.settings()
        described.pop("stream")
        if self.hub is not None:
            described = {"name": self.federation.name, "seed": self.federation.seed, "agents": list(self.hub.agents)}
            described |= {"paper": self.hub.paper.table(), "hub": {"masked": self.hub.masked}}
        return described | {"serve": asdict(self.serve) | {"coverages": list(self.serve.coverages)}}

    def shape(self, names: list[str]) -> dict:
        """Sizes and names needed to decode arrays from the journal."""
        serve = self.serve
        sizes = {"x_dim": serve.x_dim, "y_dim": serve.y_dim, "horizon": self.federation.horizon}
        return sizes | {"coverages": list(serve.coverages), "agents": names, "settings": self.settings()}

    def identity(self) -> str:
        """Digest of all settings and files that affect forecasts."""
        described = self.settings()
        for name in _NOT_LEARNT:
            del described["serve"][name]
        del described["name"]
        files = {
            name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in files_of(self.federation).items()
        }
        text = json.dumps([described, files], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:32]


def load_served(path: str | Path) -> ServedConfig:
    """Read the configuration of a served stream from a TOML file."""
    return read_served(read_toml(path), source=str(path), folder=Path(path).parent)


def read_served(document: Mapping[str, Any], *, source: str, folder: Path) -> ServedConfig:
    """As `load_served`, from a parsed document. folder: base of relative paths."""
    own = {name: value for name, value in document.items() if "hub" not in document or name not in _OF_HUB}
    config = parse(own, source=source, folder=folder, live=True)
    place = Place(source, "serve")
    if "serve" not in document:
        raise place.refused("nothing", "Add a table [serve] with x_dim and y_dim: the sizes of inputs and targets.")
    given = table(place, document["serve"])
    refuse_unknown(place, given, SERVE, "The service")
    try:
        serve = ServeSettings(**read_options(place, given, SERVE))
    except InvalidInput as error:
        if error.argument.startswith(source):
            raise
        raise place.moved(error) from None
    if "hub" in document:
        return ServedConfig(config, serve, _hub(document, config, serve, source))
    check_fit(config, serve.x_dim, serve.y_dim)
    return ServedConfig(config, serve)


def _hub(document: Mapping[str, Any], config: Config, serve: ServeSettings, source: str) -> HubPlace:
    from nashcast.config.hub_config import read_hub
    from nashcast.remote.broker.enrolling.enrolment import read

    place = Place(source, "hub")
    if config.agents or config.paper is not None:
        what, table_name = ("tables of agents", "[[agents]]") if config.agents else ("a table [paper]", "[paper]")
        raise place.refused(f"a hub beside {what}", f"Leave one of them out: [hub] or {table_name}.")
    if isinstance(document["hub"], Mapping) and "pace" in document["hub"]:
        raise place.at("pace").refused(str(document["hub"]["pace"]), "Leave it out: observations set the pace.")
    if serve.deadline is not None:
        raise Place(source, "serve.deadline").refused(f"{serve.deadline:g} with a hub", "Set it in the table [hub].")
    game = read_game(Place(source, "game"), document.get("game", False))
    federation = read_federation(Place(source, "federation"), document.get("federation", {}), game)
    given = read_hub(place, document["hub"], config.folder, game)
    names = given["agents"]
    if names is None:
        names = tuple(read(given["hub"]).agents)
    where = {name: given[name] for name in ("broker", "certs", "deadline", "wait", "masked")}
    return HubPlace(given["hub"], names, **where, paper=PaperSettings(**federation, game=game))
