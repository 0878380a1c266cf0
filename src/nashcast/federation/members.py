"""The members of a federation: whose experts are mixed, and what each of them says and is worth."""

from __future__ import annotations

import numpy as np

from nashcast.federation.joint_server import JointForecast

# An equal part of all awake experts beside their weights, so that members without weight have a forecast too.
_SMALL_PART, _NOTHING = 1e-12, 1e-9


class Members:
    """names: persistence first, then the agents, then the joint game if it is played.   owner: of each expert."""

    def __init__(self, names: list[str], owner: np.ndarray):
        self.names, self.owner = names, owner
        self.experts = (owner[:, None] == np.arange(len(names))).astype(np.float64)  # (experts, members), 1 or 0

    @property
    def prior(self) -> np.ndarray:
        """Weights of the experts, the same for all members together and within each of them."""
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

    def split(
        self, weights: np.ndarray, experts: np.ndarray, awake: np.ndarray, joint: JointForecast | None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Each member's weight, (y_dim, members), its own forecast, and the federation's without it, (members, y_dim).

        weights, experts: (y_dim, experts). A member's own forecast is that of its experts by their weights. Without a
        member its experts are left out, and its part of the joint ones.
        """
        weighted = weights * experts
        shares, of_members, of_awake = np.matmul(np.array([weights, weighted, experts * awake]), self.experts)
        counts = awake @ self.experts
        small = _SMALL_PART / np.maximum(counts, 1.0)
        total = shares + small * counts
        own = of_members + small * of_awake
        own = own / total if total.all() else np.divide(own, total, out=np.zeros_like(own), where=total > 0.0)
        left = np.add.reduce(weighted, axis=1, keepdims=True) - of_members
        if joint is not None:
            of_joint = weights[:, None, len(self.owner) - len(joint.changes) :]  # (y_dim, 1, variants)
            left[:, 1:-1] -= np.matmul(of_joint, joint.shares[..., 0].transpose(2, 0, 1))[:, 0]
        rest = 1.0 - shares
        if rest.min() <= _NOTHING:  # without a member that has all the weight, the last target is left
            left = np.where(rest > _NOTHING, left, experts[:, :1])
            rest = np.where(rest > _NOTHING, rest, 1.0)
        return shares, own.T, (left / rest).T
