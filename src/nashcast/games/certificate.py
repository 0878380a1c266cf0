"""The certificate: what each agent could gain by its best deviation, computed without the solver.

Fix the other agents' rules. Agent i then has a linear-quadratic control problem. Its optimal control is computed here
from the definition alone: the dynamics, the costs and the rules. The gain is summed as ‖U(β - β*)‖² along the play,
with β* the best response and UᵀU its curvature, so it is not lost in the rounding of two nearly equal costs.
Costs, best costs and gains are stored as matrices R with value = ‖R·state‖², in units of the present step's discount.

A state is [W; 1], with W the forecasts weighted by each step from the last of the window back to the present one, which
all costs and rules depend on; or [Ŷ; 1] with all forecasts, where the rules are given over these.

It assumes what Theorem 2 assumes: that a step's features are independent of the forecasts before it, given its moments.
An encoder with memory (an echo state) breaks that: docs/explanation/errata.md, number 14.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from nashcast import validation as check
from nashcast.errors import InvalidInput
from nashcast.games.lookback.game import Equilibrium, feedback_rule
from nashcast.games.lookback.problem import Problem, StateRule

# Forecasts are float64: a gain from changing them by this many units of their last digit is rounding.
ROUNDING = 16 * np.finfo(np.float64).eps


class Certificate(NamedTuple):
    """For every step and agent, cost and possible gain as functions of the state; see `gains` and `costs`."""

    problem: Problem
    cost_roots: list[
        np.ndarray
    ]  # step t: (agents, rows, state), cost = ‖root · state‖² in units of the step's discount
    gain_roots: list[np.ndarray]  # likewise
    over_forecasts: bool  # states are [Ŷ; 1], not [W; 1]
    assumes: str = "a step's features are independent of the forecasts before it; encoders with memory break this"

    def costs(self, step: int = 0, forecasts: np.ndarray | None = None) -> np.ndarray:
        """Each agent's expected cost from `step` on, if agents' forecasts are `forecasts` (the start if left out)."""
        x = self._state(step, forecasts)
        return self._unit(step) * np.sum((self.cost_roots[step] @ x) ** 2, axis=1)

    def gains(self, step: int = 0, forecasts: np.ndarray | None = None) -> np.ndarray:
        """What each agent could save from `step` on by its best deviation; 0 up to rounding at an equilibrium."""
        x = self._state(step, forecasts)
        return self._unit(step) * np.sum((self.gain_roots[step] @ x) ** 2, axis=1)

    @property
    def worst(self) -> float:
        """The largest gain from the start, as a share of the agent's cost.

        The rounding of forecasts and targets does not count as a gain: a mixture that fits perfectly has a cost of
        rounding errors, of which a deviation can always save a part.
        """
        game = self.problem
        size = np.max(np.abs(game.targets)) + np.max(np.abs(game.weights) @ np.abs(game.start))
        discounts = np.exp(-np.outer(game.decay, np.arange(len(game.targets)))).sum(axis=1)
        least = game.layout.y_dim * (ROUNDING * size) ** 2 * discounts
        gains, costs = np.maximum(self.gains() - least, 0.0), self.costs()
        return float(np.max(np.divide(gains, costs, out=np.zeros_like(gains), where=gains > 0)))

    def _unit(self, step: int) -> np.ndarray:
        return np.exp(-self.problem.decay * (len(self.problem.targets) - 1 - step))

    def _state(self, step, forecasts):
        T, start = len(self.gain_roots), self.problem.start
        if not 0 <= check.integer("step", step, min=0) < T:
            raise InvalidInput("step", f"{step}", f"Pass a step from 0 to {T - 1}.")
        if forecasts is None and step > 0:
            raise InvalidInput("forecasts", "nothing", f"Pass the agents' forecasts at step {step}.")
        state = check.array("forecasts", start if forecasts is None else forecasts, start.shape, "(agents, y_dim)")
        seen = state if self.over_forecasts else self.problem.weights[step:][::-1] @ state
        return np.append(seen.ravel(), 1.0)


def certify(equilibrium: Equilibrium) -> Certificate:
    """Check by the definition how close the rules of a solved game are to an equilibrium.

    Costs O(agents) matrix products of the size of the window, in plain NumPy: for showing and testing, not for a loop.
    """
    problem = equilibrium.problem
    over_forecasts = isinstance(feedback_rule(equilibrium).step(0), StateRule)
    after = _Roots(None, None, None)
    cost_roots, gain_roots = [], []
    for t in reversed(range(len(problem.targets))):
        after = _one_step_back(equilibrium, t, after, over_forecasts)
        cost_roots.append(after.cost)
        gain_roots.append(after.gain)
    return Certificate(problem, cost_roots[::-1], gain_roots[::-1], over_forecasts)


class _Roots(NamedTuple):
    """Roots of each agent's quadratics from one step on, (agents, n, n); None after the last step."""

    best: Any  # the cost of its best response
    cost: Any  # the cost of its rule
    gain: Any  # the saving by the best response


class _Frame(NamedTuple):
    """The layout of one step's states."""

    size: int  # length of a state, without its 1
    shares: list[np.ndarray]  # how each agent's forecast enters it, (size, y_dim)
    mixture: np.ndarray  # the mixture of this step, (y_dim, size)
    next_state: np.ndarray  # the places of the next step's state in this one's, its 1 included


