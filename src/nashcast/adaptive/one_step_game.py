r"""The prior-centred game, look-back 1, certain features, in closed form: docs/explanation/prior-centred-game.md.

Agent i chooses β_i to pay $(y - \sum_j w_j z_j^\top\beta_j)^2 + \gamma\|\beta_i - \bar\beta_i\|^2$, where z_j are its
features before the last target and y that target's change. With $e = y - \sum_j w_j z_j^\top\bar\beta_j$, what the
mixture of the memories would still have got wrong, the only equilibrium is

$$\beta_i = \bar\beta_i + \frac{w_i z_i}{\gamma} \cdot \frac{e}{1 + \sum_j w_j^2\|z_j\|^2/\gamma}.$$
"""

from __future__ import annotations

from numba import njit


@njit(cache=True)
def mixture_pull(weights, recalled, lengths, change, ridge):
    """How hard the last target pulls all agents alike: e / (1 + Σ w²‖z‖²/γ).

    recalled: zᵀβ̄ of each agent.   lengths: ‖z‖² of each.   change: y.   ridge: γ > 0.
    """
    left, coupling = change, 1.0
    for i in range(len(weights)):
        left -= weights[i] * recalled[i]
        coupling += weights[i] * weights[i] * lengths[i] / ridge
    return left / coupling
