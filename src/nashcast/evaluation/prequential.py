"""The evaluation loop of every method: forecast, then learn, step by step, and timed."""

from __future__ import annotations

import time
from collections.abc import Callable
from math import inf
from typing import NamedTuple

import numpy as np

from nashcast.datasets import Stream
from nashcast.evaluation.method import Method, Online, Whole, problem_of
from nashcast.runs.single_run import error_of

# Steps of a trial before timing, in which code is compiled.
TRIAL = 8


class Run(NamedTuple):
    """seconds: for all steps, without preparation.   choice: the chosen settings, if there were several."""

    forecasts: np.ndarray
    seconds: float
    choice: str


def warmup_steps(stream: Stream, share: float) -> int:
    return int(share * len(stream.targets))


def run(method: Method, stream: Stream, seed: int, share: float) -> Run:
    """Forecasts of every target. Settings are chosen by the error on the first `share` of the steps."""
    # A run may diverge: that is a result, not a warning.
    with np.errstate(all="ignore"):
        if method.whole is not None:
            return Run(*method.whole(stream, seed), "")
        problem, warmup = problem_of(stream), max(warmup_steps(stream, share), 1)
        choice = next(iter(method.choices))
        if len(method.choices) > 1:
            tuning = first_steps(stream, warmup)
            errors = {
                name: error_of(forecast_all(make(problem, seed), tuning)[0], tuning.targets)
                for name, make in method.choices.items()
            }
            # If all fail from the first step on, the first is chosen, and its error shows it.
            choice = min(errors, key=lambda name: errors[name] if errors[name] < inf else inf)
        make = method.choices[choice]
        forecast_all(make(problem, seed), first_steps(stream, TRIAL))
        forecasts, seconds = forecast_all(make(problem, seed), stream)
        return Run(forecasts, seconds, choice)


def timed(rule: Callable[[Stream], np.ndarray]) -> Whole:
    """A causal function of a whole stream, timed after a trial."""

    def whole(stream: Stream, seed: int) -> tuple[np.ndarray, float]:
        rule(first_steps(stream, TRIAL))
        begun = time.perf_counter()
        forecasts = rule(stream)
        return forecasts, time.perf_counter() - begun

    return whole


def forecast_all(forecaster: Online, stream: Stream) -> tuple[np.ndarray, float]:
    """Forecasts of every target, each made before the target is learnt, and the seconds they took."""
    forecasts = np.empty(stream.targets.shape)
    begun = time.perf_counter()
    for t, (x, y) in enumerate(zip(stream.inputs, stream.targets, strict=True)):
        forecasts[t] = forecaster.predict_one(x)
        forecaster.learn_one(x, y)
    return forecasts, time.perf_counter() - begun


def first_steps(stream: Stream, steps: int) -> Stream:
    steps = max(steps, 2)
    return stream._replace(inputs=stream.inputs[:steps], targets=stream.targets[:steps], dates=())
