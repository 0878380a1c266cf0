"""What is evaluated: anything that forecasts the next target and is then told it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any, NamedTuple, Protocol

import numpy as np

from nashcast.datasets import Stream

FAMILIES = {
    "ours": "the federation and its ablations",
    "agents": "each of its agents alone",
    "baselines": "simple forecasters",
    "experts": "other mixtures of the same experts",
    "river": "models of the package river",
    "reservoirpy": "models of the package reservoirpy",
}
# Who the federation has to beat: everybody but its own parts.
PEERS = ("baselines", "experts", "river", "reservoirpy")


class Online(Protocol):
    """x is an array (x_dim,), y an array (y_dim,). A forecast is y_dim numbers, or one number."""

    def predict_one(self, x: np.ndarray) -> Any: ...

    def learn_one(self, x: np.ndarray, y: np.ndarray) -> None: ...


class Problem(NamedTuple):
    """All that is known before the first step."""

    x_dim: int
    y_dim: int
    start: np.ndarray  # (y_dim,), the target before the first


def problem_of(stream: Stream) -> Problem:
    return Problem(stream.inputs.shape[1], stream.targets.shape[1], stream.start)


Maker = Callable[[Problem, int], Online]
Whole = Callable[[Stream, int], tuple[np.ndarray, float]]


class Traffic(NamedTuple):
    """Per step: round trips between server and agents, and bytes of the numbers in them, all agents, both ways."""

    rounds: float
    bytes: float


@dataclass(frozen=True)
class Method:
    """name: unique.   family: one of FAMILIES.   random: whether it depends on the seed.

    choices: settings by name; of several, the one that did best on the warm-up is run again from the start.
    whole: instead, a causal function of the whole stream and the seed, which gives forecasts and the seconds it took;
    row t of the forecasts uses nothing from t on.
    package: the module it needs, if any.   traffic: what agents and server exchange in a step, if they are apart.
    """

    name: str
    family: str
    choices: Mapping[str, Maker] = field(default_factory=dict)
    whole: Whole | None = None
    random: bool = False
    package: str = ""
    traffic: Callable[[Stream], Traffic] | None = None

    @property
    def installed(self) -> bool:
        return not self.package or find_spec(self.package) is not None

    @property
    def missing(self) -> str:
        """What to say where its package is not installed."""
        return f"needs {self.package}: pip install 'nashcast[peers]'"


def one(maker: Maker) -> dict[str, Maker]:
    """The only choice."""
    return {"": maker}
