"""Theorem 2: the look-back game's exact feedback Nash equilibrium, for any number of agents.

Agent i steers its decoders β_0 … β_{T-1}; its forecast moves by Ŷ_{t+1} = Ŷ_t + Z_t β_t; it pays
Σ_t exp(-α_i(T-1-t)) · (‖y_{t+1} - Σ_j w_t^j Ŷ_{t+1}^j‖² + γ_i‖β_t - β̄_t‖²). Agents meet only in the mixture, so the
equilibrium costs O(N): docs/explanation/game.md. Here arguments are checked and packed; `game_passes` solves.
"""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock
from typing import NamedTuple

import numpy as np
from numba import prange

from nashcast import validation as check
from nashcast.errors import InvalidInput, SingularGame
from nashcast.maths.compiled import for_one_and_many_cores
from nashcast.maths.game_passes import play, play_on_many_cores
from nashcast.maths.game_plan import DECODER, FEATURES, PARTS, SIZE, Plan, plan_for_alike, plan_for_each
from nashcast.maths.game_rule import FeedbackRule, step_rule
from nashcast.maths.lanes import address, finite_between

# From this many on the threads' start-up is small beside their work.
MANY_AGENTS = 8192
# Not every threading layer numba may find can be entered twice at a time, and the cores are busy anyway.
_ALL_CORES = Lock()

Features = np.ndarray | Sequence[np.ndarray]


class Problem(NamedTuple):
    """A game as it was solved; what belongs to agents of different sizes lies in flat rows, as `plan` says."""

    plan: Plan
    features: np.ndarray  # Z as drawn
    means: np.ndarray  # E[Z]; the same array where nothing is random
    covariance: np.ndarray
    prior: np.ndarray
    weights: np.ndarray
    targets: np.ndarray
    ridge: np.ndarray
    decay: np.ndarray


class Equilibrium(NamedTuple):
    """The solved game, played from its start.

    decoders: β, shape (lookback, agents, features), or one array (lookback, features_i) for each agent if the
        features were given so.
    forecasts: Ŷ, shape (lookback + 1, agents, y_dim); row 0 is the start.
    conditions: condition number of the matrix that couples the agents, at each step (1 is best).
    rule: the feedback rule behind it, for `respond` and `certify`.   problem: the game itself.
    """

    decoders: np.ndarray | list[np.ndarray]
    forecasts: np.ndarray
    conditions: np.ndarray
    rule: FeedbackRule
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
) -> Equilibrium:
    r"""Solve the look-back game exactly and play it from `start` (Theorem 2, with its recursion corrected).

    features: $Z_t^i$ as drawn. One array (lookback, agents, y_dim, features), or, for agents of different sizes, a
        sequence with one array (lookback, y_dim, features_i) for each.
    weights: $w_t^i$, shape (lookback, agents).   targets: $y_{t+1}$, shape (lookback, y_dim).
    start: $\hat Y_0^i$, shape (y_dim,) for all agents alike or (agents, y_dim).
    ridge: $\gamma_i > 0$ and decay: $\alpha_i \ge 0$, one number or one for each agent.
    means: $E[Z_t^i]$ of random features, shaped as `features`; left out, the features are what was expected.
    covariance: $Cov(row\ k, row\ l\ of\ Z_t^i)$, shape (lookback, agents, y_dim, y_dim, features, features), or a
        sequence with one array without the agents axis, or None for a deterministic agent. It must be one (symmetric,
        positive semi-definite): that is not checked.
    prior: $\bar\beta_t^i$ the ridge is centred on (zero in the paper), shape (lookback, agents, features), or one
        array (lookback, features_i) for each agent.

    Raises `InvalidInput` for arguments that do not fit and `SingularGame` where no unique equilibrium exists.
    """
    pack = _pack_alike if isinstance(features, np.ndarray) else _pack_each
    plan, drawn, expected, spread, centre = pack(features, means, covariance, prior)
    N, p, T = plan.shape[:3]
    weights = check.shaped("weights", weights, (T, N), "(lookback, agents)")
    targets = check.shaped("targets", targets, (T, p), "(lookback, y_dim)")
    gamma = check.per_agent("ridge", ridge, N)
    alpha = check.per_agent("decay", decay, N)
    solved = solve_flat(plan, drawn, expected, spread, centre, weights, targets, _start(start, N, p), gamma, alpha)
    flat = np.asarray(solved.decoders)
    if isinstance(features, np.ndarray):
        return Equilibrium(flat.reshape(T, N, -1), *solved[1:])
    return Equilibrium(np.split(flat, plan.agents[1:-1, DECODER], axis=1), *solved[1:])


