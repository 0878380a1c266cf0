"""Theorem 2 from an agent's side: its private terms of the sums, its value function, its answer.

Every function acts on a chunk of sixteen agents (`lanes`); a lone agent in its own process is a chunk with one. The
letters are those of docs/explanation/game.md: b, κ, σ, u, e, s, Λ belong to an agent; F, f and the noise tensor are
sums over agents; g and ζ come back from them. Functionals of the state are numbered from the end of the window, so a
step further back appends y_dim of them and moves none.
"""

from __future__ import annotations

from numba import njit

from nashcast.games.lookback.compiled.lane_algebra import (
    clear,
    factor_positive,
    solve_factored,
    symmetric_times,
    times,
    transposed_times,
    triangle,
)
from nashcast.games.lookback.compiled.lanes import LANES, load, number, splat, store


@njit(cache=True)
def append_functionals(work, rows, target, k_old, p):
    """κ ← blockdiag(κ, c·I),  σ ← [σ; -c·y]."""
    c = load(work, rows.discount)
    for a in range(p):
        r = k_old + a
        clear(work, rows.kappa + triangle(r), r)
        store(work, rows.kappa + triangle(r) + r, c)
        store(work, rows.sigma + r, c * splat(-number(target, a)))


@njit(cache=True)
def form_basis(work, basis, weights, common, carried, stride, back, p):
    """b: what each coordinate of the agent's forecast adds to each functional.

    The matrix at `carried` took the older functionals through the later steps; it is common to all agents and
    multiplies the agent's own weights, so b need not be remembered.
    """
    k_old = back * p
    for r in range(k_old):
        for a in range(p):
            total = splat(0.0)
            for j in range(back):
                total += splat(number(common, carried + r * stride + j * p + a)) * load(work, weights + j)
            store(work, basis + r * p + a, total)
    clear(work, basis + k_old * p, p * p)
    for a in range(p):
        store(work, basis + (k_old + a) * p + a, load(work, weights + back))


@njit(cache=True)
def form_rule(work, rows, rule, scratch, k, p, d, noisy, has_prior):
    """U = κb, s = bᵀσ, and with E = cγ·I + Σ (bᵀu)[k,l] Cov[k,l]: e = E⁻¹mᵀ, d = E⁻¹cγβ̄."""
    symmetric_times(work, rule.slope, rows.kappa, scratch.basis, k, p)
    transposed_times(work, rule.offset, scratch.basis, rows.sigma, k, p, 1)
    penalty = load(work, scratch.penalty)
    if not noisy:
        inverse = splat(1.0) / penalty
        for f in range(d):
            for a in range(p):
                store(work, rule.gain + f * p + a, inverse * load(work, scratch.mean + a * d + f))
            if has_prior:
                store(work, rule.shift + f, load(work, scratch.prior + f))
        return
    transposed_times(work, scratch.square, scratch.basis, rule.slope, k, p, p)
    for f in range(d):
        for g in range(f + 1):
            total = penalty if f == g else splat(0.0)
            for kl in range(p * p):
                total += load(work, scratch.square + kl) * load(work, scratch.covariance + (kl * d + f) * d + g)
            store(work, scratch.factor + triangle(f) + g, total)
        for a in range(p):
            store(work, rule.gain + f * p + a, load(work, scratch.mean + a * d + f))
        if has_prior:
            store(work, rule.shift + f, penalty * load(work, scratch.prior + f))
    factor_positive(work, scratch.factor, d)
    solve_factored(work, scratch.factor, rule.gain, d, p)
    if has_prior:
        solve_factored(work, scratch.factor, rule.shift, d, 1)


@njit(cache=True)
def add_to_sums(work, rule, scratch, k, p, d, has_prior):
    """F += bΛuᵀ,  f += b(Λs - μ), with Λ = me and μ = md."""
    times(work, scratch.lam, scratch.mean, rule.gain, p, d, p)
    for a in range(p):
        total = splat(0.0)
        for b in range(p):
            total += load(work, scratch.lam + a * p + b) * load(work, rule.offset + b)
        if has_prior:
            for f in range(d):
                total -= load(work, scratch.mean + a * d + f) * load(work, rule.shift + f)
        store(work, scratch.lam_offset + a, total)
    for c in range(k):
        for a in range(p):
            total = splat(0.0)
            for b in range(p):
                total += load(work, scratch.lam + a * p + b) * load(work, rule.slope + c * p + b)
            store(work, scratch.lam_slope + c * p + a, total)
    for r in range(k):
        for c in range(k):
            total = load(work, scratch.sum_F + r * k + c)
            for a in range(p):
                total += load(work, scratch.basis + r * p + a) * load(work, scratch.lam_slope + c * p + a)
            store(work, scratch.sum_F + r * k + c, total)
        total = load(work, scratch.sum_f + r)
        for a in range(p):
            total += load(work, scratch.basis + r * p + a) * load(work, scratch.lam_offset + a)
        store(work, scratch.sum_f + r, total)


