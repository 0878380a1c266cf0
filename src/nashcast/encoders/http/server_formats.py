"""Requests and answers of forecast servers: Nashcast's own format, and those of common servers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from nashcast.errors import NashcastError


class Question(NamedTuple):
    """past: targets, oldest first, (rows, y_dim).   x: the present input.   levels: quantile levels asked for."""

    past: np.ndarray
    x: np.ndarray
    times: np.ndarray
    horizon: int
    levels: tuple[float, ...]
    model: str | None


class Format(NamedTuple):
    """ask: the request's JSON.   read: the answer's JSON as (horizon, y_dim, levels or 1)."""

    ask: Callable[[Question], dict[str, Any]]
    read: Callable[[Any, Question], Any]


def _ask_nashcast(q: Question) -> dict[str, Any]:
    body: dict[str, Any] = {"target": q.past.tolist(), "horizon": q.horizon, "x": _without_nan(q.x)}
    if np.isfinite(q.times).all():
        body["times"] = q.times.tolist()
    if q.levels:
        body["quantiles"] = list(q.levels)
    return body | ({"model": q.model} if q.model else {})


def _read_nashcast(answer: Any, q: Question) -> Any:
    if not q.levels:
        return _of_steps(answer["forecast"], q)
    return _stacked([answer["quantiles"][f"{level:g}"] for level in q.levels], q)


def _ask_chronos(q: Question) -> dict[str, Any]:
    # A single target as a list, several as one list each.
    target = q.past[:, 0].tolist() if q.past.shape[1] == 1 else q.past.T.tolist()
    parameters: dict[str, Any] = {"prediction_length": q.horizon}
    if q.levels:
        parameters["quantile_levels"] = list(q.levels)
    return {"inputs": [{"target": target}], "parameters": parameters}


def _read_chronos(answer: Any, q: Question) -> Any:
    prediction = answer["predictions"][0]
    names = [f"{level:g}" for level in q.levels] if q.levels else ["mean"]
    rows = [prediction[name] for name in names]
    if q.past.shape[1] > 1:
        rows = [np.asarray(row, dtype=float).T for row in rows]
    return _stacked(rows, q)


def _ask_instances(q: Question) -> dict[str, Any]:
    return {"instances": [_flat(q.past)]}


def _ask_mlflow(q: Question) -> dict[str, Any]:
    return {"inputs": [_flat(q.past)]}


def _read_predictions(answer: Any, q: Question) -> Any:
    return _of_steps(np.asarray(answer["predictions"], dtype=float)[0], q)


def _ask_infer(q: Question) -> dict[str, Any]:
    shape, data = [1, *_shape(q.past)], q.past.ravel().tolist()
    return {"inputs": [{"name": q.model or "past", "shape": shape, "datatype": "FP64", "data": data}]}


def _read_infer(answer: Any, q: Question) -> Any:
    first = answer["outputs"][0]
    return _of_steps(np.asarray(first["data"], dtype=float).reshape(first["shape"])[0], q)


FORMATS = {
    "nashcast": Format(_ask_nashcast, _read_nashcast),
    "chronos": Format(_ask_chronos, _read_chronos),
    "instances": Format(_ask_instances, _read_predictions),
    "mlflow": Format(_ask_mlflow, _read_predictions),
    "open-inference": Format(_ask_infer, _read_infer),
}
# Formats without quantiles.
PLAIN = ("instances", "mlflow", "open-inference")


def read_answer(name: str, answer: Any, question: Question) -> np.ndarray:
    """(steps, y_dim, levels or 1). Raises NashcastError for an answer of another form."""
    try:
        return np.asarray(FORMATS[name].read(answer, question), dtype=float)
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        problem = f"{type(error).__name__}: {error}"[:120]
        raise NashcastError(f"the answer is not of the format {name!r} ({problem})") from None


def _of_steps(values: Any, q: Question) -> np.ndarray:
    """Forecasts (steps,) or (steps, y_dim) as (steps, y_dim, 1)."""
    found = np.asarray(values, dtype=float)
    return found.reshape(-1, q.past.shape[1], 1)


def _stacked(rows: list[Any], q: Question) -> np.ndarray:
    return np.concatenate([_of_steps(row, q) for row in rows], axis=2)


def _flat(past: np.ndarray) -> list:
    return past[:, 0].tolist() if past.shape[1] == 1 else past.tolist()


def _shape(past: np.ndarray) -> list[int]:
    return [len(past)] if past.shape[1] == 1 else list(past.shape)


def _without_nan(x: np.ndarray) -> list[float | None]:
    return [value if np.isfinite(value) else None for value in x.tolist()]
