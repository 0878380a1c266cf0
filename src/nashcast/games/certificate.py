"""The certificate: what each agent could still gain by playing anything else, found without the solver.

Fix the other agents' rules. What agent i faces is then a linear-quadratic control problem in the agents' weighted
forecasts, which all costs and all rules depend on. Its optimal control is worked out here from the definition alone:
the dynamics, the costs and the rules. The gain is added up as (β - β*)ᵀ H (β - β*) along the play, with β* the best
response and H its curvature, so it does not drown in the rounding of two nearly equal costs. The cost is kept as a
matrix R with cost = ‖R [W; 1]‖², so that a mixture that fits almost perfectly still has a small positive cost.

States are written [W; 1], with W the forecasts weighted by each step from the last of the window back to the present
one, so that every rule, motion and value is one matrix.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nashcast import validation as check
from nashcast.errors import InvalidInput
from nashcast.games.lookback.game import Equilibrium


class Certificate(NamedTuple):
    """For every step and agent, cost and possible gain as functions of the state [W; 1]; see `gains` and `costs`."""

    weights: np.ndarray
    cost_roots: list[np.ndarray]  # step t: (agents, k + 1, k + 1), cost = ‖root · [W; 1]‖²
    gain_forms: list[np.ndarray]  # step t: (agents, k + 1, k + 1), gain = [W; 1]ᵀ · form · [W; 1]
    start: np.ndarray

    def costs(self, step: int = 0, forecasts: np.ndarray | None = None) -> np.ndarray:
        """Each agent's expected cost from `step` on, if its forecasts stand at `forecasts` (the start if left out)."""
        x = self._state(step, forecasts)
        return np.sum((self.cost_roots[step] @ x) ** 2, axis=1)

    def gains(self, step: int = 0, forecasts: np.ndarray | None = None) -> np.ndarray:
        """What each agent could save from `step` on by its best deviation; 0 up to rounding at an equilibrium."""
        x = self._state(step, forecasts)
        return np.einsum("x,nxy,y->n", x, self.gain_forms[step], x)

    @property
    def worst(self) -> float:
        """The largest gain from the start, as a share of the agent's cost."""
        gains, costs = self.gains(), self.costs()
        return float(np.max(np.divide(gains, costs, out=np.zeros_like(gains), where=gains > 0)))

    def _state(self, step, forecasts):
        T = len(self.gain_forms)
        if not 0 <= check.integer("step", step, min=0) < T:
            raise InvalidInput("step", f"{step}", f"Pass a step from 0 to {T - 1}.")
        if forecasts is None and step > 0:
            raise InvalidInput("forecasts", "nothing", f"Pass the agents' forecasts at step {step}.")
        state = check.array(
            "forecasts", self.start if forecasts is None else forecasts, self.start.shape, "(agents, y_dim)"
        )
        return np.append((self.weights[step:][::-1] @ state).ravel(), 1.0)


def certify(equilibrium: Equilibrium) -> Certificate:
    """How close to an equilibrium the rules of a solved game are, checked against the definition.

    Costs O(agents) matrix products of the size of the window, in plain NumPy: for showing and testing, not for a loop.
    """
    problem = equilibrium.problem
    T = len(problem.targets)
    best = root = gain = None
    cost_roots, gain_forms = [], []
    for t in reversed(range(T)):
        best, root, gain = _one_step_back(equilibrium, t, best, root, gain)
        cost_roots.append(root)
        gain_forms.append(gain)
    return Certificate(problem.weights, cost_roots[::-1], gain_forms[::-1], equilibrium.forecasts[0])


