"""Aggregation rules as plain loops over lists of numbers, straight from their definitions; no code of nashcast.

Each takes forecasts[t][k] (a list of y_dim numbers), targets[t], awake[t][k] and returns the weights of every step.
"""

from math import exp, inf, log, sqrt

import numpy as np


def errors(said, target):
    return [sum((f - y) ** 2 for f, y in zip(row, target, strict=True)) for row in said]


def mixed(weights, said):
    return [sum(w * row[c] for w, row in zip(weights, said, strict=True)) for c in range(len(said[0]))]


def normalised(raw, awake):
    total = sum(r for r, a in zip(raw, awake, strict=True) if a)
    count = sum(awake)
    return [0.0 if not a else (r / total if total > 0 else 1 / count) for r, a in zip(raw, awake, strict=True)]


def exponential(forecasts, targets, awake, share=None, bound=0.0):
    """Prior v, loss update by Bayes' rule on those awake, then (for fixed share) v ← (1-α)v + α/N.

    A larger range B flattens v to the power of the ratio of the old range to the new one.
    """
    N = len(forecasts[0])
    v, B, seen = [1 / N] * N, bound, []
    for t, (said, y, here) in enumerate(zip(forecasts, targets, awake, strict=True)):
        seen.append(normalised(v, here))
        losses = errors(said, y)
        largest = max([B] + [loss for loss, a in zip(losses, here, strict=True) if a])
        if B > 0:
            mass = sum(x for x, a in zip(v, here, strict=True) if a)
            new = [
                x * exp(-loss * B / largest / (2 * B)) if a else x for x, loss, a in zip(v, losses, here, strict=True)
            ]
            kept = sum(x for x, a in zip(new, here, strict=True) if a)
            v = [x * mass / kept if a else x for x, a in zip(new, here, strict=True)]
            alpha = {None: 0.0, "1/t": 1 / (t + 2)}.get(share, share)
            v = [(1 - alpha) * x + alpha / N for x in v]
            v = [x ** (B / largest) for x in v]
            v = [x / sum(v) for x in v]
        B = largest
    return seen


def _gains(weights, said, y, here):
    f = mixed(weights, [row if a else [0.0] * len(y) for row, a in zip(said, here, strict=True)])
    return [
        2 * sum((p - t) * (p - q) for p, t, q in zip(f, y, row, strict=True)) if a else 0.0
        for row, a in zip(said, here, strict=True)
    ]


def boa(forecasts, targets, awake, bound=0.0):
    N = len(forecasts[0])
    total, squares, B, seen = [0.0] * N, [0.0] * N, bound, []
    for said, y, here in zip(forecasts, targets, awake, strict=True):
        rates = [1 / sqrt(V / log(N) + 4 * B * B) if B > 0 else 1.0 for V in squares]
        top = max((e * R for e, R, a in zip(rates, total, here, strict=True) if a), default=0.0)
        raw = [e * exp(min(e * R - top, 0.0)) for e, R in zip(rates, total, strict=True)]
        seen.append(normalised(raw, here))
        gains = _gains(seen[-1], said, y, here)
        largest = max([B] + [abs(r) for r in gains])
        if B > 0:
            gains = [r * B / largest for r in gains]
            total = [R + r - e * r * r for R, r, e in zip(total, gains, rates, strict=True)]
            squares = [V + r * r for V, r in zip(squares, gains, strict=True)]
        B = largest
    return seen


def ml_poly(forecasts, targets, awake, bound=0.0):
    N = len(forecasts[0])
    total, squares, B, seen = [0.0] * N, [0.0] * N, bound, []
    for said, y, here in zip(forecasts, targets, awake, strict=True):
        raw = [max(R, 0.0) / (B * B + V) if B > 0 else 0.0 for R, V in zip(total, squares, strict=True)]
        seen.append(normalised(raw, here))
        gains = _gains(seen[-1], said, y, here)
        largest = max([B] + [abs(r) for r in gains])
        if B > 0:
            gains = [r * B / largest for r in gains]
            total = [R + r for R, r in zip(total, gains, strict=True)]
            squares = [V + r * r for V, r in zip(squares, gains, strict=True)]
        B = largest
    return seen


def forward_ridge(forecasts, targets, ridge=1.0):
    """The minimiser over w = 1/N + v of past errors, the present forecasts' own size and λ‖v‖², by least squares.

    All experts awake. min_v Σ_{s<t} ‖Z_sᵀv - e_s‖² + ‖Z_tᵀv‖² + λ‖v‖², one stacked system.
    """
    F, Y = np.asarray(forecasts), np.asarray(targets)
    N = F.shape[1]
    Z, e = F - F.mean(axis=1, keepdims=True), Y - F.mean(axis=1)
    differ = [t for t in range(len(F)) if (Z[t] ** 2).sum() > 0]
    seen = []
    for t in range(len(F)):
        if not differ or t <= differ[0]:
            seen.append(np.full(N, 1 / N))
            continue
        unit = max((Z[s] ** 2).sum() for s in range(t + 1)) / N
        rows = np.concatenate([*(Z[s].T for s in range(t + 1)), np.sqrt(ridge * unit) * np.eye(N)])
        right = np.concatenate([*(e[s] for s in range(t)), np.zeros(F.shape[2]), np.zeros(N)])
        seen.append(1 / N + np.linalg.lstsq(rows, right, rcond=None)[0])
    return seen


def window_weights(forecasts, targets, discount, ridge, budget):
    """Theorem 1 over all steps given, discounted, by its bordered system."""
    F, Y = np.asarray(forecasts), np.asarray(targets)
    T, N = F.shape[:2]
    apart = F - F.mean(axis=1, keepdims=True)
    fading = discount ** np.arange(T - 1, -1, -1.0)
    kappa = (ridge + 1 / fading.sum()) * sum(c * (z**2).sum() for c, z in zip(fading, apart, strict=True)) / N
    if ridge == inf or kappa == 0:
        return np.full(N, budget / N)
    A = 2 * (sum(c * f @ f.T for c, f in zip(fading, F, strict=True)) + kappa * np.eye(N))
    b = 2 * sum(c * f @ y for c, f, y in zip(fading, F, Y, strict=True))
    border = np.block([[A, np.ones((N, 1))], [np.ones((1, N)), np.zeros((1, 1))]])
    return np.linalg.solve(border, np.append(b, budget))[:N]
