r"""Exponential weights (Vovk; Kivinen and Warmuth) and fixed share (Herbster and Warmuth), with the range learnt.

$\exp(-\|f - y\|^2/2B)$ is concave in f while $\|f - y\|^2 \le B$, so with weights $v \propto \exp(-L/2B)$ the
mixture's error is at most the mix loss $m = -2B \ln \sum_k v_k \exp(-\ell_k/2B)$, and those add up to at most
$\min_k L_k + 2B \ln N$.
A step that exceeds B is shrunk towards its target until it does not, which over all steps costs at most B once more:

    regret against expert k          ≤  B (2 ln N + 1)
    regret against any path of experts with s switches in T steps   ≤  B (2 (s + 1) ln(N T) + 1)     (fixed share)

with B the largest squared error of any expert. The +1 falls away if B is given as `bound`.
"""

from __future__ import annotations

import numpy as np

from nashcast import validation as check
from nashcast.maths.expert_rule import ExpertRule


class ExponentialWeights(ExpertRule):
    """Convex weights that fall exponentially with an expert's squared error so far.

    bound: the largest squared error, summed over targets, that any expert can make, if it is known.
    """

    name = "exponential"
    _state = ("losses", "bound", "step")

    def __init__(self, experts: int, y_dim: int = 1, *, bound: float | None = None):
        super().__init__(experts, y_dim)
        self._losses = np.zeros(self.experts)  # L, up to a constant for all
        self._bound = 0.0 if bound is None else check.number("bound", bound, above=0.0)
        self._step = 0

    def _share(self) -> float:
        """What part of all weight is dealt out again after this step."""
        return 0.0

    def _weights(self, here: np.ndarray, forecasts: np.ndarray | None) -> np.ndarray:
        if self._bound == 0.0:
            return np.full(int(here.sum()), 1.0 / here.sum())
        return _softmax(-self._losses[here] / (2.0 * self._bound))

    def _learn(self, forecasts: np.ndarray, target: np.ndarray, here: np.ndarray) -> None:
        losses = ((forecasts[here] - target) ** 2).sum(axis=1)
        self._step += 1
        before, self._bound = self._bound, max(self._bound, float(losses.max()))
        if before == 0.0:
            return
        unit = 2.0 * before
        shrunk = losses * (before / self._bound)
        mix = _mix_loss(self._losses[here], shrunk, unit)
        # Those asleep lose what the mixture lost, so that the others' weight is shared among them alone.
        self._losses[~here] += mix
        self._losses[here] += shrunk
        self._losses -= self._losses.min()
        share = self._share()
        if share > 0.0:
            weights = _softmax(-self._losses / unit)
            self._losses = -unit * np.log((1.0 - share) * weights + share / self.experts)


class FixedShare(ExponentialWeights):
    """Exponential weights that deal out a share of all weight again after each step, so that a new best is found soon.

    share: that part; None: 1 / (1 + steps so far), which needs no tuning and meets the bound above.
    """

    name = "fixed-share"

    def __init__(self, experts: int, y_dim: int = 1, *, bound: float | None = None, share: float | None = None):
        super().__init__(experts, y_dim, bound=bound)
        self._fixed = None if share is None else check.number("share", share, min=0.0, max=1.0)

    def _share(self) -> float:
        return 1.0 / (1.0 + self._step) if self._fixed is None else self._fixed


def _softmax(values: np.ndarray) -> np.ndarray:
    weights = np.exp(values - values.max())
    return weights / weights.sum()


def _mix_loss(before: np.ndarray, losses: np.ndarray, unit: float) -> float:
    """-unit · ln of the mean of exp(-losses/unit) under weights ∝ exp(-before/unit)."""
    return float(_least(before + losses, unit) - _least(before, unit))


def _least(losses: np.ndarray, unit: float) -> float:
    least = losses.min()
    return float(least - unit * np.log(np.exp((least - losses) / unit).sum()))
