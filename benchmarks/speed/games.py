"""How long a game takes: in compiled code, from Python, beside the dense theorem and beside one pass over its data."""

from __future__ import annotations

import gc
import importlib.util
from collections.abc import Callable, Iterator
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

import numpy as np

from nashcast.games.lookback.fast import need_numba
from nashcast.games.lookback.game import solve_game
from speed.random_games import RandomGame, random_game

# The dense theorem costs (N·features)³ a step and agent: beyond this it would be all one measures.
DENSE_UP_TO = 20
# The paper's dense matrices live with the tests, as their oracle.
ORACLE = Path(__file__).parents[2] / "tests" / "support" / "reference" / "dense_game.py"


class Case(NamedTuple):
    """The size of a game to time."""

    agents: int
    lookback: int
    features: int
    y_dim: int
    noisy: bool


def paper_cases() -> list[Case]:
    """The sizes in the paper's experiments."""
    return [
        Case(agents, lookback, features, 1, noisy)
        for noisy in (False, True)
        for agents in (2, 5)
        for lookback in range(1, 6)
        for features in (1, 3, 6, 12)
    ]


def growth_cases(largest: int = 1_000_000) -> list[Case]:
    """Growth with the number of agents: a few that the dense theorem can follow, then powers of ten from 1000."""
    sizes = [10, 20] + [10**power for power in range(3, 8) if 10**power <= largest]
    return [Case(agents, 3, 3, 1, noisy) for noisy in (False, True) for agents in sizes]


def measure(cases: list[Case], *, seconds: float = 0.2) -> Iterator[dict]:
    """One row for each case, as it is measured. `seconds`: how long to repeat each one."""
    need_numba("bench game")
    bandwidth = memory_bandwidth()
    dense = dense_solver()
    for case in cases:
        if case.agents >= 1000:  # the machine's speed drifts: measure both sides of a ratio at the same moment
            bandwidth = memory_bandwidth()
        yield _row(case, bandwidth, dense, seconds)


def dense_solver() -> Callable:
    """`solve` of the dense theorem."""
    spec = importlib.util.spec_from_file_location("nashcast_dense_oracle", ORACLE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.solve


def _row(case: Case, bandwidth: float, dense: Callable, seconds: float) -> dict:
    from numba import get_num_threads

    from nashcast.games.lookback.compiled.solve import MANY_AGENTS

    game = random_game(*case)
    reset_peak_memory()
    from_python = best_time(lambda: solve_game(*game.arguments(), **game.settings(), compiled=True), seconds)
    peak = peak_memory()
    compiled = from_python if case.agents >= MANY_AGENTS else _compiled_time(game, seconds)
    dense_seconds = None
    if case.agents <= DENSE_UP_TO:
        arguments = game.for_dense_theorem()
        dense_seconds = best_time(lambda: dense(*arguments), seconds)
    return {
        **case._asdict(),
        "seconds_per_game": compiled,
        "seconds_from_python": from_python,
        "dense_seconds": dense_seconds,
        "floor_ratio": compiled * bandwidth / game.touched_bytes(),
        "peak_mb": peak,
        "threads": get_num_threads() if case.agents >= MANY_AGENTS else 1,
    }


def best_of(rows: tuple[dict, ...]) -> dict:
    """The same case measured several times: the best of each time; the floor's ratio as it was when ours was best."""
    times = ("seconds_from_python", "dense_seconds")
    best = {name: min((row[name] for row in rows if row[name] is not None), default=None) for name in times}
    return {**min(rows, key=lambda row: row["seconds_per_game"]), **best}


def best_time(action: Callable[[], object], seconds: float) -> float:
    """Seconds a call takes, the best of several runs: other work on the machine only ever adds."""
    action()
    started = perf_counter()
    action()
    calls = max(1, int(seconds / 8 / max(perf_counter() - started, 1e-7)))
    best = np.inf
    gc.disable()
    try:
        until = perf_counter() + seconds
        runs = 0
        while runs < 3 or perf_counter() < until:
            started = perf_counter()
            for _ in range(calls):
                action()
            best = min(best, (perf_counter() - started) / calls)
            runs += 1
    finally:
        gc.enable()
    return float(best)


def _compiled_time(game: RandomGame, seconds: float) -> float:
    """The same game played again and again by compiled code, in memory it was given."""
    from nashcast.games.lookback.compiled.solve import new_workspace, plan_of, play_arguments
    from speed.compiled_loops import play_again

    problem = solve_game(*game.arguments(), **game.settings(), compiled=True).problem
    plan, times = plan_of(problem), 100
    arguments = play_arguments(problem, plan, new_workspace(problem, plan))
    return best_time(lambda: play_again(times, *arguments), seconds) / times


def memory_bandwidth() -> float:
    """Bytes a second that a copy on all threads reads and writes."""
    from speed.compiled_loops import copy_on_many_cores

    source, target = np.ones(32_000_000), np.empty(32_000_000)
    return 2 * source.nbytes / best_time(lambda: copy_on_many_cores(source, target), 0.3)


_STATUS, _RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def reset_peak_memory() -> None:
    """Start the peak anew (Linux; elsewhere it stays the peak since the process began)."""
    gc.collect()
    if _RESET.exists():
        _RESET.write_text("5")


def peak_memory() -> float | None:
    """Largest resident size of this process in MB since the reset, or None where the system does not tell."""
    if _STATUS.exists():
        for line in _STATUS.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    return None


def growth_exponent(rows: list[dict], noisy: bool) -> float:
    """Slope of log time against log agents between 1000 and the largest number of agents."""
    chosen = [row for row in rows if row["noisy"] == noisy and row["agents"] >= 1000]
    times = sorted((row["agents"], row["seconds_from_python"]) for row in chosen)
    (few, short), (many, long) = times[0], times[-1]
    return float(np.log(long / short) / np.log(many / few))
