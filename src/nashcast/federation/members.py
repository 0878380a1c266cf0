"""The members of a federation, whose experts are mixed: their own forecasts, and the forecast without each of them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

# An equal part of all awake experts beside their weights, so that members without weight have a forecast too.
_SMALL_PART, _NOTHING = 1e-12, 1e-9


class Mixture(NamedTuple):
    """The mixture behind the forecast of the next target. All arrays may have further leading axes."""

    weights: np.ndarray  # per expert, (y_dim, experts)
    experts: np.ndarray  # forecast of each expert, (y_dim, experts)
    awake: np.ndarray  # (experts,)
    shares: np.ndarray  # each agent's part of the joint experts' changes, (variants, agents, y_dim)


class Members:
    """names: baselines first, then the agents, then the joint game if it is played.   owner: the member of each expert.

    The baselines are persistence and running means of the targets. Weights times own forecasts add up to the
    federation's forecast.
    """

    def __init__(self, names: list[str], owner: np.ndarray):
        self.names, self.owner = names, owner
        self.experts = (owner[:, None] == np.arange(len(names))).astype(np.float64)  # (experts, members), 1 or 0

    @property
    def prior(self) -> np.ndarray:
        """Prior weights of the experts: equal for all members, and equal within each member."""
        shares = np.bincount(self.owner, minlength=len(self.names))
        return 1.0 / (np.count_nonzero(shares) * shares[self.owner])

    def own_forecasts(self, weights: np.ndarray, experts: np.ndarray, awake: np.ndarray) -> np.ndarray:
        """Each member's own forecasts, by the weights of its experts, (members, horizon, y_dim).

        weights, experts: (y_dim, horizon, experts).
        """
        weights = weights + _SMALL_PART * awake
        total = weights @ self.experts
        own = np.divide((weights * experts) @ self.experts, total, out=np.zeros_like(total), where=total > 0.0)
        return own.transpose(2, 1, 0)

    def own(self, mixture: Mixture) -> np.ndarray:
        """Each member's own forecast of the next target, (…, members, y_dim), by the weights of its experts."""
        weights, experts, awake, _ = mixture
        counts = (awake @ self.experts)[..., None, :]
        small = _SMALL_PART / np.maximum(counts, 1.0)
        total = weights @ self.experts + small * counts
        own = (weights * experts) @ self.experts + small * ((experts * awake[..., None, :]) @ self.experts)
        return np.divide(own, total, out=np.zeros_like(own), where=total > 0.0).swapaxes(-1, -2)

    def present(self, awake: np.ndarray) -> np.ndarray:
        """Which members have an expert that is awake, (…, members)."""
        return awake @ self.experts > 0.0

    def without(self, mixture: Mixture) -> np.ndarray:
        """The federation's forecast without each member, (…, members, y_dim).

        Its experts are left out, and its part of the joint ones.
        """
        weights, experts, _, shares = mixture
        weighted = weights * experts
        of_members, weight = weighted @ self.experts, weights @ self.experts
        left = np.add.reduce(weighted, axis=-1, keepdims=True) - of_members
        if shares.shape[-3]:
            of_joint = weights[..., None, len(self.owner) - shares.shape[-3] :]  # (…, y_dim, 1, variants)
            left[..., 1:-1] -= np.matmul(of_joint, np.moveaxis(shares, -1, -3))[..., 0, :]
        # Without a member that has all the weight, the forecast is the last target.
        rest = 1.0 - weight
        left = np.where(rest > _NOTHING, left, experts[..., :1]) / np.where(rest > _NOTHING, rest, 1.0)
        return left.swapaxes(-1, -2)