@njit(cache=True)
def form_noise(work, rule, scratch, square, cross, p, d, has_prior):
    """eᵀCov[k,l]e and eᵀCov[k,l](es - d): how far this agent's noise moves its forecast, for its own rule."""
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
    """Out += b·pair·bᵀ folded onto the lower triangle, ready to meet a symmetric κ entry by entry."""
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
    """The linear map κ ↦ (noise in κ, noise in σ), summed over agents so that no agent meets another."""
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
def noise_from_tensor(work, rows, scratch, common, tensor, k):
    """The noise in this agent's κ and σ, from the summed tensor (its last k rows are the map into σ)."""
    s = triangle(k)
    for r in range(s + k):
        total = splat(0.0)
        for m in range(s):
            total += splat(number(common, tensor + r * s + m)) * load(work, rows.kappa + m)
        store(work, scratch.noise_kappa + r if r < s else scratch.noise_sigma + r - s, total)


@njit(cache=True)
def add_noise_of(work, rows, scratch, other, other_rule, lane, k, p):
    """The noise in this chunk's κ and σ that comes from one agent: lane `lane` of another chunk (or of this one)."""
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


@njit(cache=True)
def carry_value(work, rows, rule, scratch, common, shift, k, p, d, noisy, has_prior):
    """κ and σ one step back: own effort, noise where there is any, and σ along g, which is at place `shift`."""
    penalty = load(work, scratch.penalty)
    for a in range(p):
        total = splat(0.0)
        for b in range(p):
            effort = splat(0.0)
            for f in range(d):
                effort += load(work, rule.gain + f * p + a) * load(work, rule.gain + f * p + b)
            effort *= penalty
            store(work, scratch.psi + a * p + b, effort)
            total += effort * load(work, rule.offset + b)
        if has_prior:
            for f in range(d):
                correction = load(work, rule.shift + f) - load(work, scratch.prior + f)
                total -= penalty * load(work, rule.gain + f * p + a) * correction
        store(work, scratch.lam_offset + a, total)
    for r in range(k):
        for c in range(r + 1):
            total = load(work, rows.kappa + triangle(r) + c)
            if noisy:
                total += load(work, scratch.noise_kappa + triangle(r) + c)
            for a in range(p):
                for b in range(p):
                    slopes = load(work, rule.slope + r * p + a) * load(work, rule.slope + c * p + b)
                    total += slopes * load(work, scratch.psi + a * p + b)
            store(work, rows.kappa + triangle(r) + c, total)
    for r in range(k):
        total = load(work, rows.sigma + r)
        if noisy:
            total += load(work, scratch.noise_sigma + r)
        for a in range(p):
            total += load(work, rule.slope + r * p + a) * load(work, scratch.lam_offset + a)
        for c in range(r + 1):
            total += load(work, rows.kappa + triangle(r) + c) * splat(number(common, shift + c))
        for c in range(r + 1, k):
            total += load(work, rows.kappa + triangle(c) + r) * splat(number(common, shift + c))
        store(work, rows.sigma + r, total)


@njit(cache=True)
def answer(work, rule, scratch, common, point, k, p, d, has_prior):
    """β = d - e(uᵀζ + s), with ζ, at place `point`, what the functionals will be after this step."""
    for a in range(p):
        total = load(work, rule.offset + a)
        for r in range(k):
            total += load(work, rule.slope + r * p + a) * splat(number(common, point + r))
        store(work, scratch.lam_offset + a, total)
    for f in range(d):
        total = load(work, rule.shift + f) if has_prior else splat(0.0)
        for a in range(p):
            total -= load(work, rule.gain + f * p + a) * load(work, scratch.lam_offset + a)
        store(work, scratch.prior + f, total)


@njit(cache=True)
def move(work, scratch, p, d):
    """Ŷ ← Ŷ + Zβ, with Z where the means were and β where the prior was."""
    for a in range(p):
        total = load(work, scratch.state + a)
        for f in range(d):
            total += load(work, scratch.mean + a * d + f) * load(work, scratch.prior + f)
        store(work, scratch.state + a, total)


@njit(cache=True)
def add_weighted_forecasts(work, scratch, steps, p):
    """Σ w_s Ŷ for the last `steps` steps s of the window."""
    for j in range(steps):
        weight = load(work, scratch.weights + j)
        for a in range(p):
            total = load(work, scratch.sum_state + j * p + a) + weight * load(work, scratch.state + a)
            store(work, scratch.sum_state + j * p + a, total)
