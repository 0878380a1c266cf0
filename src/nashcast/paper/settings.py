"""The paper's settings and printed numbers, read from the files beside this one."""

from __future__ import annotations

import itertools
import tomllib
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from functools import cache
from importlib.resources import files

MODELS = ("transformer", "rfn", "esn")
DATASETS = ("periodic", "logistic", "concept", "boc", "ett")
SEEDS = (2024, 2025, 2026)
LABELS = {"transformer": "Transformer", "rfn": "RFN", "esn": "ESN"}


@dataclass(frozen=True)
class Setting:
    r"""One run's settings, without its seed.

    decay: $\alpha$.   ridge: $\gamma$.   noise: $\sigma$.   features: $d_z$.   window: Client T.
    lookback: Game T, 0 for no game.   every: $\tau$.   rounds: steps of the series; None for all of it.
    causal: transformers pre-trained on the first quarter only.   activation: of echo states.
    """

    model: str
    dataset: str
    agents: int
    decay: float
    ridge: float
    window: int
    noise: float = 0.0
    features: int = 2
    lookback: int = 0
    every: int = 1
    rounds: int | None = None
    causal: bool = False
    activation: str = "hard_sigmoid"

    @property
    def game(self) -> bool:
        return self.lookback > 0

    def without_game(self) -> Setting:
        return replace(self, lookback=0, every=1)

    def described(self) -> dict:
        return asdict(self)


@dataclass(frozen=True)
class Row:
    """A line of the paper's tables of settings: every value it tried, and the one in bold."""

    model: str
    dataset: str
    agents: int
    game: bool
    grid: dict[str, list]
    bold: dict
    also_bold: dict[str, list]  # where two values are in bold
    unmarked: tuple[str, ...]  # if none is bold, the first is used

    def setting(self, **changes) -> Setting:
        """The bold one, with changes."""
        return Setting(self.model, self.dataset, self.agents, **{**self.bold, **changes})

    def settings(self) -> Iterator[Setting]:
        """Every combination of the grid."""
        for values in itertools.product(*self.grid.values()):
            yield Setting(self.model, self.dataset, self.agents, **dict(zip(self.grid, values, strict=True)))


@cache
def rows(model: str) -> tuple[Row, ...]:
    """The rows of one family, in the paper's order."""
    table = _read(f"{model}.toml")
    return tuple(
        Row(model, row["dataset"], row["agents"], row["game"], row["grid"], row["bold"], row.get("also_bold", {}),
            tuple(row.get("unmarked", ())))
        for row in table["rows"]
    )  # fmt: skip


def row(model: str, dataset: str, agents: int, game: bool) -> Row:
    """One row; a validation slice has the settings of its series."""
    wanted = (dataset.removesuffix("-validation"), agents, game)
    return next(r for r in rows(model) if (r.dataset, r.agents, r.game) == wanted)


@cache
def expected() -> dict:
    """The printed numbers."""
    return _read("expected.toml")


def printed_line(table: str, model: str, dataset: str, agents: int) -> dict:
    """One line of a printed table of errors."""
    wanted = (model, dataset, agents)
    return next(line for line in expected()[table] if (line["model"], line["dataset"], line["agents"]) == wanted)


def _read(name: str) -> dict:
    return tomllib.loads(files("nashcast.paper").joinpath(name).read_text())
