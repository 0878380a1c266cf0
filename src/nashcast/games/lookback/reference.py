"""Theorem 2 in plain NumPy, as docs/explanation/game.md derives it: the specification of every other solver here.

Arrays stack agents along their first axis, N of them. Functionals of the agents' forecasts are numbered from the end of
the window, so a step further back appends y_dim of them. An agent's side and the server's side are separate functions:
no agent's function sees another agent's numbers, and the server's functions see sums over agents only.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nashcast.games.lookback.coupling import Condition, check_existence, growth, invert
from nashcast.games.lookback.problem import Group, Layout, Problem, Solution, StepRule


class Value(NamedTuple):
    """The agents' value functions, quadratics of the k functionals."""

    kappa: np.ndarray  # κ, (N, k, k)
    sigma: np.ndarray  # σ, (N, k)


class Answers(NamedTuple):
    """How the agents of one group answer the common ζ: β = centre - gain (uᵀζ + s)."""

    gain: np.ndarray  # e = E⁻¹mᵀ, (n, d, p)
    centre: np.ndarray | None  # d = E⁻¹cγβ̄, (n, d); None where there is no prior


class Effects(NamedTuple):
    """The effects of those answers: terms of the sums over agents, and the agents' own effort. n agents, or all N."""

    response: np.ndarray  # Λ = me, (n, p, p)
    pull: np.ndarray  # Λs - md, (n, p)
    effort: np.ndarray  # cγ eᵀe, (n, p, p)
    drift: np.ndarray  # cγ (eᵀe s - eᵀ(d - β̄)), (n, p)
    squares: np.ndarray  # eᵀCov[k,l]e, (n, pp, p, p); 0 where it is not needed
    crosses: np.ndarray  # eᵀCov[k,l](es - d), (n, pp, p)


class Terms(NamedTuple):
    """All agents at one step."""

    basis: np.ndarray  # b, (N, k, p)
    slope: np.ndarray  # u = κb, (N, k, p)
    offset: np.ndarray  # s = bᵀσ, (N, p)
    answers: list[Answers]  # by group
    effects: Effects


def initial_value(agents: int) -> Value:
    """The value functions after the window's end, where the cost is 0."""
    return Value(np.zeros((agents, 0, 0)), np.zeros((agents, 0)))


def append_functionals(value: Value, c: np.ndarray, y: np.ndarray) -> Value:
    """κ ← blockdiag(κ, c·I),  σ ← [σ; -c·y]."""
    (N, k), p = value.sigma.shape, len(y)
    kappa = np.zeros((N, k + p, k + p))
    kappa[:, :k, :k] = value.kappa
    new = np.arange(k, k + p)
    kappa[:, new, new] = c[:, None]
    return Value(kappa, np.concatenate([value.sigma, -c[:, None] * y], axis=1))


def form_basis(carry: np.ndarray, weights: np.ndarray, p: int) -> np.ndarray:
    """b: what each coordinate of an agent's forecast adds to each functional. weights: w of this step and after."""
    k = len(carry)
    N = weights.shape[1]
    b = np.zeros((N, k + p, p))
    if k:
        later = weights[:0:-1].T  # from the window's end back to the step after this one
        b[:, :k] = (later @ carry.reshape(k, -1, p)).swapaxes(0, 1)
    new = np.arange(p)
    b[:, k + new, new] = weights[0][:, None]
    return b


def agents_terms(game: Problem, t: int, value: Value, b: np.ndarray, noisy: bool) -> Terms:
    """Each agent's answer to ζ at step t, and its effects. noisy: whether the terms of its noise are needed."""
    u = value.kappa @ b
    s = (value.sigma[:, None, :] @ b)[:, 0]
    penalty = np.exp(-game.decay * (len(game.targets) - 1 - t)) * game.ridge
    found = [_group_terms(game, t, group, penalty, (b, u, s), noisy) for group in game.layout.groups]
    if len(found) == 1:
        return Terms(b, u, s, [found[0][0]], found[0][1])
    whole = Effects(*(np.empty((len(b), *part.shape[1:])) for part in found[0][1]))
    for group, (_, effects) in zip(game.layout.groups, found, strict=True):
        for all_agents, own in zip(whole, effects, strict=True):
            all_agents[group.agents] = own
    return Terms(b, u, s, [answers for answers, _ in found], whole)


