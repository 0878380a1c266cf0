"""Moments of random features for the game: their mean and the covariance of their rows.

Z = activation(a + σW), with one standard normal W for each column, shared by the column's rows; so columns are
independent and the covariance of two rows is diagonal. Deterministic features need no moments: they equal their
mean.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from nashcast import validation as check
from nashcast.errors import InvalidInput
from nashcast.games.moments.clipped import clipped_covariance, clipped_mean, clipped_points
from nashcast.games.moments.relu import relu_covariance, relu_mean, relu_points

Array = np.ndarray


class Moments(NamedTuple):
    """mean: E[Z], (…, y_dim, features).   covariance: Cov(row k, row l), (…, y_dim, y_dim, features, features)."""

    mean: np.ndarray
    covariance: np.ndarray


class ClosedForm(NamedTuple):
    """Exact moments of an activation for σ > 0. points: what mean and covariance need of a + σW, computed once."""

    points: Callable[[Array, Array], Any]
    mean: Callable[[Any], Array]
    covariance: Callable[[Any, Any], Array]


class Activation(NamedTuple):
    """A map of a + σW to features."""

    apply: Callable[[Array], Array]
    closed: ClosedForm | None = None


ACTIVATIONS = {
    "relu": Activation(lambda v: np.maximum(v, 0.0), ClosedForm(relu_points, relu_mean, relu_covariance)),
    "hard_sigmoid": Activation(
        lambda v: np.clip(v / 6.0 + 0.5, 0.0, 1.0), ClosedForm(clipped_points, clipped_mean, clipped_covariance)
    ),
    "tanh": Activation(np.tanh),
}


def relu_moments(preactivation: np.ndarray, noise: float | np.ndarray) -> Moments:
    r"""Exact moments of $Z = \mathrm{ReLU}(a + \sigma W)$ (the random-feature corollaries, corrected, any y_dim).

    preactivation: $a = A x + b$, shape (…, y_dim, features).   noise: $\sigma_k \ge 0$, one number or one for each row.
    At $\sigma = 0$ the mean is ReLU(a) and the covariance 0.
    """
    return _checked(preactivation, noise, "relu")


def clipped_moments(preactivation: np.ndarray, noise: float | np.ndarray) -> Moments:
    r"""Exact moments of $Z = \mathrm{HardSigmoid}(a + \sigma W)$, with HardSigmoid(v) = clip(v/6 + 1/2, 0, 1).

    preactivation: $a$, shape (…, y_dim, features).   noise: $\sigma_k \ge 0$, one number or one for each row.
    """
    return _checked(preactivation, noise, "hard_sigmoid")


def _checked(preactivation, noise, activation: str) -> Moments:
    a = check.numbers("preactivation", preactivation, "(…, y_dim, features)")
    if a.ndim < 2 or 0 in a.shape:
        remedy = "Pass an array (…, y_dim, features), every length at least 1."
        raise InvalidInput("preactivation", f"shape {check.shape_text(a.shape)}", remedy)
    check.finite("preactivation", a)
    return exact_moments(activation, a, _noise(noise, a.shape[-2]))


def _noise(noise, p) -> np.ndarray:
    if np.ndim(noise) == 0:
        return np.full(p, check.number("noise", noise, min=0.0))
    sigma = check.array("noise", noise, (p,), "(y_dim,)")
    check.in_range("noise", sigma, min=0.0)
    return sigma


def exact_moments(activation: str, preactivation: Array, noise: Array) -> Moments:
    """`relu_moments` or `clipped_moments` for arguments that are checked. noise: (y_dim,)."""
    a = preactivation
    *leading, p, d = a.shape
    mean, shared = _mean_and_shared(ACTIVATIONS[activation], a.reshape(-1, p, d), noise)
    covariance = np.zeros((*leading, p, p, d, d))
    columns = np.arange(d)
    covariance[..., columns, columns] = shared.reshape(*leading, p, p, d)
    return Moments(mean.reshape(a.shape), covariance)


def _mean_and_shared(activation: Activation, a: Array, noise: Array) -> tuple[Array, Array]:
    """Means (n, p, d) and covariances of rows within a column (n, p, p, d) of the activation of a + noise·W."""
    closed, (n, p, d) = activation.closed, a.shape
    assert closed is not None
    shared = np.zeros((n, p, p, d))
    # Numbers far in a tail underflow to 0, as they should.
    with np.errstate(under="ignore"):
        mean = activation.apply(a)
        points = {k: closed.points(a[:, k], np.full((n, d), noise[k])) for k in range(p) if noise[k] > 0.0}
        for k in points:
            mean[:, k] = closed.mean(points[k])
            for j in points:
                if j <= k:
                    shared[:, k, j] = shared[:, j, k] = closed.covariance(points[k], points[j])
    return mean, shared


def echo_moments(
    drive: np.ndarray,
    recurrent: np.ndarray,
    start: np.ndarray,
    noise: float | np.ndarray,
    *,
    rng: np.random.Generator,
    samples: int = 100,
    activation: str = "hard_sigmoid",
) -> Moments:
    r"""Moments over a window of an echo state, $Z_t = h(A x_t + B Z_{t-1} + b + \sigma W_t)$, given its first state.

    drive: $A x_t + b$, shape (steps, y_dim, features); its first entry is not used, since $Z_0$ is known.
    recurrent: $B$, shape (y_dim, y_dim).   start: $Z_0$, shape (y_dim, features).   noise: $\sigma_k \ge 0$.
    rng: a named generator (`seeds.generator`).   samples: paths drawn.   activation: hard_sigmoid, relu or tanh.

    One set of paths serves every expectation. The last step of each path has closed-form moments for the hard sigmoid
    and ReLU, so only the steps before it are sampled: the step after the start is exact. For tanh all are sampled.
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
    first, last = drawn_steps(activation, T)
    return sample_echo_moments(EchoParameters(h, B, sigma, draws, activation), Z0, normals[:, first:last])


