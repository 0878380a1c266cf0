"""Recorded series through a federation in one compiled loop (extra `fast`), and many such runs at once.

Encoders are frozen, so a series is encoded first. Decoders, weights and games then follow Algorithm 1 in the same
order, with compiled twins of the functions that the online federation calls. The numbers are the same.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import numpy as np

from nashcast import validation as check
from nashcast.agents.lookback.paper_agent import PaperAgent
from nashcast.agents.replay_part import ReplayPart
from nashcast.errors import InvalidInput
from nashcast.federation.federation import Federation
from nashcast.federation.lookback.paper_loop import PaperLoopFactory
from nashcast.federation.records import Replay
from nashcast.games.lookback.fast import has_numba, need_numba
from nashcast.games.lookback.problem import layout_each


def replay_any(federation: Federation, inputs: np.ndarray, targets: np.ndarray) -> Replay:
    """`replay` where numba is installed and the federation can be compiled, else the same run step by step."""
    if has_numba():
        with suppress(InvalidInput):
            return replay(federation, inputs, targets)
    return federation.replay(inputs, targets)


def replay(federation: Federation, inputs: np.ndarray, targets: np.ndarray) -> Replay:
    """Forecast every target from its input, from the start. The federation itself learns nothing.

    inputs: (steps, x_dim).   targets: (steps, y_dim).
    """
    need_numba("replay")
    from nashcast.federation.compiled.mixture import mixture_scratch
    from nashcast.federation.compiled.replay_loop import (
        AgentSettings,
        EchoStates,
        LoopMemory,
        Results,
        Rules,
        Series,
        run_loop,
    )
    from nashcast.games.lookback.compiled.plan import plan_for

    factory, start = federation.for_replay()
    if not isinstance(factory, PaperLoopFactory):
        raise InvalidInput("federation", "one that is not the paper's", "Replay it online: Federation.replay.")
    agents, keys, settings, p = factory.agents, factory.keys, factory.settings, factory.y_dim
    X = check.of_rank("inputs", inputs, ("steps", "x_dim"))
    check.finite("inputs", X)
    Y = check.array("targets", targets, (len(X), p), "(steps, y_dim)")
    skip = 0
    if start is None:  # the first label is the start, as online
        start, skip = Y[0], 1
    R = len(X) - skip
    if R < 1:
        raise InvalidInput("targets", f"{len(X)} step", "Pass at least two steps, or a start.")
    parts = [_part(agent, X[skip:], p, key) for agent, key in zip(agents, keys, strict=True)]
    game = settings.game
    if game is not None and game.rewrite_past:
        raise InvalidInput("game", "rewrite_past", "Replay it online: Federation.replay.")
    if game is not None and (game.memory or game.ridge is not None):
        got = "memory" if game.memory else "a ridge of its own"
        raise InvalidInput("game", got, "Replay it online: Federation.replay.")

    if factory.rule() is not None:
        raise InvalidInput("mixing", repr(factory.mixing), "Replay it online: Federation.replay.")

    T, every = (0, 1) if game is None else (game.lookback, game.every)
    N = len(parts)
    sizes = tuple(part.features.shape[2] for part in parts)
    noisy = tuple(part.moments is not None or part.echo is not None for part in parts)
    plan = plan_for(layout_each(sizes, p, noisy), max(T, 1), False)
    features = _flat([part.features for part in parts], R)
    means = _flat([part.features if part.moments is None else part.moments.mean for part in parts], R)
    covariance = _flat(
        [np.empty((R, 0)) if not varies else _covariance(part, R) for part, varies in zip(parts, noisy, strict=True)], R
    )  # fmt: skip
    D, top = sum(sizes), max(sizes)
    forecasts, weights, own = np.empty((R, p)), np.empty((R, N)), np.empty((R, N, p))
    settings_of_agents = AgentSettings(
        _column(parts, "ridge"), _column(parts, "decay"), np.array([part.window for part in parts]),
        _column(parts, "forgetting"), np.array([part.relative for part in parts]), np.array(keys),
    )  # fmt: skip
    memory = LoopMemory(
        np.zeros((R, N, p)), np.zeros((N, top, top)), np.zeros((N, top)), np.empty((top, top)), np.zeros(D),
        np.empty((mixture_scratch(p, N), max(p, N))), np.empty((p, N)), np.empty(plan.common), np.empty(plan.work),
        np.empty((max(T, 1), D)), np.empty((max(T, 1) + 1, N, p)), np.empty((max(T, 1), features.shape[1])),
        np.zeros((max(T, 1), covariance.shape[1])),
    )  # fmt: skip
    fallbacks = run_loop(
        (plan.header, plan.agents, plan.chunks),
        Series(features, means, covariance, np.concatenate([start[None], Y[skip:]])),
        settings_of_agents,
        EchoStates(*_echo_tables(parts, R, p)),
        Rules(T, every, settings.anchored, settings.ridge, settings.budget, bool(any(noisy))),
        memory,
        Results(forecasts, weights, own),
    )
    if skip:
        forecasts, weights, own = (np.concatenate([np.zeros((1, *a.shape[1:])), a]) for a in (forecasts, weights, own))
    return Replay(forecasts, weights, own, float(np.mean((forecasts - Y) ** 2)), fallbacks)


def replay_many(
    runs: Iterable[tuple[Callable[[], Federation], np.ndarray, np.ndarray]],
    *,
    jobs: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> list[Replay]:
    """Many runs at once, in parallel on all cores: each a function that makes a federation, its inputs and its targets.

    progress: called with the number of runs finished.
    """
    finished = 0
    results = []
    with ThreadPoolExecutor(jobs or os.cpu_count()) as pool:
        # Compiled loops run in parallel; making and encoding, in Python, run one at a time.
        for result in pool.map(lambda run: _made_and_replayed(*run), runs):
            results.append(result)
            finished += 1
            if progress is not None:
                progress(finished)
    return results


def _made_and_replayed(make: Callable[[], Federation], inputs: np.ndarray, targets: np.ndarray) -> Replay:
    return replay_any(make(), inputs, targets)


def _part(agent, inputs, y_dim, key) -> ReplayPart:
    if not isinstance(agent, PaperAgent):
        raise InvalidInput("agents", check.describe(agent), "Replay them online: Federation.replay.")
    return agent.part_in_replay(inputs, y_dim, key)


def _flat(blocks, steps) -> np.ndarray:
    return np.concatenate([np.ascontiguousarray(block).reshape(steps, -1) for block in blocks], axis=1)


def _covariance(part, steps) -> np.ndarray:
    if part.moments is not None:
        return part.moments.covariance
    p, d = part.features.shape[1:]
    return np.zeros((steps, p, p, d, d))  # an echo state's is sampled anew for each game


def _column(parts, name) -> np.ndarray:
    return np.array([getattr(part, name) for part in parts], dtype=np.float64)


def _echo_tables(parts, steps, p):
    """Echo states' parts side by side: drives in flat rows, and samples 0 for all other agents."""
    from nashcast.federation.compiled.moments import CODES, LARGEST_NOISE

    N = len(parts)
    samples, activation, leak = np.zeros(N, dtype=np.int64), np.zeros(N, dtype=np.int64), np.ones(N)
    recurrent, noise, drives = np.zeros((N, p, p)), np.zeros((N, p)), []
    for i, part in enumerate(parts):
        drives.append(part.features if part.echo is None else part.echo.drive)
        if part.echo is not None:
            if part.echo.activation == "hard_sigmoid" and part.echo.noise.max() > LARGEST_NOISE:
                got = f"noise {part.echo.noise.max():g} of an echo state with hard sigmoid"
                raise InvalidInput("encoder", got, "Replay it online: Federation.replay.")
            samples[i], activation[i], leak[i] = part.echo.samples, CODES[part.echo.activation], part.echo.leak
            recurrent[i], noise[i] = part.echo.recurrent, part.echo.noise
    drive = _flat(drives, steps) if samples.any() else np.empty((1, 0))
    return samples, activation, leak, recurrent, noise, drive
