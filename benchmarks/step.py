"""Time and memory of one step of the default federation, beside a NumPy workload measured in the same run.

    python benchmarks/step.py [--json] [--steps 300] [--memory-steps 20000] [--long-steps 1000000]

Times are the shortest of several short runs in processor time: a shared machine counts less. A ratio is a time over
that of the reference workload, and moves less from machine to machine than the time does.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from joint_game import GAMES, TOGETHER_IN_CACHE
from joint_game import seconds as joint_seconds

import nashcast as nc
from nashcast.agents.bank import FORGETTING, Bank, Member
from nashcast.agents.joint.joint_blocks import JointBlocks
from nashcast.games.joint import JointGame

X_DIM, COVERAGE, WARM_UP = 3, 0.9, 400
# Steps timed together, of which the shortest time counts.
TOGETHER = 5


class Row(NamedTuple):
    """One line of the table.   seconds: of one step, None if it is no time.   aim: what `value` should not exceed."""

    name: str
    seconds: float | None
    value: float
    unit: str
    aim: float | None = None


def shortest(run: Callable[[], Any], repeats: int) -> float:
    best = np.inf
    for _ in range(repeats):
        start = time.process_time()
        run()
        best = min(best, time.process_time() - start)
    return best


def reference() -> float:
    """300 sums of ten numbers and 48 linear systems of 26 unknowns: about what a step is made of."""
    rng, numbers, ones = np.random.default_rng(0), np.ones(10), np.ones((48, 26, 1))
    roots = rng.standard_normal((48, 26, 26))
    systems = roots @ roots.swapaxes(1, 2) + np.eye(26)

    def work() -> None:
        for _ in range(300):
            numbers + numbers
        np.linalg.solve(systems, ones)

    return shortest(work, 300)


class Stream:
    """A federation and a stream with a season, a trend and inputs that help."""

    def __init__(self, y_dim: int = 1, horizon: int = 1, **settings: Any):
        self.federation = nc.default_federation(X_DIM, y_dim, horizon, **settings)
        self._rng, self._y_dim, self._level, self.rows = np.random.default_rng(1), y_dim, np.zeros(y_dim), 0

    def row(self) -> tuple[np.ndarray, np.ndarray]:
        x = self._rng.standard_normal(X_DIM)
        self._level = 0.9 * self._level + x[0] + 0.3 * self._rng.standard_normal(self._y_dim)
        self.rows += 1
        return x, self._level + np.sin(2 * np.pi * self.rows / 24)

    def step(self, labelled: bool = True) -> np.ndarray:
        x, y = self.row()
        self.federation.predict_one(x)
        self.federation.interval(COVERAGE)
        self.federation.learn_one(x, y if labelled else None)
        return y

    def steps(self, count: int) -> None:
        for _ in range(count):
            self.step()


def step_seconds(stream: Stream, steps: int) -> float:
    stream.steps(WARM_UP)
    return shortest(lambda: stream.steps(TOGETHER), steps // TOGETHER) / TOGETHER


def late_seconds(stream: Stream, repeats: int) -> float:
    """The time of `learn_late`, four steps after its row."""
    stream.steps(WARM_UP)
    best = np.inf
    for _ in range(repeats):
        late, y = stream.federation.step, stream.step(labelled=False)
        stream.steps(4)
        start = time.process_time()
        assert stream.federation.learn_late(late, y if len(y) > 1 else float(y[0]))
        best = min(best, time.process_time() - start)
    return best


def resident_bytes() -> int:
    with Path("/proc/self/statm").open() as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def memory_growth(steps: int) -> float:
    """Bytes by which the process grew in each of the second half of so many steps of a small federation."""
    agents = [nc.Agent(nc.encoders.Trend()), nc.Agent(nc.encoders.Lags())]
    federation, rng = nc.Federation(agents), np.random.default_rng(2)
    middle = 0
    for step in range(steps):
        federation.learn_one(rng.standard_normal(X_DIM), float(rng.standard_normal()))
        if step == steps // 2:
            middle = resident_bytes()
    return (resident_bytes() - middle) / (steps - steps // 2)


def largest_after(steps: int) -> float:
    """The largest number in bank and joint blocks after so many steps of constant inputs at forgetting 0.9."""
    z = np.array([1.0, 16.0, -0.1]).reshape(1, 1, 3)
    bank, game = Bank([Member(3)], 1, 1), JointGame(forgetting=(0.9,), partial=False)
    blocks = JointBlocks(game, [3], 0, 1, 1)
    public, ages, changes = np.empty((1, 0)), np.zeros(1, dtype=np.int64), np.ones((1, 1, len(FORGETTING), 1))
    for step in range(steps):
        said, own = blocks.forecast(z, public), bank.forecast(z)
        bank.add_row(z, None)
        bank.add_labels(z[None], changes, ages)
        blocks.add_row(step, None, taught=True)
        blocks.learn(np.array([step]), 0.5 * (1.0 - said.played), 0.1)
    found = [own.changes, said.played, *(part for part in blocks.save().values() if part.size)]
    # The Gram matrix of forgetting 0.9, which stays ten rows' worth.
    found.append(bank.save()["gram"][:, FORGETTING.index(0.9)])
    if not all(np.isfinite(part).all() for part in found):
        return np.inf
    return float(max(np.abs(part).max() for part in found))


def measure(steps: int, memory_steps: int, long_steps: int) -> list[Row]:
    unit = reference()
    rows = [Row("reference workload", unit, 1e3 * unit, "ms")]

    def timed(name: str, seconds: float, aim: float | None) -> None:
        rows.append(Row(name, seconds, 1e3 * seconds, "ms", aim))

    for horizon, aim in ((1, 1.0), (24, 2.5)):
        timed(f"one step, horizon {horizon}", step_seconds(Stream(horizon=horizon), steps), aim)
    for y_dim in (1, 24):
        step = step_seconds(Stream(y_dim=y_dim), steps)
        late = late_seconds(Stream(y_dim=y_dim), max(steps // 10, 1))
        timed(f"late label, y_dim {y_dim}", late, None)
        rows.append(Row(f"late label over a step, y_dim {y_dim}", None, late / step, "×", 2.0))
    for name, aim in (("one variant", 100.0), ("default set", None)):
        spent = joint_seconds(GAMES[name], 1_000_000, TOGETHER_IN_CACHE, 5)
        timed(f"joint step of 1,000,000 agents, 3 features, {name}", spent, aim)
    rows.append(Row(f"memory a step, over {memory_steps:,} steps", None, memory_growth(memory_steps), "bytes", 1.0))
    name = f"largest number after {long_steps:,} constant rows, forgetting 0.9"
    rows.append(Row(name, None, largest_after(long_steps), "", 1e4))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--steps", type=int, default=300, help="steps of which the shortest count (300)")
    parser.add_argument("--memory-steps", type=int, default=20_000, help="steps of the memory test (20000)")
    parser.add_argument("--long-steps", type=int, default=1_000_000, help="constant rows at forgetting 0.9 (1000000)")
    given = parser.parse_args()
    rows = measure(given.steps, given.memory_steps, given.long_steps)
    unit = rows[0].value / 1e3
    shown = [{**row._asdict(), "ratio": None if row.seconds is None else row.seconds / unit} for row in rows]
    if given.json:
        print(json.dumps(shown, indent=2))
        return
    for row in shown:
        ratio = "" if row["ratio"] is None else f"{row['ratio']:10.1f} × reference"
        aim = "" if row["aim"] is None else f"aim {row['aim']:g}"
        print(f"{row['name']:<66}{row['value']:>12.4g} {row['unit']:<6}{aim:<10}{ratio}")


if __name__ == "__main__":
    main()
