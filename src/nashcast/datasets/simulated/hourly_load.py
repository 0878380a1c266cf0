"""Simulated: the hourly electricity demand of a region and its air temperature, as in Victoria, Australia."""

from __future__ import annotations

import datetime as dt
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np

from nashcast import seeds
from nashcast import validation as check
from nashcast.datasets.base import Stream
from nashcast.errors import InvalidInput

ZONE = "Australia/Melbourne"
# Demand by the hour of a working day, from its lowest (-1) to its highest.
_DAY = np.array([
    -0.60, -0.80, -0.95, -1.00, -0.95, -0.75, -0.30, 0.25, 0.50, 0.50, 0.45, 0.40, 0.35, 0.30, 0.28, 0.30, 0.45, 0.75,
    0.95, 0.85, 0.60, 0.35, 0.00, -0.30,
])  # fmt: skip
_WORK = np.array([1.0, 1.0, 1.0, 1.0, 1.0, 0.55, 0.35])  # Monday to Sunday


def hourly_load(steps: int = 2000, seed: int = 2024) -> Stream:
    """Demand in MW one hour ahead, from the temperature now. steps: how many targets."""
    table = load_table(check.integer("steps", steps, min=1) + 1, seed)
    load, temperature = np.array(table["load"])[:, None], np.array(table["temperature"])[:, None]
    dates = tuple(str(time) for time in table["time"][1:])
    return Stream(
        "hourly load (simulated)", temperature[:-1], load[1:], load[0], dates=dates, input_names=("temperature",)
    )


def load_table(
    hours: int = 4000, seed: int = 2024, *, start: str = "2024-01-01", damaged: bool = False
) -> dict[str, list[Any]]:
    """Columns "time" (local time of Melbourne, without an offset), "load" in MW and "temperature" in °C, as lists.

    start: the first day. In 2024 clocks go back on 7 April.
    damaged: with typical defects: 1 % of each column is missing, 30 hours have no rows, one row occurs twice.
    """
    n = check.integer("hours", hours, min=2)
    rng = seeds.generator(check.integer("seed", seed, min=0), "hourly load")
    zone, first = ZoneInfo(ZONE), _first_day(start)
    begun = first.replace(tzinfo=zone).astimezone(dt.UTC)
    clock = [(begun + dt.timedelta(hours=k)).astimezone(zone).replace(tzinfo=None) for k in range(n)]
    hour, weekday = np.array([time.hour for time in clock]), np.array([time.weekday() for time in clock])
    since_january = (first - dt.datetime(first.year, 1, 1)).days * 24 + np.arange(n)
    yearly = np.cos(2 * np.pi * (since_january / 8766 - 0.05))  # warmest in January
    fronts = _autoregressive(rng, n, 0.985, 0.55)
    temperature = 15 + 6 * yearly + (5 + 1.5 * yearly) * np.sin(2 * np.pi * (hour - 9) / 24) + fronts
    cooling, heating = np.maximum(temperature - 22, 0), np.maximum(16 - temperature, 0)
    work = _WORK[weekday]
    demand = 4800 + 700 * _DAY[hour] * (0.6 + 0.4 * work) + 380 * work
    load = demand + 85 * cooling**1.15 * np.where(hour > 9, 1.0, 0.7) + 45 * heating + _autoregressive(rng, n, 0.93, 38)
    if damaged:
        load[rng.random(n) < 0.01], temperature[rng.random(n) < 0.01] = np.nan, np.nan
    rows = list(range(n))
    if damaged and n > 600:
        rows = [*rows[:400], rows[399], *rows[430:]]
    columns = {"time": clock, "load": load.round(1).tolist(), "temperature": temperature.round(2).tolist()}
    return {name: [values[row] for row in rows] for name, values in columns.items()}


def _first_day(start: str) -> dt.datetime:
    try:
        return dt.datetime.fromisoformat(start)
    except (TypeError, ValueError):
        raise InvalidInput("start", check.describe(start), "Pass a day, such as 2024-03-01.") from None


def _autoregressive(rng: np.random.Generator, steps: int, memory: float, spread: float) -> np.ndarray:
    values, noise = np.zeros(steps), spread * rng.standard_normal(steps)
    for t in range(1, steps):
        values[t] = memory * values[t - 1] + noise[t]
    return values