def solve_flat(
    plan: Plan, drawn, expected, spread, centre, weights, targets, start, gamma, alpha
) -> Equilibrium:  # fmt: skip
    """`solve_game` for arrays already in flat rows of the right shapes; decoders come back in flat rows too."""
    N, p, T = plan.shape[:3]
    problem = Problem(plan, drawn, expected, spread, centre, weights, targets, gamma, alpha)
    forecasts = np.empty((T + 1, N, p))
    forecasts[0] = start
    decoders = np.empty((T, plan.agents[N, DECODER]))
    common, work = np.empty(plan.common), np.empty(plan.work)
    to_check = (drawn, NOTHING if drawn is expected else expected, *problem[3:], forecasts[0])
    to_solve = (
        plan.header, plan.agents, plan.chunks, expected, drawn, spread, weights, targets, alpha, gamma,
        centre, common, work, decoders, forecasts, drawn is expected,
    )  # fmt: skip
    if N < MANY_AGENTS:
        usable = _usable(*to_check, 1)
        singular = play(*to_solve) if usable else -1
    else:
        with _ALL_CORES:
            usable = _usable_on_many_cores(*to_check, PARTS)
            singular = play_on_many_cores(*to_solve) if usable else -1
    if not usable:
        _complain(problem, start)
    conditions = common[plan.conditions : plan.conditions + T][::-1]
    if singular >= 0:
        raise SingularGame(singular, float(conditions[singular]))
    return Equilibrium(decoders, forecasts, conditions, FeedbackRule(plan, weights, common, work), problem)


def _check_numbers(features, means, covariance, prior, weights, targets, ridge, decay, start, parts):
    """Whether all numbers are finite and in range; one compiled call, since NumPy's nine cost more than the game."""
    bad = 0
    for part in prange(parts):
        for memory, size in (
            (address(features), features.size), (address(means), means.size), (address(covariance), covariance.size),
            (address(prior), prior.size), (address(weights), weights.size), (address(targets), targets.size),
            (address(start), start.size), (address(ridge), ridge.size), (address(decay), decay.size),
        ):  # fmt: skip
            bad += not finite_between(memory, part * size // parts, (part + 1) * size // parts)
        for i in range(part * len(ridge) // parts, (part + 1) * len(ridge) // parts):
            bad += not (ridge[i] > 0.0 and decay[i] >= 0.0)
    return bad == 0


_usable, _usable_on_many_cores = for_one_and_many_cores(_check_numbers)


def _complain(problem: Problem, start: np.ndarray) -> None:
    """Name the argument that is not usable. Arrays in flat rows were checked one agent at a time before."""
    check.in_range("ridge", problem.ridge, above=0.0)
    check.in_range("decay", problem.decay, min=0.0)
    for name in ("weights", "targets"):
        check.finite(name, getattr(problem, name))
    check.finite("start", start)
    N, p, T = problem.plan.shape[:3]
    d = problem.plan.agents[0, SIZE]
    check.finite("features", problem.features.reshape(T, N, p, d))
    check.finite("means", problem.means.reshape(T, N, p, d))
    check.finite("covariance", problem.covariance.reshape(-1, N, p, p, d, d))
    check.finite("prior", problem.prior.reshape(-1, N, d))


def respond(equilibrium: Equilibrium, step: int, forecasts: np.ndarray) -> np.ndarray | list[np.ndarray]:
    """The decoders the agents play at `step` if their forecasts stand at `forecasts`, on the played path or off it.

    forecasts: shape (agents, y_dim).   Returns (agents, features), or one array for each agent.
    """
    plan, weights = equilibrium.rule.plan, equilibrium.rule.weights
    N, p, T = plan.shape[:3]
    if not 0 <= check.integer("step", step, min=0) < T:
        raise InvalidInput("step", f"{step}", f"Pass a step from 0 to {T - 1}.")
    state = check.array("forecasts", forecasts, (N, p), "(agents, y_dim)")
    rule = step_rule(equilibrium.rule, step)
    zeta = rule.carry @ (weights[step:][::-1] @ state).ravel() + rule.shift
    pull = np.einsum("nkp,k->np", rule.slope, zeta) + rule.offset
    decoders = rule.centre - np.concatenate(
        [rule.gain[first[FEATURES] : last[FEATURES]].reshape(-1, p) @ pull[i]
         for i, (first, last) in enumerate(zip(plan.agents[:-1], plan.agents[1:], strict=True))]
    )  # fmt: skip
    if isinstance(equilibrium.decoders, list):
        return np.split(decoders, plan.agents[1:-1, DECODER])
    return decoders.reshape(N, -1)


NOTHING = np.empty((1, 0))


def _pack_alike(features, means, covariance, prior):
    Z = check.of_rank("features", features, ("lookback", "agents", "y_dim", "features"))
    T, N, p, d = Z.shape
    plan = plan_for_alike(N, d, p, T, covariance is not None, prior is not None)

    def flat(name, value, shape, meaning):
        return check.shaped(name, value, shape, meaning).reshape(T, -1)

    drawn = expected = Z.reshape(T, -1)
    spread = centre = NOTHING
    if means is not None:
        expected = flat("means", means, Z.shape, "(lookback, agents, y_dim, features)")
    if covariance is not None:
        meaning = "(lookback, agents, y_dim, y_dim, features, features)"
        spread = flat("covariance", covariance, (T, N, p, p, d, d), meaning)
    if prior is not None:
        centre = flat("prior", prior, (T, N, d), "(lookback, agents, features)")
    return plan, drawn, expected, spread, centre


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
    return plan_for_each(sizes, p, T, noisy, prior is not None), drawn, expected, spread, centre


def _count(name, values) -> int:
    if not isinstance(values, Sequence):
        raise InvalidInput(name, check.describe(values), "Pass a list with one array for each agent.")
    return len(values)


def _start(start, N, p):
    if np.ndim(start) == 2:
        return check.shaped("start", start, (N, p), "(agents, y_dim)")
    return check.shaped("start", start, (p,), "(y_dim,) or (agents, y_dim)")
