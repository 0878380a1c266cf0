r"""Exponential weights (Vovk; Kivinen and Warmuth) and fixed share (Herbster and Warmuth), with the range learnt.

$\exp(-\|f - y\|^2/2B)$ is concave in f while $\|f - y\|^2 \le B$, so with weights $v \propto \exp(-L/2B)$ the
mixture's error is at most the mix loss $m = -2B \ln \sum_k v_k \exp(-\ell_k/2B)$, and those add up to at most
$\min_k L_k + 2B \ln N$.
A step that exceeds B is shrunk towards its target to B, which over all steps costs at most B once more:

    regret against expert k          ≤  B (2 ln N + 1)
    regret against any path of experts with s switches in T steps   ≤  B (2 (s + 1) ln(N T) + 1)     (fixed share)

with B the largest squared error of any expert. The +1 vanishes if B is given as `bound`. Losses are in units of
B, and B follows the usual error size as that of the gains does (see `linearised`).
"""

from __future__ import annotations

import numpy as np

from nashcast import validation as check
from nashcast.mixing.boa import softmax
from nashcast.mixing.errors import linearised
from nashcast.mixing.errors.error_scale import Errors
from nashcast.mixing.expert_rule import ExpertRule, Field


class ExponentialWeights(ExpertRule):
    """Convex weights that fall exponentially with an expert's squared error so far.

    bound: the largest squared error, summed over targets, that any expert can make, if it is known.

    >>> rule = ExponentialWeights(2)
    >>> for target in range(100):
    ...     rule.learn([[target + 1.0], [target]], [target])
    >>> bool(rule.weights()[1] > 0.99)
    True
    """

    name = "exponential"

    def __init__(self, experts: int, y_dim: int = 1, *, bound: float | None = None):
        super().__init__(experts, y_dim)
        self._losses = np.zeros(self.experts)  # L / B, up to a constant for all
        self._given_bound = 0.0 if bound is None else check.number("bound", bound, above=0.0)
        self._bound = np.full(1, self._given_bound)
        self._steps = np.zeros(1, dtype=np.int64)

    def _share(self) -> float:
        """The part of all weight that is redistributed after this step."""
        return 0.0

    def _fields(self) -> dict[str, Field]:
        own = {"losses": Field(self._losses), "bound": Field(self._bound), "steps": Field(self._steps)}
        return {**own, **super()._fields()}

    def _weights(self, awake: np.ndarray, forecasts: np.ndarray | None) -> np.ndarray:
        return softmax(-0.5 * self._losses, awake)

    def _learn(self, errors: Errors, awake: np.ndarray, forecasts: np.ndarray, target: np.ndarray) -> None:
        losses = (errors.values**2).sum(axis=0)
        self._steps += 1
        begun = self._bound[0] > linearised.LEAST
        scale = linearised.step_scale(errors, self._given_bound, jointly=True)
        factor, growth = linearised.normalise(self._bound, losses.max(keepdims=True), scale)
        if not begun:
            return
        L, step = self._losses, losses * factor
        mix = _mix_loss(L[awake], step[awake])
        # Sleeping experts get the loss of the mixture, so that the others share their weight among themselves only.
        L += np.where(awake, step, mix)
        L -= L.min()
        share = self._share()
        if share > 0.0:
            L[:] = -2.0 * np.log((1.0 - share) * softmax(-0.5 * L, None) + share / self.experts)
            L -= L.min()
        if growth is not None:
            L /= growth


class FixedShare(ExponentialWeights):
    """Exponential weights that redistribute a share of all weight after each step, so that a new best is found soon.

    share: that part; None: 1 / (1 + steps so far), which needs no tuning and meets the bound above.

    >>> FixedShare(4).weights()
    array([0.25, 0.25, 0.25, 0.25])
    """

    name = "fixed-share"

    def __init__(self, experts: int, y_dim: int = 1, *, bound: float | None = None, share: float | None = None):
        super().__init__(experts, y_dim, bound=bound)
        self._fixed = None if share is None else check.number("share", share, min=0.0, max=1.0)

    def _share(self) -> float:
        return 1.0 / (1.0 + float(self._steps[0])) if self._fixed is None else self._fixed


def _mix_loss(before: np.ndarray, losses: np.ndarray) -> float:
    """-2 ln of the mean of exp(-losses/2) under weights ∝ exp(-before/2)."""
    return _least(before + losses) - _least(before)


def _least(losses: np.ndarray) -> float:
    least = losses.min()
    return float(least - 2.0 * np.log(np.exp(0.5 * (least - losses)).sum()))
