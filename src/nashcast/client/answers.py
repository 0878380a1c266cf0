"""The service's answers as named tuples."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from nashcast.errors import NashcastError


class ServiceRefused(NashcastError):
    """An error answer of the service. status: HTTP status, 0 without an answer.   code: machine-readable reason."""

    def __init__(self, status: int, code: str, message: str):
        super().__init__(message)
        self.status, self.code = status, code


class Bound(NamedTuple):
    """The target lies between lower and upper with this probability; None until there is enough data."""

    coverage: float
    lower: list[float | None]
    upper: list[float | None]


class Ahead(NamedTuple):
    """The forecast of one step. time: its ISO 8601 time, if observations had timestamps.   quantiles: by level."""

    step: int
    time: str | None
    forecast: list[float]
    bounds: list[Bound]
    quantiles: dict[float, list[float | None]]


class LiveForecast(NamedTuple):
    """The forecast of the target of `step`. path: forecasts of this step and the following ones, over the horizon.

    units: of the targets, if the stream names them.   weights: by agent.   absent: reasons, by absent agent.
    """

    step: int
    time: str | None
    forecast: list[float]
    bounds: list[Bound]
    path: list[Ahead]
    units: str | None
    weights: dict[str, float]
    absent: dict[str, str]
    at: float


def read_forecast(found: dict[str, Any]) -> LiveForecast:
    path = [
        Ahead(
            each["step"],
            each["time"],
            each["forecast"],
            _bounds(each),
            {q["level"]: q["value"] for q in each["quantiles"]},
        )
        for each in found["path"]
    ]
    return LiveForecast(**{**found, "bounds": _bounds(found), "path": path})


def _bounds(found: dict[str, Any]) -> list[Bound]:
    return [Bound(**bound) for bound in found["bounds"]]


def read_refusal(status: int, content: bytes) -> ServiceRefused:
    try:
        error = json.loads(content)["error"]
        return ServiceRefused(status, error["code"], error["message"])
    except (ValueError, KeyError, TypeError):
        return ServiceRefused(status, "unknown", f"the service answered {status}: {content[:200]!r}")