def _one_step_back(equilibrium, t, best, root, gain):
    problem = equilibrium.problem
    layout, w = problem.layout, problem.weights
    N, p, T = layout.agents, layout.y_dim, len(problem.targets)
    k = (T - t) * p
    rules = _rules(equilibrium, t)
    pushes, spreads = _pushes_and_spreads(problem, t)

    motion = np.eye(k + 1)
    tensor = np.zeros((k + 1, k + 1, k, k))
    for i in range(N):
        motion += pushes[i] @ rules[i]
        if spreads[i] is not None:
            tensor += _noise_of(w[t:, i], spreads[i], rules[i])

    after = tuple(np.empty((N, k + 1, k + 1)) for _ in range(3))
    for i in range(N):
        c = np.exp(-problem.decay[i] * (T - 1 - t))
        miss = np.zeros((p, k + 1))
        miss[:, k - p : k], miss[:, k] = np.eye(p), -problem.targets[t]
        next_best = c * miss.T @ miss + _widen(best, i, k, p)
        next_root = np.vstack([np.sqrt(c) * miss, _widen(root, i, k, p)])
        next_gain = _widen(gain, i, k, p)

        penalty = c * problem.ridge[i]
        d = layout.sizes[i]
        centre = np.zeros((d, k + 1))
        if problem.prior.size:
            centre[:, k] = problem.prior[t, layout.decoders[i] : layout.decoders[i + 1]]

        # Best response: minimise over β the expected value after the step, given what the others do.
        others = motion - pushes[i] @ rules[i]
        curvature = penalty * np.eye(d) + pushes[i].T @ next_best @ pushes[i]
        noise = tensor
        if spreads[i] is not None:
            curvature = curvature + _own_noise(w[t:, i], spreads[i], next_best[:k, :k])
            noise = tensor - _noise_of(w[t:, i], spreads[i], rules[i])
        slope = pushes[i].T @ next_best @ others - penalty * centre
        response = -np.linalg.solve(curvature, slope) if d else np.zeros((0, k + 1))
        fixed = others.T @ next_best @ others + _contract(noise, next_best) + penalty * centre.T @ centre
        after[0][i] = fixed + slope.T @ response

        noise_root = _root(_contract(tensor, next_root.T @ next_root))
        pieces = [next_root @ motion, np.sqrt(penalty) * (rules[i] - centre), noise_root, np.zeros((k + 1, k + 1))]
        after[1][i] = np.linalg.qr(np.vstack(pieces), mode="r")
        regret = rules[i] - response
        later = motion.T @ next_gain @ motion + _contract(tensor, next_gain)
        after[2][i] = regret.T @ curvature @ regret + later
    return after


def _rules(equilibrium, t) -> list[np.ndarray]:
    """Each agent's rule as one matrix: β = rule @ [W; 1]."""
    step = equilibrium.rule.step(t)
    zeta = np.column_stack([step.carry, step.shift])
    rules = []
    for slope, offset, gain, centre in zip(step.slope, step.offset, step.gain, step.centre, strict=True):
        pull = slope.T @ zeta
        pull[:, -1] += offset
        rule = -gain @ pull
        rule[:, -1] += centre
        rules.append(rule)
    return rules


def _pushes_and_spreads(problem, t):
    """How a decoder moves [W; 1] in the mean, (k + 1, d) for each agent; and its features' covariance, or None."""
    layout = problem.layout
    p, pushes, spreads = layout.y_dim, [], []
    for i, d in enumerate(layout.sizes):
        mean = problem.means[t, layout.features[i] : layout.features[i + 1]].reshape(p, d)
        weights = problem.weights[t:, i][::-1]
        pushes.append(np.vstack([np.kron(weights[:, None], mean), np.zeros((1, d))]))
        first, last = layout.covariance[i : i + 2]
        spreads.append(problem.covariance[t, first:last].reshape(p, p, d, d) if last > first else None)
    return pushes, spreads


def _weighting(weights, p):
    """W's share of one agent's forecast: (k, p)."""
    return np.kron(weights[::-1][:, None], np.eye(p))


def _noise_of(weights, spread, rule):
    """tensor[x, y, m, n]: Cov(W_m, W_n) after the step is [W; 1]ᵀ tensor[:, :, m, n] [W; 1], from one agent's noise."""
    share = _weighting(weights, len(spread))
    return np.einsum("ma,nb,fx,abfg,gy->xymn", share, share, rule, spread, rule, optimize=True)


def _own_noise(weights, spread, value):
    share = _weighting(weights, len(spread))
    return np.einsum("ab,abfg->fg", share.T @ value @ share, spread)


def _contract(tensor, value):
    k = tensor.shape[-1]
    return np.einsum("xymn,mn->xy", tensor, value[:k, :k])


def _root(form):
    """R with RᵀR = form, for a form that is positive up to rounding."""
    squares, directions = np.linalg.eigh(form)
    return np.sqrt(np.maximum(squares, 0.0))[:, None] * directions.T


def _widen(forms, i, k, p):
    """A value of the step after, which no longer knows the weights of this one, as a value of this step's state."""
    wide = np.zeros((k + 1, k + 1))
    if forms is not None:
        keep = np.append(np.arange(k - p), k)
        wide[np.ix_(keep, keep)] = forms[i]
    return wide
