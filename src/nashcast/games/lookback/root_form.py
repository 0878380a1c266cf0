r"""The look-back game in root form: the same equilibrium, for games where the O(N) recursion loses digits.

Under steep decay the value matrices of Theorem 2 have entries that differ by many orders of magnitude, and an
agent's cost is a small difference of them. Here agent i's value is stored as a matrix $R_i$ with
$V_i = \|R_i [\hat y; 1]\|^2$ over all forecasts $\hat y$, in units of the present step's discount. One step back, with
$S_i$ the rows $e^{\alpha_i/2} R_i$ and the mixture's error, the residuals $s_i = S_i [\hat y'; 1]$ after the step are
unknowns of their own:

    ŷ'_i = ŷ_i + m_i d_i - m_i e_i S_i[:, i]ᵀ s_i          s_i = S_i [ŷ'; 1]          β_i = d_i - e_i S_i[:, i]ᵀ s_i

No nearly equal numbers are subtracted, and the new $R_i$ is the triangular factor of $s_i$, the effort and the
noise. The cost is that of the dense theorem: for games of few agents.

All operations compile in numba unchanged; `compiled.root_form` is this module, compiled.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class RootGame(NamedTuple):
    """A game in arrays, for `solve_rules`; blocks of agents in flat rows as in `Problem`."""

    sizes: np.ndarray
    feature_starts: np.ndarray
    covariance_starts: np.ndarray
    decoder_starts: np.ndarray
    means: np.ndarray
    covariance: np.ndarray
    prior: np.ndarray  # no columns where there is none
    weights: np.ndarray
    targets: np.ndarray
    ridge: np.ndarray
    decay: np.ndarray


def product(a, b):
    """The matrix product, without a library call."""
    return np.sum(np.expand_dims(a, 2) * np.expand_dims(b, 0), axis=1)


def eliminate(matrix, right):
    """Overwrite `right` by the solution of matrix · x = right; `matrix` is overwritten.

    Rows and columns are scaled first. Returns the largest pivot over the smallest: infinity where one vanishes.
    """
    n = len(matrix)
    columns = np.ones(n)
    for r in range(n):
        scale = np.max(np.abs(matrix[r]))
        if not scale < np.inf:
            return np.nan
        if scale > 0.0:
            matrix[r] /= scale
            right[r] /= scale
    for c in range(n):
        scale = np.max(np.abs(matrix[:, c]))
        if scale > 0.0:
            columns[c] = 1.0 / scale
            matrix[:, c] *= columns[c]
    largest, smallest = 0.0, np.inf
    for c in range(n):
        best = c + np.argmax(np.abs(matrix[c:, c]))
        if best != c:
            row = matrix[c].copy()
            matrix[c] = matrix[best]
            matrix[best] = row
            row = right[c].copy()
            right[c] = right[best]
            right[best] = row
        pivot = matrix[c, c]
        largest, smallest = max(largest, abs(pivot)), min(smallest, abs(pivot))
        if not abs(pivot) > 0.0:
            return np.inf if pivot == 0.0 else np.nan
        ratios = matrix[c + 1 :, c] / pivot
        matrix[c + 1 :, c:] -= np.outer(ratios, matrix[c, c:])
        right[c + 1 :] -= np.outer(ratios, right[c])
    for r in range(n - 1, -1, -1):
        right[r] /= matrix[r, r]
        right[:r] -= np.outer(matrix[:r, r], right[r])
    for r in range(n):
        right[r] *= columns[r]
    return largest / smallest


def triangular(rows):
    """The triangular factor of a matrix with at least as many rows as columns, by Householder; overwrites `rows`."""
    n = rows.shape[1]
    for c in range(n):
        v = rows[c:, c].copy()
        norm = np.sqrt(np.sum(v * v))
        if norm > 0.0:
            v[0] += norm if v[0] > 0.0 else -norm
            block = rows[c:, c:]
            along = np.sum(np.expand_dims(v, 1) * block, axis=0) * (2.0 / np.sum(v * v))
            rows[c:, c:] = block - np.outer(v, along)
        rows[c + 1 :, c] = 0.0
    return rows[:n].copy()


def semidefinite_root(form):
    """R with RᵀR = form, for a form that is positive semi-definite up to rounding."""
    n = len(form)
    root = np.zeros((n, n))
    for c in range(n):
        left = form[c, c:] - np.sum(np.expand_dims(root[:c, c], 1) * root[:c, c:], axis=0)
        if left[0] > 0.0:
            root[c, c:] = left / np.sqrt(left[0])
    return root


def _spread(covariance, q, p, d):
    """Σ_kl q[k, l] Cov[k, l]. covariance: one agent's block of a flat row."""
    blocks = covariance.copy().reshape(p * p, d * d)
    return np.sum(np.expand_dims(q.copy().reshape(p * p), 1) * blocks, axis=0).reshape(d, d)


