"""Recursive least squares on five sets of features: the linear and nearly linear baselines.

Every set forecasts the change from the last target, so a ridge pulls towards persistence and not towards zero.
"""

from __future__ import annotations

import numpy as np

from nashcast import seeds
from nashcast import validation as check
from nashcast.errors import InvalidInput

FORGETTING = 0.99
LINEAR_RIDGE = 0.3
NONLINEAR_RIDGE = 0.1
AR_LAGS = 4
INPUT_LAGS = 2
PRODUCTS_OF = 12
RANDOM_FEATURES = 50
RANDOM_SEED = 2024


def on_lags(inputs: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Autoregression: the last targets."""
    return _least_squares(known, [_constant(known), _centred(_lags(known, AR_LAGS))], LINEAR_RIDGE)


def on_increments(inputs: np.ndarray, known: np.ndarray) -> np.ndarray:
    """The last changes of the target and the last change of the inputs; no constant, so no drift."""
    return _least_squares(known, [_lags(_increments(known), AR_LAGS), _increments(inputs)], LINEAR_RIDGE)


def on_inputs(inputs: np.ndarray, known: np.ndarray) -> np.ndarray:
    """The last targets and the inputs."""
    features = [_constant(known), _centred(_lags(known, INPUT_LAGS)), _centred(inputs)]
    return _least_squares(known, features, LINEAR_RIDGE)


def on_quadratics(inputs: np.ndarray, known: np.ndarray) -> np.ndarray:
    """The last targets, the inputs, and the products of two of them (nonlinear vector autoregression)."""
    u = np.hstack([_centred(_lags(known, INPUT_LAGS)), _centred(inputs)])
    i, j = np.triu_indices(min(u.shape[1], PRODUCTS_OF))
    return _least_squares(known, [_constant(known), u, u[:, i] * u[:, j]], NONLINEAR_RIDGE)


def on_random_features(inputs: np.ndarray, known: np.ndarray) -> np.ndarray:
    """The last target, the inputs, and ReLU of fixed random combinations of both, standardised online."""
    x = np.hstack([known, inputs])
    rng = seeds.generator(RANDOM_SEED, "baselines", "random features")
    A = rng.standard_normal((x.shape[1], RANDOM_FEATURES)) / np.sqrt(x.shape[1])
    b = rng.standard_normal(RANDOM_FEATURES)
    features = [_constant(known), _centred(x), np.maximum(standardised(x) @ A + b, 0.0)]
    return _least_squares(known, features, NONLINEAR_RIDGE)


def _least_squares(known: np.ndarray, features: list[np.ndarray], ridge: float) -> np.ndarray:
    # The changes in `known` end one row before the features do: no forecast can see its own target.
    return known + rls(np.hstack(features), np.diff(known, axis=0), forgetting=FORGETTING, ridge=ridge)


def _constant(series: np.ndarray) -> np.ndarray:
    return np.ones((len(series), 1))


def _lags(series: np.ndarray, count: int) -> np.ndarray:
    """Each row with the count - 1 rows before it, newest first; the first row is repeated before the start."""
    rows = np.arange(len(series))
    return np.hstack([series[np.maximum(rows - lag, 0)] for lag in range(count)])


def _increments(series: np.ndarray) -> np.ndarray:
    return np.diff(series, axis=0, prepend=series[:1])


def _centred(series: np.ndarray) -> np.ndarray:
    """Subtract the first row, which is known from the start, so that forecasts do not depend on the origin."""
    return series - series[0]


def standardised(series: np.ndarray) -> np.ndarray:
    """Row t standardised by the mean and standard deviation of rows 0 … t; 0 where those are constant."""
    x = _centred(series)
    n = np.arange(1, len(x) + 1)[:, None]
    mean = np.cumsum(x, axis=0) / n
    variance = np.cumsum(x * x, axis=0) / n - mean * mean
    differ = variance > 0.0
    return np.where(differ, x - mean, 0.0) / np.sqrt(np.where(differ, variance, 1.0))


def rls(features: np.ndarray, responses: np.ndarray, *, forgetting: float, ridge: float) -> np.ndarray:
    r"""Forecast each response by least squares on those before it, all of them weighted by age.

    $$\beta_t = \arg\min_\beta \sum_{s<t} \lambda^{t-1-s} \|r_s - \phi_s\beta\|^2 + \rho d \sum_j m_{tj} \|\beta_j\|^2,
    \qquad m_{tj} = \frac{1}{t+1} \sum_{s \le t} \phi_{sj}^2$$

    features: $\phi$, shape (steps, features).   responses: $r$, shape (steps - 1, y_dim): none is needed for the last.
    forgetting: $0 < \lambda \le 1$.   ridge: $\rho > 0$. It grows with the features' number d and their mean squares,
    so that shrinkage depends neither on their units nor on their number, and it does not fade with the data.
    Row t of the result is $\phi_t\beta_t$; row 0 is 0. NaN where the squares of the features overflow.
    """
    phi = check.of_rank("features", features, ("steps", "features"))
    r = check.numbers("responses", responses, ("steps - 1", "y_dim"))
    if r.ndim != 2 or len(r) != len(phi) - 1:
        remedy = f"Pass an array of shape (steps - 1, y_dim) = ({len(phi) - 1}, y_dim)."
        raise InvalidInput("responses", f"shape {check.shape_text(r.shape)}", remedy)
    fading = check.number("forgetting", forgetting, above=0.0, max=1.0)
    return _rls(phi, r, fading, check.number("ridge", ridge, above=0.0))


def _rls(phi: np.ndarray, r: np.ndarray, forgetting: float, ridge: float) -> np.ndarray:
    steps, d = phi.shape
    forecasts = np.zeros((steps, r.shape[1]))
    gram, cross, power = np.zeros((d, d)), np.zeros((d, r.shape[1])), phi[0] ** 2
    for t in range(1, steps):
        gram = forgetting * gram + np.outer(phi[t - 1], phi[t - 1])
        cross = forgetting * cross + np.outer(phi[t - 1], r[t - 1])
        power += (phi[t] ** 2 - power) / (t + 1)
        # A feature that has always been 0 has the coefficient 0.
        loaded = gram + np.diag(np.where(power > 0.0, ridge * d * power, 1.0))
        try:
            np.linalg.cholesky(loaded)
            forecasts[t] = phi[t] @ np.linalg.solve(loaded, cross)
        except np.linalg.LinAlgError:  # not positive definite any more: numbers have overflowed
            forecasts[t] = np.nan
    return forecasts
