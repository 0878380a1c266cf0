"""Theorem 2, the agent's side: its private terms of the sums, its value function, its answer.

Every function acts on a chunk of sixteen agents (`lanes`); an agent in its own process is a chunk with one. The
letters are those of docs/explanation/game.md: b, κ, σ, u, e, s, Λ belong to an agent; F, f and the noise tensor are
sums over agents; g and ζ are computed from them. Functionals of the state are numbered from the end of the window, so a
step further back appends y_dim of them and moves none. The terms of noise are in `noise`.
"""

from __future__ import annotations

from typing import NamedTuple

from numba import njit

from nashcast.games.lookback.compiled.lanes.lane_algebra import (
    clear,
    factor_positive,
    solve_factored,
    symmetric_times,
    times,
    transposed_times,
    triangle,
)
from nashcast.games.lookback.compiled.lanes.lanes import load, number, splat, store


class StepSize(NamedTuple):
    """The sizes of one step for one chunk: functionals so far, targets, the largest number of features, any prior."""

    k: int
    y_dim: int
    widest: int
    has_prior: int


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
def form_basis(work, scratch, carried, stride, back, p):
    """b: what each coordinate of the agent's forecast adds to each functional.

    The matrix at the address `carried` took the older functionals through the later steps; it is common to all agents
    and multiplies the agent's own weights, so b need not be stored.
    """
    basis, weights, k_old = scratch.basis, scratch.weights, back * p
    for r in range(k_old):
        for a in range(p):
            total = splat(0.0)
            for j in range(back):
                total += splat(number(carried, r * stride + j * p + a)) * load(work, weights + j)
            store(work, basis + r * p + a, total)
    clear(work, basis + k_old * p, p * p)
    for a in range(p):
        store(work, basis + (k_old + a) * p + a, load(work, weights + back))


@njit(cache=True)
def form_rule(work, rows, rule, scratch, size, noisy):
    """U = κb, s = bᵀσ, and with E = cγ·I + Σ (bᵀu)[k,l] Cov[k,l]: e = E⁻¹mᵀ, d = E⁻¹cγβ̄."""
    k, p, d, has_prior = size
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
def add_to_sums(work, rule, scratch, size):
    """F += bΛuᵀ,  f += b(Λs - μ), with Λ = me and μ = md."""
    k, p, d, has_prior = size
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
def carry_value(work, rows, rule, scratch, shift, size, noisy):
    """κ and σ one step back: own effort, noise where there is any, and σ along g, which is at the address `shift`."""
    k, p, d, has_prior = size
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
            total += load(work, rows.kappa + triangle(r) + c) * splat(number(shift, c))
        for c in range(r + 1, k):
            total += load(work, rows.kappa + triangle(c) + r) * splat(number(shift, c))
        store(work, rows.sigma + r, total)


@njit(cache=True)
def answer(work, rule, scratch, point, size):
    """β = d - e(uᵀζ + s), with ζ, at the address `point`, the functionals after this step."""
    k, p, d, has_prior = size
    for a in range(p):
        total = load(work, rule.offset + a)
        for r in range(k):
            total += load(work, rule.slope + r * p + a) * splat(number(point, r))
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
