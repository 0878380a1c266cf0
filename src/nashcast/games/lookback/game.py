"""Theorem 2: the look-back game's exact feedback Nash equilibrium, for any number of agents.

Agent i steers its decoders β_0 … β_{T-1}; its forecast moves by Ŷ_{t+1} = Ŷ_t + Z_t β_t; it pays
Σ_t exp(-α_i(T-1-t)) · (‖y_{t+1} - Σ_j w_t^j Ŷ_{t+1}^j‖² + γ_i‖β_t - β̄_t‖²). Agents interact only through the mixture,
so the equilibrium costs O(N): docs/explanation/game.md. Here arguments are checked and packed; `reference` or
`compiled` solves.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from nashcast import validation as check
from nashcast.errors import InvalidInput, SingularGame
from nashcast.games.lookback import reference, root_solver
from nashcast.games.lookback.coupling import PRECISE
from nashcast.games.lookback.fast import has_numba, need_numba
from nashcast.games.lookback.problem import (
    NOTHING,
    FeedbackRule,
    Problem,
    Solution,
    StateRule,
    layout_alike,
    layout_each,
)

# From this many agents on, the compiled solver is used if numba is installed: below, NumPy takes under a millisecond,
# and importing numba would take longer than all games of a short run.
COMPILED_FROM = 200

Features = np.ndarray | Sequence[np.ndarray]


class Equilibrium(NamedTuple):
    """The solved game, played from its start.

    decoders: β, shape (lookback, agents, features), or one array (lookback, features_i) for each agent if the
        features were given so.
    forecasts: Ŷ, shape (lookback + 1, agents, y_dim); row 0 is the start.
    conditions: condition number of the matrix that couples the agents, its rows and columns scaled, at each step (1 is
        best).
    rule: the feedback rule behind it, for `respond` and `certify`; None in a game of the caller's own.
    problem: the game itself.
    """

    decoders: np.ndarray | list[np.ndarray]
    forecasts: np.ndarray
    conditions: np.ndarray
    rule: FeedbackRule | None
    problem: Problem


def solve_game(
    features: Features,
    weights: np.ndarray,
    targets: np.ndarray,
    start: np.ndarray,
    *,
    ridge: float | np.ndarray,
    decay: float | np.ndarray = 0.0,
    means: Features | None = None,
    covariance: np.ndarray | Sequence[np.ndarray | None] | None = None,
    prior: Features | None = None,
    compiled: bool | None = None,
) -> Equilibrium:
    r"""Solve the look-back game exactly and play it from `start` (Theorem 2, with its recursion corrected).

    features: $Z_t^i$ as drawn. One array (lookback, agents, y_dim, features), or, for agents of different sizes, a
        sequence with one array (lookback, y_dim, features_i) for each.
    weights: $w_t^i$, shape (lookback, agents).   targets: $y_{t+1}$, shape (lookback, y_dim).
    start: $\hat Y_0^i$, shape (y_dim,) for all agents alike or (agents, y_dim).
    ridge: $\gamma_i > 0$ and decay: $\alpha_i \ge 0$, one number or one for each agent.
    means: $E[Z_t^i]$ of random features, shaped as `features`; if left out, features are deterministic.
    covariance: $Cov(row\ k, row\ l\ of\ Z_t^i)$, shape (lookback, agents, y_dim, y_dim, features, features), or a
        sequence with one array without the agents axis, or None for a deterministic agent. It must be symmetric and
        positive semi-definite, which is not checked.
    prior: $\bar\beta_t^i$ the ridge is centred on (zero in the paper), shape (lookback, agents, features), or one
        array (lookback, features_i) for each agent.
    compiled: whether the compiled solver is used (extra `fast`); None: from 200 agents on, where numba is installed.

    Raises `InvalidInput` for arguments that do not fit, `SingularGame` where no unique equilibrium exists and its
    subclass `IllConditionedGame` where rounding leaves too few digits of it.
    """
    pack = _pack_alike if isinstance(features, np.ndarray) else _pack_each
    layout, drawn, expected, spread, centre = pack(features, means, covariance, prior)
    N, p, T = layout.agents, layout.y_dim, len(drawn)
    problem = Problem(
        layout, drawn, expected, spread, centre,
        check.array("weights", weights, (T, N), "(lookback, agents)"),
        check.array("targets", targets, (T, p), "(lookback, y_dim)"),
        _start(start, N, p),
        check.per_agent("ridge", ridge, N),
        check.per_agent("decay", decay, N),
    )  # fmt: skip
    check.in_range("ridge", problem.ridge, above=0.0)
    check.in_range("decay", problem.decay, min=0.0)
    solved = solve_problem(problem, compiled)
    flat = np.asarray(solved.decoders)
    if isinstance(features, np.ndarray):
        return solved._replace(decoders=flat.reshape(T, N, -1))
    return solved._replace(decoders=np.split(flat, layout.decoders[1:-1], axis=1))


def solve_problem(problem: Problem, compiled: bool | None = None) -> Equilibrium:
    """`solve_game` for a problem whose arrays are checked; decoders come back in flat rows."""
    if compiled is None:
        compiled = problem.layout.agents >= COMPILED_FROM and has_numba()
    # Numbers that overflow end in an error; NumPy's warnings are redundant.
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        solved = _solve(problem, compiled)
    return Equilibrium(solved.decoders, solved.forecasts, solved.conditions, solved.rule, problem)


def _solve(problem: Problem, compiled: bool) -> Solution:
    """Solve by the O(N) recursion; where that loses digits and agents are few, in root form."""
    try:
        solved = (_compiled_solve if compiled else reference.solve)(problem)
        if solved.growth <= PRECISE or not root_solver.fits(problem):
            return solved
    except SingularGame:
        if not root_solver.fits(problem):
            raise
    return root_solver.solve(problem, compiled)


def _compiled_solve(problem: Problem) -> Solution:
    need_numba("compiled")
    from nashcast.games.lookback.compiled.solve import solve

    return solve(problem)


def feedback_rule(equilibrium: Equilibrium) -> FeedbackRule:
    """The feedback rule; raises InvalidInput if there is none."""
    if equilibrium.rule is None:
        got = "a game solved by a function of your own, without feedback rules"
        raise InvalidInput("equilibrium", got, "Pass what `solve_game` returned.")
    return equilibrium.rule


def respond(equilibrium: Equilibrium, step: int, forecasts: np.ndarray) -> np.ndarray | list[np.ndarray]:
    """The decoders the agents play at `step` if their forecasts are `forecasts`, on the played path or off it.

    forecasts: shape (agents, y_dim).   Returns (agents, features), or one array for each agent.
    """
    problem = equilibrium.problem
    T, N, p = len(problem.targets), problem.layout.agents, problem.layout.y_dim
    if not 0 <= check.integer("step", step, min=0) < T:
        raise InvalidInput("step", f"{step}", f"Pass a step from 0 to {T - 1}.")
    state = check.array("forecasts", forecasts, (N, p), "(agents, y_dim)")
    rule = feedback_rule(equilibrium).step(step)
    if isinstance(rule, StateRule):
        decoders = [matrix @ np.append(state.ravel(), 1.0) for matrix in rule.matrices]
        return decoders if isinstance(equilibrium.decoders, list) else np.stack(decoders)
    zeta = rule.carry @ (problem.weights[step:][::-1] @ state).ravel() + rule.shift
    pull = zeta @ rule.slope + rule.offset
    decoders = [centre - gain @ own for centre, gain, own in zip(rule.centre, rule.gain, pull, strict=True)]
    return decoders if isinstance(equilibrium.decoders, list) else np.stack(decoders)


def _pack_alike(features, means, covariance, prior):
    Z = check.of_rank("features", features, ("lookback", "agents", "y_dim", "features"))
    T, N, p, d = Z.shape

    def flat(name, value, shape, meaning):
        return check.array(name, value, shape, meaning).reshape(T, -1)

    drawn = expected = flat("features", Z, Z.shape, "(lookback, agents, y_dim, features)")
    spread = centre = NOTHING
    if means is not None:
        expected = flat("means", means, Z.shape, "(lookback, agents, y_dim, features)")
    if covariance is not None:
        meaning = "(lookback, agents, y_dim, y_dim, features, features)"
        spread = flat("covariance", covariance, (T, N, p, p, d, d), meaning)
    if prior is not None:
        centre = flat("prior", prior, (T, N, d), "(lookback, agents, features)")
    return layout_alike(N, d, p, covariance is not None), drawn, expected, spread, centre


def _pack_each(features, means, covariance, prior):
    N = _count("features", features)
    if N == 0:
        raise InvalidInput("features", "no agents", "Pass at least one agent's features.")
    first = check.numbers("features[0]", features[0], "(lookback, y_dim, features)")
    if first.ndim != 3 or 0 in first.shape[:2]:
        remedy = "Pass an array (lookback, y_dim, features) with at least one step and one target."
        raise InvalidInput("features[0]", f"shape {check.shape_text(first.shape)}", remedy)
    T, p = first.shape[:2]
    sizes = tuple(np.shape(Z)[-1] if np.ndim(Z) == 3 else 0 for Z in features)

    def flat(name, values, shape_of, meaning):
        if _count(name, values) != N:
            raise InvalidInput(name, f"{len(values)} entries", f"Pass one for each of the {N} agents.")
        blocks = [
            check.array(f"{name}[{i}]", value, shape_of(sizes[i]), meaning).reshape(T, -1)
            for i, value in enumerate(values)
            if not (value is None and name == "covariance")
        ]
        return np.concatenate(blocks, axis=1) if blocks else NOTHING

    drawn = expected = flat("features", features, lambda d: (T, p, d), "(lookback, y_dim, features)")
    noisy = (False,) * N
    spread = centre = NOTHING
    if means is not None:
        expected = flat("means", means, lambda d: (T, p, d), "(lookback, y_dim, features)")
    if covariance is not None:
        meaning = "(lookback, y_dim, y_dim, features, features)"
        spread = flat("covariance", covariance, lambda d: (T, p, p, d, d), meaning)
        noisy = tuple(block is not None for block in covariance)
    if prior is not None:
        centre = flat("prior", prior, lambda d: (T, d), "(lookback, features)")
    return layout_each(sizes, p, noisy), drawn, expected, spread, centre


def _count(name, values) -> int:
    if not isinstance(values, Sequence):
        raise InvalidInput(name, check.describe(values), "Pass a list with one array for each agent.")
    return len(values)


def _start(start, N, p) -> np.ndarray:
    if np.ndim(start) == 2:
        return check.array("start", start, (N, p), "(agents, y_dim)")
    return np.broadcast_to(check.array("start", start, (p,), "(y_dim,) or (agents, y_dim)"), (N, p))
