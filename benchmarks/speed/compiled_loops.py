"""What only measurements need: one game many times over, and a copy of memory on all cores."""

from __future__ import annotations

from numba import njit, prange

from nashcast.games.lookback.compiled.passes import play


@njit(cache=True)
def play_again(times, plan, game, workspace, as_expected):
    """Play one game `times` times from compiled code."""
    for _ in range(times):
        play(plan, game, workspace, as_expected)


@njit(cache=True, parallel=True)
def copy_on_many_cores(source, target):
    for i in prange(len(source)):
        target[i] = source[i]
