"""The look-back game as the published code solves it: dense matrices, with its deviations from the theorem.

Deviations, each a switch, so that its effect can be measured:
- printed: the recursion as the paper prints it, Â(t) without its discount;
- scrambled: block matrices read out of an (N, N, d, d) array as if it were (N d, N d).
With both off this is the theorem, in O((N d)³): `solve_game` gives the same at a fraction of the cost.
One deviation has no switch: each expectation of an echo state is estimated from its own samples, so that the
expectations are not consistent with each other.
All agents have the same number of features and the same settings, as in the paper's experiments.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit


class PublishedGame(NamedTuple):
    """One game: T steps of N agents with d features each, for targets of p numbers."""

    features: np.ndarray  # as drawn, (T, N, p, d)
    means: np.ndarray  # (T, N, p, d)
    covariance: np.ndarray  # (T, N, p, p, d, d); not read where expectations are sampled
    weights: np.ndarray  # (T, N)
    targets: np.ndarray  # (T, p)
    start: np.ndarray  # (p,)
    decay: float
    ridge: float


@njit(cache=True)
def play_published(game, departures, sampler, rng):
    """Solve and play one game: decoders (T, N, d) and forecasts (T + 1, N, p). rng: of the samples."""
    features, weights, targets = game.features, game.weights, game.targets
    decay, ridge, scrambled = game.decay, game.ridge, departures.scrambled
    T, N, p, d = features.shape
    D_all, n = N * d, N * p
    P, S = np.zeros((N, n, n)), np.zeros((N, n))
    G, H = np.empty((T, D_all, n)), np.empty((T, D_all))
    products = np.empty((N, N, d, d))
    for t in range(T - 1, -1, -1):
        c = np.exp(-decay * (T - 1 - t))
        W = np.zeros((n, p))
        for i in range(N):
            for k in range(p):
                W[i * p + k, k] = weights[t, i]
        WW = _times(W, W.T)
        for i in range(N):
            for j in range(N):
                middle = P[i, i * p : (i + 1) * p, j * p : (j + 1) * p]
                _expected(game, sampler, rng, (t, i, j), middle, products[i, j])
        A = _assembled(products, scrambled)
        for i in range(N):
            for j in range(N):
                middle = WW[i * p : (i + 1) * p, j * p : (j + 1) * p]
                _expected(game, sampler, rng, (t, i, j), middle, products[i, j])
        A_hat = _assembled(products, scrambled)
        D, B, C = np.zeros((n, D_all)), np.zeros((D_all, n)), np.zeros(D_all)
        for i in range(N):
            mean = _mean(game, sampler, rng, t, i)
            for f in range(d):
                for k in range(p):
                    D[i * p + k, i * d + f] = mean[k, f]
            mean = _mean(game, sampler, rng, t, i)
            for f in range(d):
                for k in range(p):
                    for m in range(n):
                        B[i * d + f, m] += P[i, m, i * p + k] * mean[k, f]
            mean = _mean(game, sampler, rng, t, i)
            for f in range(d):
                for k in range(p):
                    C[i * d + f] += S[i, i * p + k] * mean[k, f]

        M = A + c * A_hat
        for a in range(D_all):
            M[a, a] += c * ridge
        right = np.empty((D_all, n + 1))
        right[:, :n] = -(c * _times(D.T, WW) + B)
        Wy = np.zeros(n)
        for m in range(n):
            for k in range(p):
                Wy[m] += W[m, k] * targets[t, k]
        for a in range(D_all):
            total = -C[a]
            for m in range(n):
                total += c * D[m, a] * Wy[m]
            right[a, n] = total
        _solve(M, right)
        g, h = right[:, :n].copy(), right[:, n].copy()
        G[t], H[t] = g, h
        Dg = _times(D, g)
        Dh = np.zeros(n)
        for m in range(n):
            for a in range(D_all):
                Dh[m] += D[m, a] * h[a]
        P1, S1 = P.copy(), S.copy()
        for i in range(N):
            for j in range(N):
                for k in range(N):
                    middle = P1[i, j * p : (j + 1) * p, k * p : (k + 1) * p]
                    _expected(game, sampler, rng, (t, j, k), middle, products[j, k])
            Q = _assembled(products, scrambled) + (1.0 if departures.printed else c) * A_hat
            for f in range(d):
                Q[i * d + f, i * d + f] += c * ridge
            L = c * WW + P1[i]
            l = S1[i] - c * Wy
            Qg, LDg = _times(Q, g), _times(L, Dg)
            Qh = _times(Q, h.reshape(D_all, 1))
            P[i] = _times(g.T, Qg) + LDg + LDg.T + L
            for m in range(n):
                total = l[m]
                for a in range(D_all):
                    total += g[a, m] * Qh[a, 0]
                for e in range(n):
                    total += L[m, e] * Dh[e] + Dg[e, m] * l[e]
                S[i, m] = total

    decoders, forecasts = np.zeros((T, N, d)), np.empty((T + 1, N, p))
    for i in range(N):
        forecasts[0, i] = game.start
    for t in range(T):
        state = forecasts[t].copy().reshape(n)
        for i in range(N):
            for f in range(d):
                total = H[t, i * d + f]
                for m in range(n):
                    total += G[t, i * d + f, m] * state[m]
                decoders[t, i, f] = total
            for k in range(p):
                total = forecasts[t, i, k]
                for f in range(d):
                    total += features[t, i, k, f] * decoders[t, i, f]
                forecasts[t + 1, i, k] = total
    return decoders, forecasts


@njit(cache=True)
def _expected(game, sampler, rng, at, middle, out):
    """E[Z_iᵀ · middle · Z_j] at step t of the window. at: t, i and j."""
    (t, i, j), features = at, game.features
    p, d = features.shape[2:]
    out[:] = 0.0
    if sampler.samples == 0 or t == 0:
        known = features if sampler.samples else game.means
        for k in range(p):
            for l in range(p):
                for a in range(d):
                    for b in range(d):
                        value = known[t, i, k, a] * known[t, j, l, b]
                        if i == j and sampler.samples == 0:
                            value += game.covariance[t, i, k, l, a, b]
                        out[a, b] += middle[k, l] * value
        return
    for _ in range(sampler.samples):
        left = _path(features, sampler, rng, t, i)
        right = left if i == j else _path(features, sampler, rng, t, j)
        for k in range(p):
            for l in range(p):
                scale = middle[k, l] / sampler.samples
                for a in range(d):
                    for b in range(d):
                        out[a, b] += scale * left[k, a] * right[l, b]


@njit(cache=True)
def _mean(game, sampler, rng, t, i):
    features = game.features
    if sampler.samples == 0:
        return game.means[t, i]
    if t == 0:
        return features[t, i]
    total = np.zeros(features.shape[2:])
    for _ in range(sampler.samples):
        total += _path(features, sampler, rng, t, i)
    return total / sampler.samples


@njit(cache=True)
def _path(features, sampler, rng, t, i):
    """One sample of agent i's echo state at step t, from the realised one at the window's start."""
    p, d = features.shape[2:]
    state, new = features[0, i].copy(), np.empty((p, d))
    for u in range(1, t + 1):
        for f in range(d):
            W = rng.standard_normal()
            for k in range(p):
                v = sampler.drive[u, i, k, f] + sampler.noise * W
                for l in range(p):
                    v += sampler.recurrent[i, k, l] * state[l, f]
                new[k, f] = min(max(v / 6.0 + 0.5, 0.0), 1.0)
        state[:] = new
    return state


@njit(cache=True)
def _assembled(products, scrambled):
    """The (N d)×(N d) matrix of the blocks products[i, j], (d, d) each."""
    N, _, d, _ = products.shape
    if scrambled:
        return products.copy().reshape((N * d, N * d))
    out = np.empty((N * d, N * d))
    for i in range(N):
        for j in range(N):
            out[i * d : (i + 1) * d, j * d : (j + 1) * d] = products[i, j]
    return out


@njit(cache=True)
def _times(X, Y):
    """X Y by plain loops: these matrices are small, and compiled code needs no library."""
    out = np.zeros((X.shape[0], Y.shape[1]))
    for a in range(X.shape[0]):
        for e in range(X.shape[1]):
            x = X[a, e]
            for b in range(Y.shape[1]):
                out[a, b] += x * Y[e, b]
    return out


# A singular matrix gives non-finite numbers, and the run counts as diverged, which is a valid result.
@njit(cache=True, error_model="numpy")
def _solve(M, right):
    """Replace right by M⁻¹ right, by elimination with partial pivoting; M is overwritten."""
    n = len(M)
    for c in range(n):
        best = c
        for r in range(c + 1, n):
            if abs(M[r, c]) > abs(M[best, c]):
                best = r
        if best != c:
            for e in range(n):
                M[c, e], M[best, e] = M[best, e], M[c, e]
            for e in range(right.shape[1]):
                right[c, e], right[best, e] = right[best, e], right[c, e]
        for r in range(c + 1, n):
            share = M[r, c] / M[c, c]
            if share != 0.0:
                for e in range(c, n):
                    M[r, e] -= share * M[c, e]
                for e in range(right.shape[1]):
                    right[r, e] -= share * right[c, e]
    for r in range(n - 1, -1, -1):
        for e in range(right.shape[1]):
            total = right[r, e]
            for c in range(r + 1, n):
                total -= M[r, c] * right[c, e]
            right[r, e] = total / M[r, r]
