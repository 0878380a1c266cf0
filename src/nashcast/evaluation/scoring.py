"""One method on one stream: a run for each seed, scored, and the runs combined."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from math import inf, isfinite
from typing import Any

import numpy as np

from nashcast.datasets import Stream
from nashcast.evaluation.declared import Declared, warmup_share
from nashcast.evaluation.method import Method
from nashcast.evaluation.peers.interval_rivals import RIVALS
from nashcast.evaluation.prequential import run, warmup_steps
from nashcast.intervals import Intervals
from nashcast.intervals.intervals import COVERAGES
from nashcast.runs.single_run import error_of

# Steps after a shift over which the intervals' coverage is measured.
AFTER = 100


def score(method: Method, declared: Declared, seed: int, rivals: bool) -> dict[str, Any]:
    """One run with all values that the tables need, as JSON values. losses: of every step, mean over targets."""
    stream = declared.open()
    done = run(method, stream, seed, warmup_share())
    found = _part(done.forecasts, stream, declared.shift, rivals)
    with np.errstate(all="ignore"):
        losses = ((done.forecasts - stream.targets) ** 2).mean(axis=1)
    found["us_per_step"] = 1e6 * done.seconds / len(stream.targets)
    return found | {"choice": done.choice, "losses": packed(losses)}


def combined(parts: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The runs of one method on one stream, one for each seed, as one result."""
    apart = ("us_per_step", "choice", "losses")
    found = {name: _mean([part[name] for part in parts]) for name in parts[0] if name not in apart}
    # Other programs run on the machine: the fastest run is the best measure of the method.
    found["us_per_step"] = min(part["us_per_step"] for part in parts)
    found["mse_by_seed"] = [part["mse"] for part in parts]
    found["choices"] = [part["choice"] for part in parts]
    found["losses"] = packed(np.mean([unpacked(part["losses"]) for part in parts], axis=0))
    return found


def _part(forecasts: np.ndarray, stream: Stream, shift: int | None, rivals: bool) -> dict[str, Any]:
    y, warmup = stream.targets, warmup_steps(stream, warmup_share())
    part: dict[str, Any] = {"mse": error_of(forecasts, y), "mse_after_warmup": error_of(forecasts[warmup:], y[warmup:])}
    bounds = Intervals(y.shape[1]).replay(forecasts, y)
    inside = (bounds[:, :, 0] <= y[:, None]) & (y[:, None] <= bounds[:, :, 1])
    widths = bounds[:, :, 1] - bounds[:, :, 0]
    part["coverage"] = inside.mean(axis=(0, 2)).tolist()
    part["width"] = _finite_mean(widths[warmup:])
    if shift is not None:
        part["coverage_after_shift"] = inside[shift : shift + AFTER].mean(axis=(0, 2)).tolist()
    if rivals:
        for name, rival in RIVALS.items():
            half = np.stack([[rival(r, level) for level in COVERAGES] for r in (y - forecasts).T], axis=2)
            half = np.moveaxis(half, 1, 0)  # (steps, coverages, targets)
            hit = np.abs(y - forecasts)[:, None] <= half
            part[f"{name}: coverage"] = hit.mean(axis=(0, 2)).tolist()
            part[f"{name}: width"] = _finite_mean(2.0 * half[warmup:])
            part[f"{name}: endless"] = float(np.isinf(half[warmup:]).mean())
            if shift is not None:
                part[f"{name}: coverage_after_shift"] = hit[shift : shift + AFTER].mean(axis=(0, 2)).tolist()
    return part


def _finite_mean(widths: np.ndarray) -> list[float]:
    """Mean of the finite widths over steps and targets, for each coverage."""
    ends = np.isfinite(widths)
    total = np.where(ends, widths, 0.0).sum(axis=(0, 2))
    return np.divide(
        total, ends.sum(axis=(0, 2)), out=np.full(len(total), np.nan), where=ends.any(axis=(0, 2))
    ).tolist()


def _mean(values: list) -> Any:
    """Mean over runs. Infinite values may be None in a file; np.array turns them into NaN."""
    return np.mean(np.array(values, dtype=np.float64), axis=0).tolist()


def packed(values: np.ndarray) -> str:
    """Numbers as text, in single precision: they are read back for tests and figures only."""
    with np.errstate(over="ignore"):
        return base64.b64encode(values.astype("<f4").tobytes()).decode()


def unpacked(text: str) -> np.ndarray:
    return np.frombuffer(base64.b64decode(text), dtype="<f4").astype(np.float64)


def as_number(value: Any) -> float:
    """A number of a result saved as JSON, where infinite values may be None."""
    return inf if value is None or not isfinite(value) else float(value)