def solve_rules(game):
    """All feedback rules, and at each step the largest pivot over the smallest of the system that couples the agents.

    rules: (lookback, all features, agents · y_dim + 1), β = rule · [ŷ; 1].
    """
    T, N = game.weights.shape
    p = game.targets.shape[1]
    n = N * p
    R = n + 1 + p  # rows of S_i
    rules, pivots = np.zeros((T, game.decoder_starts[-1], n + 1)), np.ones(T)
    roots = np.zeros((N, n + 1, n + 1))
    noisy = game.covariance_starts[-1] > 0
    for t in range(T - 1, -1, -1):
        S = np.zeros((N, R, n + 1))
        system, right = np.eye(n + N * R), np.zeros((n + N * R, n + 1))
        answers, centres = np.zeros((game.decoder_starts[-1], R)), np.zeros(game.decoder_starts[-1])
        for i in range(N):
            S[i, : n + 1] = np.exp(game.decay[i] / 2.0) * roots[i]
            for a in range(p):
                for j in range(N):
                    S[i, n + 1 + a, j * p + a] = game.weights[t, j]
                S[i, n + 1 + a, n] = -game.targets[t, a]
            d, first = game.sizes[i], game.decoder_starts[i]
            own = S[i, :, i * p : (i + 1) * p].copy()
            m = game.means[t, game.feature_starts[i] : game.feature_starts[i + 1]].copy().reshape(p, d)
            E = game.ridge[i] * np.eye(d)
            start, end = game.covariance_starts[i], game.covariance_starts[i + 1]
            if end > start:
                E += _spread(game.covariance[t, start:end], product(own.T, own), p, d)
            gain = np.zeros((d, p + 1))
            gain[:, :p] = m.T
            if game.prior.shape[1]:
                gain[:, p] = game.ridge[i] * game.prior[t, first : first + d]
            eliminate(E, gain)
            answer, centre = product(gain[:, :p], own.T), gain[:, p]
            answers[first : first + d], centres[first : first + d] = answer, centre
            here = n + i * R
            system[i * p : (i + 1) * p, here : here + R] = product(m, answer)
            system[here : here + R, :n] = -S[i, :, :n]
            right[here : here + R, n] = S[i, :, n]
            for a in range(p):
                right[i * p + a, i * p + a] = 1.0
                right[i * p + a, n] = np.sum(m[a] * centre)
        pivots[t] = eliminate(system, right)
        for i in range(N):
            first, last, here = game.decoder_starts[i], game.decoder_starts[i + 1], n + i * R
            rules[t, first:last] = -product(answers[first:last], right[here : here + R])
            rules[t, first:last, n] += centres[first:last]
        if t > 0:
            for i in range(N):
                first, last, here = game.decoder_starts[i], game.decoder_starts[i + 1], n + i * R
                # All agents' decoders may add noise; R rows of residuals and the agent's own effort are always present.
                rows = np.zeros((R + last - first + (game.decoder_starts[-1] if noisy else 0), n + 1))
                rows[:R] = right[here : here + R]
                effort = rules[t, first:last].copy()
                if game.prior.shape[1]:
                    effort[:, n] -= game.prior[t, first:last]
                rows[R : R + last - first] = np.sqrt(game.ridge[i]) * effort
                for j in range(N):
                    start, end = game.covariance_starts[j], game.covariance_starts[j + 1]
                    if end > start:
                        own = S[i, :, j * p : (j + 1) * p].copy()
                        form = _spread(game.covariance[t, start:end], product(own.T, own), p, game.sizes[j])
                        a, b = game.decoder_starts[j], game.decoder_starts[j + 1]
                        below = R + last - first
                        rows[below + a : below + b] = product(semidefinite_root(form), rules[t, a:b])
                roots[i] = triangular(rows)
    return rules, pivots


