"""What the game needs to know of random features: their mean and how their rows vary together.

Z = activation(a + σW), with one standard normal W for each column, shared by the column's rows; so columns are
independent and the covariance of two rows is diagonal. Deterministic features need no moments: their mean is
themselves.
"""

from __future__ import annotations

from math import tanh
from typing import NamedTuple

import numpy as np
from numba import njit

from nashcast import validation as check
from nashcast.errors import InvalidInput
from nashcast.maths.clipped_moments import clipped_covariance, clipped_mean, hard_sigmoid
from nashcast.maths.relu_moments import relu_covariance, relu_mean

RELU, HARD_SIGMOID, TANH = 0, 1, 2
ACTIVATIONS = {"relu": RELU, "hard_sigmoid": HARD_SIGMOID, "tanh": TANH}


class Moments(NamedTuple):
    """mean: E[Z], (…, y_dim, features).   covariance: Cov(row k, row l), (…, y_dim, y_dim, features, features)."""

    mean: np.ndarray
    covariance: np.ndarray


@njit(cache=True)
def activate(activation, v):
    if activation == RELU:
        return max(v, 0.0)
    if activation == HARD_SIGMOID:
        return hard_sigmoid(v)
    return tanh(v)


@njit(cache=True)
def _mean(activation, a, noise):
    return relu_mean(a, noise) if activation == RELU else clipped_mean(a, noise)


@njit(cache=True)
def _covariance(activation, a, noise_a, b, noise_b):
    if activation == RELU:
        return relu_covariance(a, noise_a, b, noise_b)
    return clipped_covariance(a, noise_a, b, noise_b)


def relu_moments(preactivation: np.ndarray, noise: float | np.ndarray) -> Moments:
    r"""Exact moments of $Z = \mathrm{ReLU}(a + \sigma W)$ (the random-feature corollaries, corrected, any y_dim).

    preactivation: $a = A x + b$, shape (…, y_dim, features).   noise: $\sigma_k \ge 0$, one number or one for each row.
    At $\sigma = 0$ the mean is ReLU(a) and the covariance 0.
    """
    return _exact(preactivation, noise, RELU)


def clipped_moments(preactivation: np.ndarray, noise: float | np.ndarray) -> Moments:
    r"""Exact moments of $Z = \mathrm{HardSigmoid}(a + \sigma W)$, with HardSigmoid(v) = clip(v/6 + 1/2, 0, 1).

    preactivation: $a$, shape (…, y_dim, features).   noise: $\sigma_k \ge 0$, one number or one for each row.
    """
    return _exact(preactivation, noise, HARD_SIGMOID)


def _exact(preactivation, noise, activation) -> Moments:
    a = check.numbers("preactivation", preactivation, "(…, y_dim, features)")
    if a.ndim < 2 or 0 in a.shape:
        remedy = "Pass an array (…, y_dim, features), every length at least 1."
        raise InvalidInput("preactivation", f"shape {check.shape_text(a.shape)}", remedy)
    check.finite("preactivation", a)
    p, d = a.shape[-2:]
    sigma = _noise(noise, p)
    result = Moments(np.empty(a.shape), np.empty((*a.shape[:-2], p, p, d, d)))
    flat = result.mean.reshape(-1, p, d), result.covariance.reshape(-1, p, p, d, d)
    fill_exact_moments(activation, a.reshape(-1, p, d), sigma, *flat)
    return result


def _noise(noise, p) -> np.ndarray:
    if np.ndim(noise) == 0:
        return np.full(p, check.number("noise", noise, min=0.0))
    sigma = check.array("noise", noise, (p,), "(y_dim,)")
    check.in_range("noise", sigma, min=0.0)
    return sigma


@njit(cache=True, nogil=True)
def drive(A, b, inputs, out):
    """out[t] = A x_t + b, the input's part of what enters the activation: (steps, y_dim, features)."""
    steps, p, d = out.shape
    for t in range(steps):
        for k in range(p):
            total = 0.0
            for j in range(len(inputs[t])):
                total += A[k, j] * inputs[t, j]
            for f in range(d):
                out[t, k, f] = total + b[k, f]


@njit(cache=True, nogil=True)
def fill_exact_moments(activation, preactivation, noise, mean, covariance):
    """The compiled form, over a first axis of any length; ReLU and hard sigmoid only."""
    steps, p, d = preactivation.shape
    covariance[:] = 0.0
    for t in range(steps):
        for f in range(d):
            for k in range(p):
                a = preactivation[t, k, f]
                mean[t, k, f] = _mean(activation, a, noise[k])
                for j in range(k + 1):
                    shared = _covariance(activation, a, noise[k], preactivation[t, j, f], noise[j])
                    covariance[t, k, j, f, f] = covariance[t, j, k, f, f] = shared


