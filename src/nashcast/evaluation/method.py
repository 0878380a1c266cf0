"""The interface of evaluated methods: forecast the next target, then learn it."""

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
    "statsforecast": "automatic models of the package statsforecast",
    "sktime": "online ensembles of the package sktime",
}
# The federation's competitors: all families except its own parts.
PEERS = ("baselines", "experts", "river", "reservoirpy", "statsforecast", "sktime")


class Online(Protocol):
    """x is an array (x_dim,), y an array (y_dim,). A forecast is y_dim numbers, or one number."""

    def predict_one(self, x: np.ndarray) -> Any: ...

    def learn_one(self, x: np.ndarray, y: np.ndarray) -> None: ...


class Problem(NamedTuple):
    """The information available before the first step."""

    x_dim: int
    y_dim: int
    start: np.ndarray  # (y_dim,), the target before the first


def problem_of(stream: Stream) -> Problem:
    return Problem(stream.inputs.shape[1], stream.targets.shape[1], stream.start)


Maker = Callable[[Problem, int], Online]
Whole = Callable[[Stream, int], tuple[np.ndarray, float]]


class Traffic(NamedTuple):
    """Per step: round trips between server and agents, and bytes of their numbers, all agents, both directions."""

    rounds: float
    bytes: float


@dataclass(frozen=True)
class Method:
    """name: unique.   family: one of FAMILIES.   random: whether it depends on the seed.

    choices: settings by name; of several, the best on the warm-up is run again from the start.
    whole: instead, a causal function of the whole stream and the seed, which returns forecasts and seconds;
    row t of the forecasts uses nothing from t on.
    package: the module it needs, if any.   traffic: exchanged by agents and server in a step, if they are separate.
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
        """The message if its package is not installed."""
        return f"needs {self.package}: pip install 'nashcast[peers]'"


def one(maker: Maker) -> dict[str, Maker]:
    """The only choice."""
    return {"": maker}
