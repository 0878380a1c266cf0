"""BOA over columns, with prior weights: against the rule as an object, and its regret bound."""

import numpy as np
import pytest

from nashcast.mixing import boa
from nashcast.mixing.errors import error_scale
from support import plain_rules as plain


def test_equal_priors_give_the_plain_loop_in_every_column():
    rng = np.random.default_rng(4)
    targets = np.cumsum(rng.standard_normal((200, 2)), axis=0)
    forecasts = targets[:, :, None] + rng.uniform(0.5, 1.0, 5) * rng.standard_normal((200, 2, 5))
    state, scale, seen = boa.init(2, 5), error_scale.init(2), []
    for f, y in zip(forecasts, targets, strict=True):
        seen.append(boa.weights(state))
        boa.learn(state, error_scale.observe(scale, f, y), seen[-1])
    everyone = np.ones((200, 5), dtype=bool).tolist()
    for c in range(2):
        wanted = plain.boa(forecasts[:, c, :, None].tolist(), targets[:, c, None].tolist(), everyone)
        np.testing.assert_allclose(np.array(seen)[:, c], wanted, rtol=1e-8)


@pytest.mark.parametrize("prior", [np.full(4, 0.25), np.array([0.85, 0.05, 0.05, 0.05])])
def test_regret_stays_within_its_bound_on_hostile_sequences(prior):
    rng = np.random.default_rng(5)
    for hostile in range(20):
        steps, forecasts = 400, rng.uniform(-1, 1, (400, 1, 4))
        state, scale, gains = boa.init(1, 4, prior=prior), error_scale.init(1), np.zeros((400, 4))
        for t in range(steps):
            f, weights = forecasts[t], boa.weights(state)
            mixed = (weights @ f[0]).item()
            # The target that hurts the mixture most, or a favourite expert that changes now and then.
            favourite = f[0, (hostile + t // 100) % 4]
            y = favourite if hostile % 2 else (-1.0 if mixed > 0 else 1.0)
            gains[t] = 2.0 * (mixed - y) * (mixed - f[0])
            boa.learn(state, error_scale.observe(scale, f, np.array([y])), weights)
        V, B, log_odds = (gains**2).sum(axis=0), np.abs(gains).max(), np.log(1.0 / prior)
        rates = 1.0 / np.sqrt(V / log_odds + 4.0 * B**2)
        first = np.abs(gains[0]).max()
        drop = np.log(1.0 + np.log(np.maximum(1.0 / (2.0 * max(first, 1e-12)) / rates, 1.0)).max())
        allowed = B + 2.0 * np.sqrt(V * log_odds) + (np.sqrt(V / log_odds) + 2.0 * B) * (log_odds + drop)
        assert np.all(gains.sum(axis=0) <= allowed)