def _frame(problem: Problem, t: int, over_forecasts: bool) -> _Frame:
    N, p, T = problem.layout.agents, problem.layout.y_dim, len(problem.targets)
    one = np.eye(p)
    if over_forecasts:
        shares = [np.kron(unit[:, None], one) for unit in np.eye(N)]
        return _Frame(N * p, shares, np.kron(problem.weights[t], one), np.arange(N * p + 1))
    k = (T - t) * p
    shares = [np.kron(problem.weights[t:, i][::-1][:, None], one) for i in range(N)]
    return _Frame(k, shares, np.eye(k)[k - p :], np.append(np.arange(k - p), k))


def _one_step_back(equilibrium, t, after: _Roots, over_forecasts) -> _Roots:
    problem = equilibrium.problem
    layout = problem.layout
    N = layout.agents
    frame = _frame(problem, t, over_forecasts)
    n = frame.size + 1
    rules = _rules(equilibrium, t)
    pushes, spreads = _pushes_and_spreads(problem, t, frame)

    motion = np.eye(n)
    tensor = np.zeros((n, n, n - 1, n - 1)) if any(spread is not None for spread in spreads) else None
    for i in range(N):
        motion += pushes[i] @ rules[i]
        if spreads[i] is not None:
            tensor += _noise_of(frame.shares[i], spreads[i], rules[i])

    miss = np.column_stack([frame.mixture, -problem.targets[t]])
    found = _Roots(*(np.empty((N, n, n)) for _ in range(3)))
    for i in range(N):
        grown = np.exp(problem.decay[i] / 2.0)
        best, cost, gain = (_widen(roots, i, frame, grown) for roots in after)
        best, cost = np.vstack([miss, best]), np.vstack([miss, cost])
        d = layout.sizes[i]
        centre = np.zeros((d, n))
        if problem.prior.size:
            centre[:, -1] = problem.prior[t, layout.decoders[i] : layout.decoders[i + 1]]
        effort = np.sqrt(problem.ridge[i])

        # Best response: minimise over β the expected value after the step, given the others' rules.
        others = motion - pushes[i] @ rules[i]
        noise, own = tensor, np.zeros((0, d))
        if spreads[i] is not None:
            noise = tensor - _noise_of(frame.shares[i], spreads[i], rules[i])
            own = _root(_own_noise(frame.shares[i], spreads[i], best[:, :-1]))
        rows = [
            np.hstack([best @ pushes[i], best @ others]),
            np.hstack([effort * np.eye(d), -effort * centre]),
            np.hstack([own, np.zeros((len(own), n))]),
            np.zeros((n + d, n + d)),
        ]
        factor = np.asarray(np.linalg.qr(np.vstack(rows), mode="r"))
        curvature, slope = factor[:d, :d], factor[:d, d:]
        response = -np.linalg.solve(curvature, slope) if d else np.zeros((0, n))
        found.best[i] = _stacked(factor[d:, d:], _noise_root(noise, best))
        found.cost[i] = _stacked(cost @ motion, effort * (rules[i] - centre), _noise_root(tensor, cost))
        found.gain[i] = _stacked(curvature @ (rules[i] - response), gain @ motion, _noise_root(tensor, gain))
    return found


def _rules(equilibrium, t) -> list[np.ndarray]:
    """Each agent's rule as one matrix: β = rule @ state."""
    step = feedback_rule(equilibrium).step(t)
    if isinstance(step, StateRule):
        return step.matrices
    zeta = np.column_stack([step.carry, step.shift])
    rules = []
    for slope, offset, gain, centre in zip(step.slope, step.offset, step.gain, step.centre, strict=True):
        pull = slope.T @ zeta
        pull[:, -1] += offset
        rule = -gain @ pull
        rule[:, -1] += centre
        rules.append(rule)
    return rules


def _pushes_and_spreads(problem, t, frame):
    """The mean effect of a decoder on the state, (size + 1, d) for each agent; its features' covariance, or None."""
    layout = problem.layout
    p, pushes, spreads = layout.y_dim, [], []
    for i, d in enumerate(layout.sizes):
        mean = problem.means[t, layout.features[i] : layout.features[i + 1]].reshape(p, d)
        pushes.append(np.vstack([frame.shares[i] @ mean, np.zeros((1, d))]))
        first, last = layout.covariance[i : i + 2]
        spreads.append(problem.covariance[t, first:last].reshape(p, p, d, d) if last > first else None)
    return pushes, spreads


def _noise_of(share, spread, rule):
    """tensor[x, y, m, n]: the next state's Cov of m and n is stateᵀ tensor[:, :, m, n] state, from one agent."""
    return np.einsum("ma,nb,fx,abfg,gy->xymn", share, share, rule, spread, rule, optimize=True)


def _own_noise(share, spread, root):
    seen = root @ share
    return np.einsum("ab,abfg->fg", seen.T @ seen, spread)


def _noise_root(tensor, root):
    """The root of the value that noise adds to the value with this root."""
    if tensor is None:
        return np.zeros((0, root.shape[1]))
    return _root(np.einsum("xymn,mn->xy", tensor, root[:, :-1].T @ root[:, :-1]))


def _root(form):
    """R with RᵀR = form, for a form that is positive up to rounding."""
    squares, directions = np.linalg.eigh((form + form.T) / 2.0)
    return np.sqrt(np.maximum(squares, 0.0))[:, None] * directions.T


def _stacked(*roots):
    """One square root of the sum of these roots' values."""
    n = roots[0].shape[1]
    return np.asarray(np.linalg.qr(np.vstack([*roots, np.zeros((n, n))]), mode="r"))


def _widen(roots, i, frame, grown):
    """A root of the next step as a root over this step's state, in units of this step."""
    n = frame.size + 1
    if roots is None:
        return np.zeros((0, n))
    wide = np.zeros((roots.shape[1], n))
    wide[:, frame.next_state] = grown * roots[i]
    return wide
