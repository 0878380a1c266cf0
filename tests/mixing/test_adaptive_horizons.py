"""The adaptive mixture at longer horizons: unchanged at horizon 1, and not led astray by overlapping labels."""

from __future__ import annotations

import numpy as np

from nashcast.mixing.adaptive import AdaptiveMixture


def run(errors: np.ndarray, horizons, h: int) -> np.ndarray:
    """Weights after every label of one column whose experts miss by `errors` (steps, experts), h steps ahead."""
    K = errors.shape[1]
    mixture = AdaptiveMixture(1, np.full(K, 1 / K), horizons)
    leverage, awake, labelled = np.zeros((1, K)), np.ones((1, K), dtype=bool), np.ones(1, dtype=bool)
    weights = []
    for t in range(len(errors) - h + 1):
        weights.append(mixture.mix(errors[t + h - 1 : t + h], leverage, awake).weights[0])
        mixture.learn(None, errors[t : t + 1], leverage, awake, np.zeros(1), labelled)
    return np.array(weights)


def test_at_horizon_1_nothing_changes():
    errors = np.random.default_rng(1).standard_normal((60, 4))
    np.testing.assert_array_equal(run(errors, None, 1), run(errors, np.ones(1), 1))


def test_experts_that_are_alike_are_not_chased():
    """Two experts with independent, equally large, overlapping errors: the best weights are equal."""
    h, swing = 24, {}
    for name, horizons in (("in full", None), ("one hth", np.array([h]))):
        costs = []
        for seed in range(4):
            noise = np.random.default_rng(seed).standard_normal((700, 3))
            overlapping = np.apply_along_axis(
                lambda column: np.convolve(column, np.ones(h) / np.sqrt(h), "valid"), 0, noise
            )
            overlapping[:, 0] *= 3.0  # persistence is bad
            weights = run(overlapping, horizons, h)[200:]
            costs.append(np.mean((weights[:, 1] - 0.5) ** 2))
        swing[name] = np.mean(costs)
    assert swing["one hth"] < 0.8 * swing["in full"]


def test_weights_sum_to_one_at_every_horizon():
    errors = np.random.default_rng(2).standard_normal((80, 5))
    np.testing.assert_allclose(run(errors, np.array([7]), 7).sum(axis=1), 1.0)
