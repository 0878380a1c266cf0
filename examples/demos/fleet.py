"""Nineteen sites beside the one of the organisations: loads by the hour, one of which drifts on the way."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import numpy as np

from nashcast import seeds
from nashcast.client import Client

SITES = [f"site-{i:02d}" for i in range(1, 20)]
DRIFTING = "site-07"
SITE = """
name = "load of {name}"
seed = {seed}
horizon = 6
season = 24
[serve]
x_dim = 1
y_dim = 1
units = "MW"
time_step = 3600
[[agents]]
encoder = "trend"
[[agents]]
encoder = "seasonal"
[[agents]]
encoder = "lags"
"""
# Hours that are known at the start, and seconds between two that come in.
HISTORY, PACE_S = 120, 0.2
# How much larger its noise becomes where a site drifts.
_NOISE = 12.0


def write_files(folder: Path, seed: int) -> None:
    folder.mkdir()
    for i, name in enumerate(SITES):
        (folder / f"{name}.toml").write_text(SITE.format(name=name, seed=seed + i))


def load(place: int, steps: int, seed: int, drifts_at: int | None) -> np.ndarray:
    """A daily cycle with noise; from `drifts_at` on the noise is larger."""
    rng, t = seeds.generator(seed, "site", place), np.arange(steps)
    cycle = (20 + 3 * place) * np.sin(2 * np.pi * (t + place) / 24) + 5 * np.sin(2 * np.pi * t / 168)
    noise = rng.normal(size=steps) * np.where(t >= (steps if drifts_at is None else drifts_at), _NOISE, 1.0)
    return np.round(100 + 10 * place + cycle + noise, 3)


class Fleet(threading.Thread):
    """Posts to all sites until it is told to end.   drift_after: hours that come in before one site drifts."""

    def __init__(self, url: str, token: str, seed: int, hours: int, drift_after: int):
        super().__init__(name="demo fleet", daemon=True)
        self._client = Client(url, token)
        self._ending = threading.Event()
        self.drifts_at = HISTORY + drift_after
        steps = HISTORY + hours
        self._loads = {
            name: load(i, steps, seed, self.drifts_at if name == DRIFTING else None) for i, name in enumerate(SITES)
        }
        # What comes in from now on has the hours from now on.
        self._first = time.time() // 3600 * 3600 - HISTORY * 3600
        self._hours = hours

    def begin(self) -> None:
        """The past of all sites, computed, then the thread."""
        for name in SITES:
            self._post(name, range(HISTORY))
        self._catch_up()
        self.start()

    def run(self) -> None:
        coming = time.monotonic()
        for step in range(HISTORY, HISTORY + self._hours):
            for name in SITES:
                self._post(name, [step])
            coming += PACE_S
            if self._ending.wait(max(0.0, coming - time.monotonic())):
                return

    def _catch_up(self, seconds: float = 60.0) -> None:
        """Wait until what was posted has been computed, on a slow machine not for ever."""
        end = time.monotonic() + seconds
        while any(row["behind"] for row in self._client.streams()) and time.monotonic() < end:
            time.sleep(0.1)

    def end(self) -> None:
        self._ending.set()
        self.join(10.0)
        self._catch_up(20.0)
        self._client.close()

    def _post(self, name: str, steps) -> None:
        values = self._loads[name]
        rows = [
            {"x": float(values[t]), "y": float(values[t]), "step": t, "time": self._first + 3600 * t} for t in steps
        ]  # fmt: skip
        self._client.stream(name).post(rows)


def drift_told(client: Client) -> dict | None:
    """The first event of drift of the site that drifts."""
    events = client.recent_events(limit=1000)
    return next((each for each in events if (each["stream"], each["kind"]) == (DRIFTING, "drift")), None)
