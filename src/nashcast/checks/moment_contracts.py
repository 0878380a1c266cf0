"""The contracts of an encoder's moments, checked against their window and against encoding it again."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nashcast import seeds
from nashcast import validation as check
from nashcast.checks.contract import Contract, near, same, wrong_array
from nashcast.checks.encoder_case import FIRST_STEP, EncoderCase, sees_inputs_alone, step, walk
from nashcast.encoders.base import BuiltEncoder, Context, Noise, State

WINDOW = 4  # steps whose moments are checked
_DRAWS = 4000  # noise keys the window is encoded with
_MOMENT_KEYS = 100  # over which sampled moments are averaged
_TINY = 1e-300  # below it numbers lose digits, and rounding is no longer relative


class _Window(NamedTuple):
    """The last steps of the stream, encoded after the steps before them."""

    contexts: list[Context]
    inputs: np.ndarray  # (T, x_dim)
    features: np.ndarray  # as drawn, (T, y_dim, features)
    has_memory: bool
    after_first: State  # the state after the window's first step
    first_step: int


def _window(case: EncoderCase, built: BuiltEncoder) -> _Window:
    contexts = case.contexts(built)
    features, states = walk(built, contexts)
    start = len(contexts) - WINDOW
    inputs, Z, after_first = case.inputs[start:].copy(), np.stack(features[start:]), states[start + 1]
    return _Window(contexts[start:], inputs, Z, after_first is not None, after_first, FIRST_STEP + start)


def _redrawn(built: BuiltEncoder, window: _Window, key: int) -> np.ndarray:
    """The window's features under other noise; with memory, the first step's are known and fixed."""
    known = 1 if window.has_memory else 0
    state = window.after_first if window.has_memory else built.start()
    if sees_inputs_alone(built):
        rest = built.encode_series(window.inputs[known:], state, key, window.first_step + known)[0]
    else:
        rest = np.empty((WINDOW - known, *window.features.shape[1:]))
        for t, context in enumerate(window.contexts[known:]):
            rest[t], state = step(built, context._replace(noise=Noise(key, context.noise.step)), state)
    return np.concatenate([window.features[:known], rest])


def _keys(case: EncoderCase, count: int) -> list[int]:
    return [int(key) for key in seeds.generator(case.seed, "checks", "keys").integers(2**62, size=count)]


def _certain(case: EncoderCase) -> str | None:
    built = case.build()
    window = _window(case, built)
    if built.moments(window.inputs, window.features, Noise(case.key, 0)) is not None:
        return None
    for key in _keys(case, 8):
        if not near(_redrawn(built, window, key), window.features):
            return "moments gives None, which says features are certain, but other noise gave other features"
    return None


def _moment_shapes(case: EncoderCase) -> str | None:
    built = case.build()
    window = _window(case, built)
    moments = built.moments(window.inputs, window.features, Noise(case.key, 0))
    if moments is None:
        return None
    if not isinstance(moments, tuple) or len(moments) != 2:
        return f"moments gave {check.describe(moments)}, not a mean and a covariance"
    T, p, d = window.features.shape
    return wrong_array("the mean", moments[0], (T, p, d)) or wrong_array("the covariance", moments[1], (T, p, p, d, d))


def _covariance(case: EncoderCase) -> str | None:
    built = case.build()
    window = _window(case, built)
    moments = built.moments(window.inputs, window.features, Noise(case.key, 0))
    if moments is None:
        return None
    for t, whole in enumerate(_joint(moments[1])):
        largest = np.abs(whole).max(initial=0.0)
        if np.abs(whole - whole.T).max(initial=0.0) > 1e-9 * largest + _TINY:
            return f"at step {t} of the window Cov[k,l] is not Cov[l,k] transposed"
        lowest = np.linalg.eigvalsh(whole).min(initial=0.0)
        if lowest < -1e-9 * largest - _TINY:
            return f"at step {t} of the window the covariance has the eigenvalue {lowest:.2g} < 0"
    return None


def _first_step(case: EncoderCase) -> str | None:
    built = case.build()
    window = _window(case, built)
    moments = built.moments(window.inputs, window.features, Noise(case.key, 0))
    if moments is None or not window.has_memory:
        return None
    if not near(moments[0][0], window.features[0]):
        return "the mean of the window's first features is not those features, which are known"
    if moments[1][0].any():
        return f"the window's first features are known, but have a variance of {np.abs(moments[1][0]).max():.2g}"
    return None


def _monte_carlo(case: EncoderCase) -> str | None:
    built = case.build()
    window = _window(case, built)
    if built.moments(window.inputs, window.features, Noise(case.key, 0)) is None:
        return None
    mean, covariance, mean_error, covariance_error = _averaged_moments(case, built, window)
    draws = np.stack([_redrawn(built, window, key) for key in _keys(case, _DRAWS)])
    flat = draws.reshape(_DRAWS, WINDOW, -1)
    variances = np.maximum(flat.var(axis=0), np.diagonal(covariance, axis1=1, axis2=2))
    # One scale for the window: features that hardly vary at one step give no scale there.
    size = max(1.0, float(np.sqrt(np.mean(draws**2)))) if draws.size else 1.0
    largest = max(float(np.sqrt(variances.max(initial=0.0))), 1e-3 * size)
    for t in range(WINDOW):
        Z = flat[:, t]
        # A feature that is constant in nearly all draws (a ReLU far below 0) gets its variance from draws too rare to
        # sample; below a hundredth of the features' size it is not checked.
        still = (np.median(Z, axis=0) != Z).mean(axis=0) < 0.1
        scale = np.where(still, max(largest, 0.01 * size), largest)
        off = np.abs(mean[t] - Z.mean(axis=0))
        allowed = 5.0 * np.hypot(Z.std(axis=0) / np.sqrt(_DRAWS), mean_error[t]) + 0.02 * scale
        if (off > allowed).any():
            worst = int(np.argmax(off - allowed))
            return (
                f"at step {t} of the window the mean is {mean[t].flat[worst]:.4g}, but {_DRAWS} draws have "
                f"{Z.mean(axis=0)[worst]:.4g}, more than {allowed[worst]:.2g} away"
            )
        deviations = Z - Z.mean(axis=0)
        drawn = deviations.T @ deviations / (_DRAWS - 1)
        spread = np.sqrt(np.maximum((deviations**2).T @ deviations**2 / _DRAWS - drawn**2, 0.0) / _DRAWS)
        off = np.abs(covariance[t] - drawn)
        allowed = 5.0 * np.hypot(spread, covariance_error[t]) + 0.02 * np.maximum.outer(scale, scale) ** 2
        if (off > allowed).any():
            worst = np.unravel_index(int(np.argmax(off - allowed)), off.shape)
            return (
                f"at step {t} of the window a covariance is {covariance[t][worst]:.4g}, but {_DRAWS} draws have "
                f"{drawn[worst]:.4g}, more than {allowed[worst]:.2g} away"
            )
    return None


def _averaged_moments(case: EncoderCase, built: BuiltEncoder, window: _Window):
    """Mean (T, p·d), covariance (T, p·d, p·d) and the standard error of each: 0 unless the encoder samples them."""
    T = len(window.inputs)
    means, covariances = [], []
    for i in range(_MOMENT_KEYS):
        moments = built.moments(window.inputs, window.features, Noise(case.key, -1 - i))
        assert moments is not None
        means.append(moments[0].reshape(T, -1))
        covariances.append(_joint(moments[1]))
        if i == 1 and same(means[0], means[1]) and same(covariances[0], covariances[1]):
            break
    M, C, root = np.stack(means), np.stack(covariances), np.sqrt(len(means))
    return M.mean(axis=0), C.mean(axis=0), M.std(axis=0, ddof=1) / root, C.std(axis=0, ddof=1) / root


def _joint(covariance: np.ndarray) -> np.ndarray:
    """Blocks (T, p, p, d, d) as one matrix for each step, (T, p·d, p·d)."""
    T, p, _, d, _ = covariance.shape
    return covariance.transpose(0, 1, 3, 2, 4).reshape(T, p * d, p * d)


MOMENT_CONTRACTS = [
    Contract(
        "certain features",
        "if moments gives None, features do not depend on the noise",
        "Define moments, or leave the noise unused.",
        _certain,
    ),
    Contract(
        "moment shapes",
        "moments gives None, or finite mean (T, y_dim, features) and covariance (T, y_dim, y_dim, features, features)",
        "Return nashcast.games.moments.features.Moments(mean, covariance) of these shapes.",
        _moment_shapes,
    ),
    Contract(
        "covariance",
        "Cov[k,l] is Cov[l,k] transposed, and together they are positive semi-definite",
        "Fill both triangles, and check the formula for rows that vary together.",
        _covariance,
    ),
    Contract(
        "known start",
        "with memory, the window's first features are known: their mean is themselves, their variance 0",
        "Start moments from features[0], with covariance 0 there.",
        _first_step,
    ),
    Contract(
        "moments",
        "moments agree with encoding the window again under other noise",
        "Compare the formula with a simulation; with memory, condition on the window's first features only.",
        _monte_carlo,
    ),
]