class EchoParameters(NamedTuple):
    """An echo state over a window: the parameters of its sampled moments, without its first state."""

    drive: np.ndarray  # A x_t + b, (steps, y_dim, features)
    recurrent: np.ndarray  # B
    noise: np.ndarray  # σ, (y_dim,)
    samples: int
    activation: str
    leak: float = 1.0


def drawn_steps(activation: str, steps: int) -> tuple[int, int]:
    """The steps of a window whose noise is drawn, as first and last + 1.

    The first step is known, and the last has a closed form given the one before it, unless the activation has none.
    """
    return 1, steps if ACTIVATIONS[activation].closed is None else max(steps - 1, 1)


def sample_echo_moments(echo: EchoParameters, start: Array, normals: Array) -> Moments:
    """`echo_moments` for arguments that are checked. normals: at the drawn steps, (samples, drawn steps, features)."""
    drive, B, noise, _, name, leak = echo
    activation, (T, p, d) = ACTIVATIONS[name], drive.shape
    exact = activation.closed is not None
    mean, covariance = np.empty((T, p, d)), np.zeros((T, p, p, d, d))
    mean[0] = start
    # All paths leave the same start: as long as they coincide, one path suffices.
    paths, columns = start[None], np.arange(d)
    for t in range(1, T):
        entering, expected, within = drive[t] + B @ paths, None, np.zeros((p, p, d))
        if exact:
            # The closed form of the last step, averaged over the paths up to it (Rao-Blackwell).
            expected, shared = _mean_and_shared(activation, entering, noise)
            expected, within = (1.0 - leak) * paths + leak * expected, leak * leak * shared.mean(axis=0)
        if not exact or t < T - 1:
            drawn = activation.apply(entering + noise[:, None] * normals[:, t - 1, None, :])
            paths = (1.0 - leak) * paths + leak * drawn
        expected = paths if expected is None else expected
        mean[t] = expected.mean(axis=0)
        centred = expected - mean[t]
        between = (centred[:, :, None] * centred[:, None]).sum(axis=0) / max(len(expected) - 1, 1)
        covariance[t][..., columns, columns] = within + between
    return Moments(mean, covariance)
