"""Owners with private inputs on one stream: each alone, their mixture, together, and all inputs pooled."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from nashcast.agents.agent import Agent
from nashcast.datasets import Stream
from nashcast.encoders import Lags
from nashcast.federation.federation import Federation
from nashcast.federation.views.trust import Trust
from nashcast.runs.single_run import error_of

PERSISTENCE, MIXTURE, TOGETHER, POOLED = "persistence", "mixture, no game", "federation, together", "all inputs pooled"
# The interval shown round the forecasts ahead.
COVERAGE = 0.8
Progress = Callable[[int, int], None]


class Result(NamedTuple):
    """errors: mean squared errors of persistence, each owner alone, mixture, together, pooled.   squares: by step.

    trust: errors and weights of the federation's members.
    """

    stream: str
    steps: int
    errors: dict[str, float]
    owners: list[str]
    trust: list[Trust]
    squares: dict[str, np.ndarray]


class Ahead(NamedTuple):
    """Forecasts of the targets after the last one, in the stream's own units, with bounds."""

    stream: str
    last: float
    low: list[float]
    forecast: list[float]
    high: list[float]


def owners(stream: Stream, names: Sequence[str]) -> list[Agent]:
    """One agent for each input, which no other agent sees. All know the targets so far."""
    return [Agent(Lags(), name=name, inputs=[place]) for place, name in enumerate(names)]


def show(stream: Stream, names: Sequence[str], progress: Progress | None = None) -> Result:
    """names: the owners' names, one for each input."""
    last = np.concatenate([stream.start[None], stream.targets[:-1]])
    errors, squares = {PERSISTENCE: stream.persistence_mse}, {PERSISTENCE: _squares(last, stream)}
    trust: list[Trust] = []
    cases = len(names) + 3
    for done, (name, federation) in enumerate(_cases(stream, names)):
        if progress is not None:
            progress(done, cases)
        forecasts = federation.replay(stream.inputs, stream.targets).forecasts
        errors[name], squares[name] = error_of(forecasts, stream.targets), _squares(forecasts, stream)
        if name == TOGETHER:
            trust = federation.trust()
    if progress is not None:
        progress(cases, cases)
    return Result(stream.name, len(stream.targets), errors, list(names), trust, squares)


def _squares(forecasts: np.ndarray, stream: Stream) -> np.ndarray:
    return np.mean((forecasts - stream.targets) ** 2, axis=1)


def _cases(stream: Stream, names: Sequence[str]) -> Iterator[tuple[str, Federation]]:
    agents, start = owners(stream, names), stream.start
    for agent in agents:
        yield f"{agent.name} alone", Federation([agent], start=start, coverages=())
    yield MIXTURE, Federation(agents, game=None, start=start, coverages=())
    yield TOGETHER, Federation(agents, start=start, coverages=())
    yield POOLED, Federation([Agent(Lags(), name="pooled")], start=start, coverages=())


def ahead(stream: Stream, names: Sequence[str], horizon: int, progress: Progress | None = None) -> Ahead:
    """The owners' forecasts of the next `horizon` targets after the stream's last row of inputs."""
    federation = Federation(owners(stream, names), horizon=horizon, start=stream.start, coverages=(COVERAGE,))
    last, forecast = len(stream.targets) - 1, stream.targets[:0]
    for t, (x, y) in enumerate(zip(stream.inputs, stream.targets, strict=True)):
        if progress is not None:
            progress(t, last)
        forecast = federation.predict_one(x)
        if t < last:
            federation.learn_one(x, y)
    low, high = federation.interval(COVERAGE)
    units = [stream.in_units(values[:, None])[:, 0].tolist() for values in (low, forecast, high)]
    return Ahead(stream.name, float(stream.in_units(stream.targets[last - 1])[0]), *units)
