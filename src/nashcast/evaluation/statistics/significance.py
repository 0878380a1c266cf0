r"""The Diebold–Mariano test: is one forecaster's mean loss different from another's?

With $d_t$ the difference of losses, the statistic is $\bar d / \sqrt{\hat\omega/T}$ with $\hat\omega$ the long-run
variance of d by Newey and West: $\gamma_0 + 2 \sum_{l \le L} (1 - l/(L+1)) \gamma_l$, $L = \lfloor T^{1/3} \rfloor$.
It is compared with Student's t with T - 1 degrees of freedom, as Harvey, Leybourne and Newbold advise.
"""

from __future__ import annotations

from math import exp, inf, lgamma, log, log1p, nan, sqrt

import numpy as np

from nashcast import validation as check


def diebold_mariano(losses: np.ndarray, others: np.ndarray) -> tuple[float, float]:
    """The statistic, positive where `losses` are larger, and its two-sided p-value. losses, others: (steps,).

    NaN where a loss is not finite or there are fewer than 10 steps; p = 1 where all losses are equal.
    """
    first = check.of_rank("losses", losses, ("steps",))
    second = check.shaped("others", others, first.shape, "(steps,)")
    with np.errstate(invalid="ignore"):
        d = first - second
    if len(d) < 10 or not check.all_finite(d):
        return nan, nan
    if not d.any():
        return 0.0, 1.0
    variance = long_run_variance(d)
    mean = float(d.mean())
    if variance <= 0.0:
        return (inf if mean > 0 else -inf), 0.0
    statistic = mean / sqrt(variance / len(d))
    return statistic, student_p(statistic, len(d) - 1)


def long_run_variance(values: np.ndarray) -> float:
    """Newey and West's long-run variance, with Bartlett's weights: never negative."""
    apart = values - values.mean()
    T = len(apart)
    lags = int(np.floor(T ** (1 / 3) + 1e-9))
    total = apart @ apart / T
    for lag in range(1, lags + 1):
        total += 2.0 * (1.0 - lag / (lags + 1)) * (apart[lag:] @ apart[:-lag]) / T
    return float(total)


def student_p(statistic: float, freedom: int) -> float:
    """The probability that |t| with these degrees of freedom exceeds |statistic|."""
    x = freedom / (freedom + statistic * statistic)
    return incomplete_beta(freedom / 2.0, 0.5, x)


def incomplete_beta(a: float, b: float, x: float) -> float:
    """The regularised incomplete beta function by its continued fraction (Lentz)."""
    if x <= 0.0 or x >= 1.0:
        return 0.0 if x <= 0.0 else 1.0
    if x > (a + 1.0) / (a + b + 2.0):
        return 1.0 - incomplete_beta(b, a, 1.0 - x)
    front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x)) / a
    tiny = 1e-300
    fraction, c, d = 1.0, 1.0, 0.0
    for step in range(400):
        m = step // 2
        if step == 0:
            numerator = 1.0
        elif step % 2 == 0:
            numerator = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        else:
            numerator = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        d = 1.0 / _apart_from_zero(1.0 + numerator * d, tiny)
        c = _apart_from_zero(1.0 + numerator / c, tiny)
        fraction *= c * d
        if step > 0 and abs(c * d - 1.0) < 1e-15:
            break
    return front * (fraction - 1.0)


def _apart_from_zero(value: float, tiny: float) -> float:
    return value if abs(value) > tiny else tiny