def _group_terms(game, t, group: Group, penalty, functionals, noisy) -> tuple[Answers, Effects]:
    b, u, s = (part[group.agents] for part in functionals)
    c_gamma = penalty[group.agents][:, None]
    (n, _, p), d = b.shape, group.size
    m = game.means[t, group.features].reshape(n, p, d)
    prior = game.prior[t, group.decoders].reshape(n, d) if game.prior.size else None
    cov = None
    if group.covariance is not None:
        cov = game.covariance[t, group.covariance].reshape(n, p * p, d, d)
    e, centre = answers = _answers(m, cov, prior, c_gamma, b.swapaxes(1, 2) @ u)
    e_t = e.swapaxes(1, 2)
    response, effort = m @ e, c_gamma[:, :, None] * (e_t @ e)
    pull, drift = _times(response, s), _times(effort, s)
    if centre is not None:
        pull -= _times(m, centre)
        drift -= c_gamma * _times(e_t, centre - prior)
    squares, crosses = np.zeros((n, p * p, p, p)), np.zeros((n, p * p, p))
    if noisy and cov is not None:
        spread = e_t[:, None] @ cov
        squares = spread @ e[:, None]
        missed = _times(e, s) if centre is None else _times(e, s) - centre
        crosses = (spread @ missed[:, None, :, None])[..., 0]
    return answers, Effects(response, pull, effort, drift, squares, crosses)


def _answers(m, cov, prior, c_gamma, q) -> Answers:
    """E = E⁻¹mᵀ and d = E⁻¹cγβ̄ with E = cγ·I + Σ q[k,l] Cov[k,l] and q = bᵀu."""
    n, p, d = m.shape
    if cov is None:
        return Answers(m.swapaxes(1, 2) / c_gamma[:, :, None], prior)
    E = (q.reshape(n, 1, p * p) @ cov.reshape(n, p * p, d * d)).reshape(n, d, d)
    E[:, np.arange(d), np.arange(d)] += c_gamma
    right = m.swapaxes(1, 2)
    if prior is not None:
        right = np.concatenate([right, (c_gamma * prior)[:, :, None]], axis=2)
    try:
        solved = np.linalg.solve(E, right)
    except np.linalg.LinAlgError:  # impossible for a covariance; the step's condition number will be NaN
        solved = np.full_like(right, np.nan)
    return Answers(solved[:, :, :p], None if prior is None else solved[:, :, p])


