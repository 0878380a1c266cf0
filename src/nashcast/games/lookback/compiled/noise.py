"""Theorem 2 with random features: the effect of each agent's noise on all value functions, on chunks of agents.

Noise enters every agent's κ and σ: through one tensor summed over agents, or agent by agent; see `plan`.
"""

from __future__ import annotations

from numba import njit

from nashcast.games.lookback.compiled.lanes.lane_algebra import times, transposed_times, triangle
from nashcast.games.lookback.compiled.lanes.lanes import LANES, load, number, splat, store


@njit(cache=True)
def form_noise(work, rule, scratch, square, cross, size):
    """eᵀCov[k,l]e and eᵀCov[k,l](es - d): how far this agent's noise moves its forecast, for its own rule."""
    p, d, has_prior = size.y_dim, size.widest, size.has_prior
    for kl in range(p * p):
        covariance = scratch.covariance + kl * d * d
        times(work, scratch.spread_gain, covariance, rule.gain, d, d, p)
        transposed_times(work, square + kl * p * p, rule.gain, scratch.spread_gain, d, p, p)
        if has_prior:
            times(work, scratch.spread_shift, covariance, rule.shift, d, d, 1)
        for a in range(p):
            total = splat(0.0)
            for b in range(p):
                total += load(work, square + (kl * p + a) * p + b) * load(work, rule.offset + b)
            if has_prior:
                for f in range(d):
                    total -= load(work, rule.gain + f * p + a) * load(work, scratch.spread_shift + f)
            store(work, cross + kl * p + a, total)


@njit(cache=True)
def _add_outer(work, out, pair, basis, k, p):
    """Out += b·pair·bᵀ folded onto the lower triangle, to be multiplied entry by entry with a symmetric κ."""
    for m in range(k):
        for n in range(m + 1):
            total = load(work, out + triangle(m) + n)
            for a in range(p):
                for b in range(p):
                    weight = load(work, basis + m * p + a) * load(work, basis + n * p + b)
                    if m != n:
                        weight += load(work, basis + n * p + a) * load(work, basis + m * p + b)
                    total += load(work, pair + a * p + b) * weight
            store(work, out + triangle(m) + n, total)


@njit(cache=True)
def add_to_noise_tensor(work, rule, scratch, square, cross, k, p):
    """The linear map κ ↦ (noise in κ, noise in σ), summed over agents, so that agents need not be paired."""
    for r in range(k):
        for c in range(r + 1):
            for kl in range(p * p):
                total = splat(0.0)
                for a in range(p):
                    for b in range(p):
                        slopes = load(work, rule.slope + r * p + a) * load(work, rule.slope + c * p + b)
                        total += slopes * load(work, square + (kl * p + a) * p + b)
                store(work, scratch.pair + kl, total)
            row = scratch.sum_tensor + (triangle(r) + c) * triangle(k)
            _add_outer(work, row, scratch.pair, scratch.basis, k, p)
        for kl in range(p * p):
            total = splat(0.0)
            for a in range(p):
                total += load(work, rule.slope + r * p + a) * load(work, cross + kl * p + a)
            store(work, scratch.pair + kl, total)
        _add_outer(work, scratch.sum_cross + r * triangle(k), scratch.pair, scratch.basis, k, p)


@njit(cache=True)
def noise_from_tensor(work, rows, scratch, tensor, k):
    """The noise in this agent's κ and σ, from the summed tensor at an address (its last k rows are the map into σ)."""
    s = triangle(k)
    for r in range(s + k):
        total = splat(0.0)
        for m in range(s):
            total += splat(number(tensor, r * s + m)) * load(work, rows.kappa + m)
        store(work, scratch.noise_kappa + r if r < s else scratch.noise_sigma + r - s, total)


@njit(cache=True)
def add_noise_of(work, rows, scratch, other, other_rule, lane, size):
    """The noise in this chunk's κ and σ that comes from one agent: lane `lane` of another chunk (or of this one)."""
    k, p = size.k, size.y_dim
    for r in range(k):
        for l in range(p):
            total = splat(0.0)
            for s in range(r + 1):
                total += load(work, rows.kappa + triangle(r) + s) * splat(
                    number(work, (other.basis + s * p + l) * LANES + lane)
                )
            for s in range(r + 1, k):
                total += load(work, rows.kappa + triangle(s) + r) * splat(
                    number(work, (other.basis + s * p + l) * LANES + lane)
                )
            store(work, scratch.product + r * p + l, total)
    for m in range(p):
        for l in range(p):
            total = splat(0.0)
            for r in range(k):
                total += splat(number(work, (other.basis + r * p + m) * LANES + lane)) * load(
                    work, scratch.product + r * p + l
                )
            store(work, scratch.pair + m * p + l, total)
    for a in range(p):
        along = splat(0.0)
        for b in range(p):
            total = splat(0.0)
            for kl in range(p * p):
                spread = splat(number(work, (other.noise_square + (kl * p + a) * p + b) * LANES + lane))
                total += load(work, scratch.pair + kl) * spread
            store(work, scratch.psi + a * p + b, total)
        for kl in range(p * p):
            along += load(work, scratch.pair + kl) * splat(
                number(work, (other.noise_cross + kl * p + a) * LANES + lane)
            )
        for r in range(k):
            slope = splat(number(work, (other_rule.slope + r * p + a) * LANES + lane))
            store(work, scratch.noise_sigma + r, load(work, scratch.noise_sigma + r) + slope * along)
    for r in range(k):
        for c in range(r + 1):
            total = load(work, scratch.noise_kappa + triangle(r) + c)
            for a in range(p):
                for b in range(p):
                    slopes = number(work, (other_rule.slope + r * p + a) * LANES + lane)
                    slopes *= number(work, (other_rule.slope + c * p + b) * LANES + lane)
                    total += splat(slopes) * load(work, scratch.psi + a * p + b)
            store(work, scratch.noise_kappa + triangle(r) + c, total)