def play_rules(rules, features, starts, sizes, states):
    """Play the rules from states[0]; fills states and returns the decoders. features: Z as drawn, flat rows."""
    T, D, _ = rules.shape
    N, p = states.shape[1:]
    decoders = np.empty((T, D))
    state = np.ones(N * p + 1)
    for t in range(T):
        state[: N * p] = states[t].copy().reshape(N * p)
        decoders[t] = np.sum(rules[t] * state, axis=1)
        first = 0
        for i in range(N):
            d = sizes[i]
            Z = features[t, starts[i] : starts[i] + p * d].copy().reshape(p, d)
            states[t + 1, i] = states[t, i] + np.sum(Z * decoders[t, first : first + d], axis=1)
            first += d
    return decoders


def _block_columns(rows, starts, back):
    """The blocks of agents in reverse; rows without columns stay as they are."""
    turned = np.empty_like(rows)
    if rows.shape[1]:
        N = len(starts) - 1
        for i in range(N):
            turned[:, back[i] : back[i + 1]] = rows[:, starts[N - 1 - i] : starts[N - i]]
    return turned


def reversed_game(game):
    """The same game with its agents in reverse: other rounding, the same equilibrium."""
    N = len(game.sizes)
    features, covariance = np.zeros_like(game.feature_starts), np.zeros_like(game.covariance_starts)
    decoders = np.zeros_like(game.decoder_starts)
    for i in range(N):
        j = N - 1 - i
        features[i + 1] = features[i] + game.feature_starts[j + 1] - game.feature_starts[j]
        covariance[i + 1] = covariance[i] + game.covariance_starts[j + 1] - game.covariance_starts[j]
        decoders[i + 1] = decoders[i] + game.decoder_starts[j + 1] - game.decoder_starts[j]
    return RootGame(
        game.sizes[::-1].copy(), features, covariance, decoders,
        _block_columns(game.means, game.feature_starts, features),
        _block_columns(game.covariance, game.covariance_starts, covariance),
        _block_columns(game.prior, game.decoder_starts, decoders),
        game.weights[:, ::-1].copy(), game.targets, game.ridge[::-1].copy(), game.decay[::-1].copy(),
    )  # fmt: skip


def _apart(one, other, worth):
    """The largest difference of a step, as a share of the largest entry; NaN if an entry is not finite.

    worth: weight of each step. Decoders of a step with a negligible cost need not have many digits.
    """
    largest, difference = 0.0, 0.0
    for t in range(len(worth)):
        if one[t].size:
            size, apart = worth[t] * np.max(np.abs(one[t])), worth[t] * np.max(np.abs(one[t] - other[t]))
            if not size + apart < np.inf:
                return np.nan
            largest, difference = max(largest, size), max(difference, apart)
    return difference / largest if difference > 0.0 else 0.0


def solve_twice(game, features, states):
    """Solve and play from states[0], in both orders of the agents. features: Z as drawn, flat rows.

    Returns rules, pivots, decoders, and the distance of the two solutions (`_apart`); fills states.
    """
    rules, pivots = solve_rules(game)
    decoders = play_rules(rules, features, game.feature_starts, game.sizes, states)
    back = reversed_game(game)
    turned = states[:, ::-1].copy()
    again, _ = solve_rules(back)
    drawn = _block_columns(features, game.feature_starts, back.feature_starts)
    decoders_again = play_rules(again, drawn, back.feature_starts, back.sizes, turned)
    first = _block_columns(decoders, game.decoder_starts, back.decoder_starts)
    T = len(decoders)
    # The root of the most patient agent's discount, the unit of costs.
    worth = np.exp(-0.5 * np.min(game.decay) * np.arange(T - 1.0, -1.0, -1.0))
    # Added, so that NaN propagates.
    apart = _apart(first, decoders_again, worth) + _apart(states[1:, ::-1].copy(), turned[1:], worth)
    return rules, pivots, decoders, apart
