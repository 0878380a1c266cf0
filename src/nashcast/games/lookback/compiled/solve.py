"""The compiled solver behind `solve_game`: one call for one core, or one for all of them."""

from __future__ import annotations

from threading import Lock
from typing import NamedTuple

import numpy as np

from nashcast.games.lookback.compiled.passes import play, play_on_many_cores
from nashcast.games.lookback.compiled.plan import Plan, plan_for
from nashcast.games.lookback.compiled.rule import CompiledRule
from nashcast.games.lookback.coupling import Condition, check_existence
from nashcast.games.lookback.problem import Problem, Solution

# From this many on, the start-up time of threads is small relative to their work.
MANY_AGENTS = 8192
# Not every threading layer of numba is thread-safe, and the cores are busy anyway.
_ALL_CORES = Lock()


class Workspace(NamedTuple):
    """The arrays that one call of `play` fills."""

    common: np.ndarray
    work: np.ndarray
    decoders: np.ndarray
    states: np.ndarray


def new_workspace(game: Problem, plan: Plan) -> Workspace:
    T, N, p = len(game.targets), game.layout.agents, game.layout.y_dim
    decoders, states = np.empty((T, game.layout.decoders[-1])), np.empty((T + 1, N, p))
    states[0] = game.start
    return Workspace(np.empty(plan.common), np.empty(plan.work), decoders, states)


def play_arguments(game: Problem, plan: Plan, workspace: Workspace) -> tuple[tuple, tuple, tuple, bool]:
    """All arguments of `passes.play`."""
    arrays = (
        game.means, game.features, game.covariance, game.prior, game.weights, game.targets, game.decay, game.ridge,
    )  # fmt: skip
    return (plan.header, plan.agents, plan.chunks), arrays, tuple(workspace), game.features is game.means


def plan_of(game: Problem) -> Plan:
    return plan_for(game.layout, len(game.targets), game.prior.size > 0)


def solve(game: Problem) -> Solution:
    """`reference.solve`, compiled."""
    plan = plan_of(game)
    workspace = new_workspace(game, plan)
    arguments = play_arguments(game, plan, workspace)
    if game.layout.agents < MANY_AGENTS:
        failed = play(*arguments)
    else:
        with _ALL_CORES:
            failed = play_on_many_cores(*arguments)
    T = len(game.targets)
    conditions, plain = workspace.common[plan.conditions : plan.conditions + 2 * T].reshape(2, T)[:, ::-1]
    if failed >= 0:
        check_existence(failed, Condition(float(conditions[failed]), float(plain[failed])))
    rule = CompiledRule(plan, workspace.common, workspace.work)
    grown = max(float(conditions.max()), float(np.sqrt(plain.max())))
    return Solution(workspace.decoders, workspace.states, conditions, rule, grown)