def _times(matrices: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """Matrix-vector products, agent by agent."""
    return (matrices @ vectors[:, :, None])[:, :, 0]


def _flat(parts: np.ndarray) -> np.ndarray:
    """(N, k, q) as (k, N·q), to be summed over agents by a matrix product."""
    return parts.swapaxes(0, 1).reshape(parts.shape[1], -1)


def sums(terms: Terms) -> tuple[np.ndarray, np.ndarray]:
    """F - I = Σ bΛuᵀ and f = Σ b(Λs - md)."""
    b, effects = terms.basis, terms.effects
    return _flat(b @ effects.response) @ _flat(terms.slope).T, _flat(b) @ effects.pull.ravel()


def noise_tensor(terms: Terms) -> np.ndarray:
    """The linear map from κ_i, row by row, to noise_i and noise'_i: a sum over agents, (k² + k, k²)."""
    b, u, effects = terms.basis, terms.slope, terms.effects
    N, k, p = b.shape
    left = u[:, None] @ effects.squares @ u.swapaxes(1, 2)[:, None]  # u eᵀCov[k,l]e uᵀ, (N, pp, k, k)
    cross = u[:, None] @ effects.crosses[..., None]
    rows = np.concatenate([left.reshape(N, p * p, k * k), cross[..., 0]], axis=2)
    by_coordinate = b.swapaxes(1, 2)
    pairs = by_coordinate[:, :, None, :, None] * by_coordinate[:, None, :, None, :]  # b[m,k] b[n,l]
    return rows.reshape(N * p * p, -1).T @ pairs.reshape(N * p * p, k * k)


def noise_by_agent(terms: Terms, value: Value) -> np.ndarray:
    """noise_i and noise'_i of every agent, (N, k² + k), without the tensor: for k² beyond the number of agents."""
    b, u, effects = terms.basis, terms.slope, terms.effects
    N, k, p = b.shape
    moved = np.empty((N, k * k + k))
    for i in range(N):
        # q[j] = b_jᵀ κ_i b_j, then Ψ_j = Σ_kl q_j[k,l] eᵀCov[k,l]e.
        q = (b.swapaxes(1, 2) @ (value.kappa[i] @ b)).reshape(N, p * p)
        psi = np.einsum("jq,jqab->jab", q, effects.squares)
        cross = np.einsum("jq,jqa->ja", q, effects.crosses)
        moved[i, : k * k] = (_flat(u @ psi) @ _flat(u).T).ravel()
        moved[i, k * k :] = _flat(u) @ cross.ravel()
    return moved


def solve_sums(F: np.ndarray, f: np.ndarray, carry: np.ndarray) -> tuple[np.ndarray, np.ndarray, Condition]:
    """The functionals carried one step further back, g = -F⁻¹f, and F's condition.

    F: without its I.   carry: that of the next step.
    """
    inverse, condition = invert(F)
    k = len(carry)
    return np.concatenate([inverse[:, :k] @ carry, inverse[:, k:]], axis=1), -inverse @ f, condition


def noise_from_tensor(value: Value, tensor: np.ndarray) -> np.ndarray:
    """`noise_by_agent` from the summed tensor."""
    N, k = value.sigma.shape
    return value.kappa.reshape(N, k * k) @ tensor.T


def carry_value(value: Value, terms: Terms, g: np.ndarray, noise: np.ndarray | None) -> Value:
    """κ ← κ + u(cγeᵀe)uᵀ + noise and σ ← σ + κ(new) g + u·drift + noise'. noise: every agent's, (N, k² + k)."""
    u, (N, k) = terms.slope, value.sigma.shape
    kappa = value.kappa + u @ terms.effects.effort @ u.swapaxes(1, 2)
    sigma = value.sigma + _times(u, terms.effects.drift)
    if noise is not None:
        kappa += noise[:, : k * k].reshape(N, k, k)
        sigma += noise[:, k * k :]
    return Value(kappa, sigma + kappa @ g)


def play(group: Group, answer: Answers, pull: np.ndarray) -> np.ndarray:
    """β of a group's agents. pull: uᵀζ + s for all agents."""
    moved = _times(answer.gain, pull[group.agents])
    return -moved if answer.centre is None else answer.centre - moved


class Rule(NamedTuple):
    """The feedback rule of every step of the window."""

    layout: Layout
    carries: list[np.ndarray]
    shifts: list[np.ndarray]
    terms: list[Terms]

    def step(self, t: int) -> StepRule:
        """The rule of step t in plain arrays, one for each agent."""
        layout, (_, u, s, answers, _) = self.layout, self.terms[t]
        gain: list = [None] * layout.agents
        centre: list = [np.zeros(d) for d in layout.sizes]
        for group, (e, d) in zip(layout.groups, answers, strict=True):
            for place, i in enumerate(np.arange(layout.agents)[group.agents]):
                gain[i] = e[place]
                if d is not None:
                    centre[i] = d[place]
        return StepRule(self.carries[t], self.shifts[t], u, s, gain, centre)


def solve(game: Problem) -> Solution:
    """Backward for the feedback rules, forward for the play."""
    T, N, p = len(game.targets), game.layout.agents, game.layout.y_dim
    value, carry = initial_value(N), np.zeros((0, 0))
    backward, conditions, grown = [], np.empty(T), 1.0
    for t in reversed(range(T)):
        value = append_functionals(value, np.exp(-game.decay * (T - 1 - t)), game.targets[t])
        b = form_basis(carry, game.weights[t:], p)
        noisy = game.layout.noisy and t > 0
        terms = agents_terms(game, t, value, b, noisy)
        carry, g, condition = solve_sums(*sums(terms), carry)
        check_existence(t, condition)
        conditions[t], grown = condition.scaled, max(grown, growth(condition))
        backward.append((carry, g, terms))
        if t > 0:
            noise = None
            if noisy:
                few = len(g) ** 2 >= N
                noise = noise_by_agent(terms, value) if few else noise_from_tensor(value, noise_tensor(terms))
            value = carry_value(value, terms, g, noise)
    rule = Rule(game.layout, *(list(parts) for parts in zip(*reversed(backward), strict=True)))

    forecasts, decoders = np.empty((T + 1, N, p)), np.empty((T, game.layout.decoders[-1]))
    forecasts[0] = game.start
    functionals = carry @ (game.weights[::-1] @ game.start).ravel()
    for t, (g, terms) in enumerate(zip(rule.shifts, rule.terms, strict=True)):
        zeta = functionals[: len(g)] + g
        pull = zeta @ terms.slope + terms.offset
        surprise = np.zeros((N, p))
        for group, answer in zip(game.layout.groups, terms.answers, strict=True):
            beta = play(group, answer, pull)
            decoders[t, group.decoders] = beta.ravel()
            Z, m = (part[t, group.features].reshape(group.number, p, -1) for part in (game.features, game.means))
            forecasts[t + 1, group.agents] = forecasts[t, group.agents] + _times(Z, beta)
            if Z is not m:
                surprise[group.agents] = _times(Z - m, beta)
        functionals = zeta + _flat(terms.basis) @ surprise.ravel()
    return Solution(decoders, forecasts, conditions, rule, grown)
