"""Beside vertical forecasting as published: the task of STV (arXiv 2405.20761) on Air Quality, and ours on it.

STV fits SARIMAX to features of several owners under secret sharing and reports the accuracy of the centralised fit, so
statsmodels' SARIMAX over all sensors in one place stands in for it. The task: CO(GT), rows with missing values left
out, all columns scaled to [0, 1] by the first 80 % of a window of 50, 100, 200 or 400 rows, which are learnt from; the
rest is forecast one value after the other, with the sensors' values of the same hour known.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from nashcast.datasets import Stream, air_quality
from nashcast.extras import needed
from nashcast.federation.federation import Federation
from nashcast.games.joint import JointGame
from private_information import rules, traffic
from private_information.agents import SIMPLE, owners_agents

WINDOWS = (50, 100, 200, 400)
LEARNT = 0.8
# Windows of each length, spread evenly over the recording.
PLACES = 8
# Orders of SARIMAX; the one with the smallest AIC on what is learnt from is taken. No season: 50 rows hold two days.
ORDERS = ((1, 0, 0), (1, 0, 1), (2, 0, 0), (1, 1, 1))
SARIMAX, FEDERATION, POOLED, PERSISTENCE = "SARIMAX, pooled", "federation", "pooled regression", "persistence"


class Forecasts(NamedTuple):
    """values: of the rows after those learnt from.   rounds, bytes: between owners and server, over the window."""

    values: np.ndarray
    seconds: float
    rounds: float
    bytes: float


def windows(length: int, places: int = PLACES) -> list[Stream]:
    """Streams of so many rows, the same hour's sensors as inputs, scaled by the first 80 %."""
    whole = air_quality("CO", "same", warmup=2)
    starts = np.linspace(0, len(whole.targets) - length, places).astype(int)
    return [scaled(cut(whole, int(start), length)) for start in starts]


def cut(stream: Stream, first: int, length: int) -> Stream:
    """Rows of a stream; the target before its first row starts it."""
    rows = slice(first, first + length)
    start = stream.start if first == 0 else stream.targets[first - 1]
    dates = stream.dates[rows]
    return stream._replace(inputs=stream.inputs[rows], targets=stream.targets[rows], start=start, dates=dates)


def scaled(stream: Stream) -> Stream:
    """Inputs and targets as shares of their ranges in the first 80 %, which are known when the rest is forecast."""
    learnt = learnt_rows(stream)

    def shares(values: np.ndarray, known: np.ndarray) -> np.ndarray:
        low, high = known.min(axis=0), known.max(axis=0)
        return (values - low) / np.where(high > low, high - low, 1.0)

    y = stream.targets[:learnt]
    return stream._replace(
        inputs=shares(stream.inputs, stream.inputs[:learnt]), targets=shares(stream.targets, y),
        start=shares(stream.start, y),
    )  # fmt: skip


def learnt_rows(stream: Stream) -> int:
    return int(LEARNT * len(stream.targets))


def sarimax(stream: Stream) -> Forecasts:
    """Fitted to the first 80 % with all inputs in one place, then one value after the other, parameters as they are."""
    model = needed("statsmodels.tsa.statespace.sarimax", "statsmodels", "peers").SARIMAX
    learnt = learnt_rows(stream)
    y, x = stream.targets[:, 0], stream.inputs
    begun = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a fit that did not converge is judged by its AIC like any other
        fits = [
            model(y[:learnt], exog=x[:learnt], order=order, trend=_trend(order)).fit(disp=False) for order in ORDERS
        ]
        best = min(fits, key=lambda fit: fit.aic if np.isfinite(fit.aic) else np.inf)
        # Later values enter the state; the parameters stay.
        values = best.append(y[learnt:], exog=x[learnt:], refit=False).predict(start=learnt, end=len(y) - 1)
    return Forecasts(np.asarray(values), time.perf_counter() - begun, 1, traffic.BYTES * x.size)


def _trend(order: tuple[int, int, int]) -> str | None:
    return "c" if order[1] == 0 else None


def federated(stream: Stream) -> Forecasts:
    """The federation of simple agents, one for each owner, from the first row on."""
    made = Federation(
        owners_agents(stream, SIMPLE, 0), x_dim=stream.inputs.shape[1], start=stream.start, coverages=(), history=0
    )
    begun = time.perf_counter()
    values = made.replay(stream.inputs, stream.targets).forecasts[learnt_rows(stream) :, 0]
    each, steps = traffic.federation(SIMPLE, stream, JointGame()), len(stream.targets)
    return Forecasts(values, time.perf_counter() - begun, steps * each.rounds, steps * each.bytes)


def regressed(stream: Stream) -> Forecasts:
    begun = time.perf_counter()
    values = rules.pooled_regression(stream)[learnt_rows(stream) :, 0]
    return Forecasts(values, time.perf_counter() - begun, 1, traffic.BYTES * stream.inputs.size)


def persistent(stream: Stream) -> Forecasts:
    return Forecasts(rules.known_targets(stream)[learnt_rows(stream) :, 0], 0.0, 0, 0)


METHODS = {SARIMAX: sarimax, FEDERATION: federated, POOLED: regressed, PERSISTENCE: persistent}


def vertical_rows(lengths: Sequence[int] = WINDOWS, places: int = PLACES) -> list[dict[str, Any]]:
    """By length and method: mean squared error over all windows, seconds, rounds and bytes of one.

    ratio: to SARIMAX's error.   better_on: windows in which its error is smaller than SARIMAX's.
    """
    found = []
    for length in lengths:
        streams = windows(length, places)
        done = {name: [method(stream) for stream in streams] for name, method in METHODS.items()}
        errors = {
            name: np.array(
                [np.mean((run.values - wanted(stream)) ** 2) for run, stream in zip(runs, streams, strict=True)]
            )
            for name, runs in done.items()
        }
        for name, runs in done.items():
            found.append({
                "window": length, "windows": places, "method": name, "mse": float(errors[name].mean()),
                "ratio": float(errors[name].mean() / errors[SARIMAX].mean()),
                "better_on": int(np.count_nonzero(errors[name] < errors[SARIMAX])),
                "seconds": float(np.median([each.seconds for each in runs])),
                "rounds": runs[0].rounds, "bytes": runs[0].bytes,
            })  # fmt: skip
    return found


def wanted(stream: Stream) -> np.ndarray:
    """The targets that are scored."""
    return stream.targets[learnt_rows(stream) :, 0]