def echo_moments(
    drive: np.ndarray,
    recurrent: np.ndarray,
    start: np.ndarray,
    noise: float | np.ndarray,
    *,
    rng: np.random.Generator,
    samples: int = 100,
    activation: str = "hard_sigmoid",
    leak: float = 1.0,
) -> Moments:
    r"""Moments over a window of an echo state, $Z_t = h(A x_t + B Z_{t-1} + b + \sigma W_t)$, given its first state.

    drive: $A x_t + b$, shape (steps, y_dim, features); its first entry is not used, since $Z_0$ is known.
    recurrent: $B$, shape (y_dim, y_dim).   start: $Z_0$, shape (y_dim, features).   noise: $\sigma_k \ge 0$.
    rng: a named generator (`seeds.generator`).   samples: paths drawn.   activation: hard_sigmoid, relu or tanh.
    leak: $0 < l \le 1$, with $Z_t = (1 - l) Z_{t-1} + l\,h(…)$ where it is below 1.

    One set of paths serves every expectation. The last step of each path has closed-form moments for the hard sigmoid
    and ReLU, so only what leads up to it is sampled: the step after the start is exact. For tanh all is sampled.
    """
    h = check.of_rank("drive", drive, ("steps", "y_dim", "features"))
    check.finite("drive", h)
    T, p, d = h.shape
    B = check.array("recurrent", recurrent, (p, p), "(y_dim, y_dim)")
    Z0 = check.array("start", start, (p, d), "(y_dim, features)")
    sigma = _noise(noise, p)
    draws = check.integer("samples", samples, min=2)
    if activation not in ACTIVATIONS:
        raise InvalidInput("activation", repr(activation), f"Pass one of {', '.join(sorted(ACTIVATIONS))}.")
    if not isinstance(rng, np.random.Generator):
        raise InvalidInput("rng", check.describe(rng), "Pass a generator, for example seeds.generator(2024, 'echo').")
    normals = rng.standard_normal((draws, T, d))
    result = Moments(np.empty((T, p, d)), np.empty((T, p, p, d, d)))
    memory = check.number("leak", leak, above=0.0, max=1.0)
    fill_echo_moments(ACTIVATIONS[activation], memory, h, B, Z0, sigma, normals, np.empty((2, draws, p)), *result)
    return result


@njit(cache=True)
def drawn_steps(activation, steps):
    """The steps of a window whose noise is drawn, as first and last + 1."""
    return 1, steps if activation == TANH else steps - 1


@njit(cache=True, nogil=True)
def fill_echo_moments(activation, leak, drive, recurrent, start, noise, normals, scratch, mean, covariance):
    """The compiled form. normals: (samples, steps, features).   scratch: (2, samples, y_dim).

    Only `drawn_steps` of the normals are used: the first step is known, and the last of a closed form is not drawn.
    """
    steps, p, d = drive.shape
    samples = len(normals)
    exact = activation != TANH
    paths, expected = scratch[0], scratch[1]
    covariance[:] = 0.0
    for f in range(d):
        for k in range(p):
            mean[0, k, f] = start[k, f]
            for s in range(samples):
                paths[s, k] = start[k, f]
        for t in range(1, steps):
            # All paths leave the same start: where their next step has a closed form, one of them says it all.
            used = 1 if exact and t == 1 else samples
            for s in range(samples):
                for k in range(p):
                    total = drive[t, k, f]
                    for j in range(p):
                        total += recurrent[k, j] * paths[s, j]
                    expected[s, k] = total
                if exact and s < used:
                    # What is left of a path's variance once all but its last step is known.
                    for k in range(p):
                        for j in range(k + 1):
                            own = _covariance(activation, expected[s, k], noise[k], expected[s, j], noise[j])
                            covariance[t, k, j, f, f] += leak * leak * own / used
                for k in range(p):
                    entering, kept = expected[s, k], (1.0 - leak) * paths[s, k]
                    if not exact or t < steps - 1:
                        drawn = activate(activation, entering + noise[k] * normals[s, t, f])
                        paths[s, k] = kept + leak * drawn
                    if not exact:
                        expected[s, k] = paths[s, k]
                    elif s < used:
                        expected[s, k] = kept + leak * _mean(activation, entering, noise[k])
            for k in range(p):
                total = 0.0
                for s in range(used):
                    total += expected[s, k]
                mean[t, k, f] = total / used
            for k in range(p):
                for j in range(k + 1):
                    total = 0.0
                    for s in range(used):
                        total += (expected[s, k] - mean[t, k, f]) * (expected[s, j] - mean[t, j, f])
                    covariance[t, k, j, f, f] += total / max(used - 1, 1)
                    covariance[t, j, k, f, f] = covariance[t, k, j, f, f]
