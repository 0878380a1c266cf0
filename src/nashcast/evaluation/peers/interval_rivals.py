"""Other interval methods, to compare with `Intervals`: half-widths (steps,) of one series."""

from __future__ import annotations

import numpy as np

WINDOW = 250
STEP = 0.005
FADING = 0.94
NORMAL = {0.8: 1.2815515655446004, 0.9: 1.6448536269514722, 0.95: 1.959963984540054}


def adaptive_conformal(residuals: np.ndarray, coverage: float) -> np.ndarray:
    """Gibbs and Candès: the quantile of the last absolute residuals at a level that each miss moves."""
    sizes, level, widths = np.abs(residuals), 1.0 - coverage, np.full(len(residuals), np.inf)
    for t in range(1, len(sizes)):
        past = np.sort(sizes[max(0, t - WINDOW) : t])
        place = int(np.ceil((1.0 - level) * (len(past) + 1))) - 1
        # Below level 0 everything is inside, above 1 nothing.
        widths[t] = np.inf if place >= len(past) else (past[place] if place >= 0 else 0.0)
        level += STEP * ((1.0 - coverage) - (sizes[t] > widths[t]))
    return widths


def rolling_quantile(residuals: np.ndarray, coverage: float) -> np.ndarray:
    """The conformal quantile of the last absolute residuals."""
    sizes, widths = np.abs(residuals), np.full(len(residuals), np.inf)
    for t in range(1, len(sizes)):
        past = np.sort(sizes[max(0, t - WINDOW) : t])
        place = int(np.ceil(coverage * (len(past) + 1))) - 1
        widths[t] = past[place] if place < len(past) else np.inf
    return widths


def gaussian(residuals: np.ndarray, coverage: float) -> np.ndarray:
    """A normal distribution with an exponentially weighted variance (RiskMetrics)."""
    widths, variance = np.full(len(residuals), np.inf), 0.0
    for t in range(1, len(residuals)):
        variance = residuals[0] ** 2 if t == 1 else FADING * variance + (1.0 - FADING) * residuals[t - 1] ** 2
        widths[t] = NORMAL[coverage] * np.sqrt(variance)
    return widths


RIVALS = {"ACI": adaptive_conformal, "rolling quantile": rolling_quantile, "Gaussian": gaussian}
