"""Outside agents for the tests: somebody else's forecasts, honest or not."""

import numpy as np

from nashcast.agents.protocol import Answer, Hello


class Outsider:
    """Says row t of `said` at step t; a row with NaN is an absence."""

    def __init__(self, said, name="outsider"):
        self._said, self._name, self._step = np.asarray(said, dtype=float), name, 0

    def begin(self, x_dim, target, key, lookback):
        self._step = 0
        return Hello(self._name, 0, "forecasts")

    def forecast(self, x):
        return Answer(self._said[self._step])

    def learn(self, target):
        self._step += 1

    def learn_late(self, steps_ago, target):
        pass

    def save(self):
        return {"step": np.array(self._step)}

    def restore(self, saved):
        self._step = int(saved["step"])


def bad_outsiders(targets, seed=0):
    """Whole series of forecasts from one that is mostly good and spikes, one that freezes, …"""
    rng = np.random.default_rng(seed)
    steps, p = targets.shape
    size = targets.std(axis=0)
    before = np.vstack([targets[:1], targets[:-1]])
    good = before + 0.1 * size * rng.standard_normal(targets.shape)
    spikes = good.copy()
    places = rng.choice(steps, min(1000, steps // 2), replace=False)
    spikes[places] += 100.0 * size * rng.standard_normal((len(places), p))
    gaps = good.copy()
    gaps[rng.random(steps) < 0.3] = np.nan
    infinite = good.copy()
    infinite[rng.random(steps) < 0.3] = np.inf
    frozen = good.copy()
    frozen[steps // 5 :] = good[steps // 5]
    return {
        "spikes": spikes,
        "missing": gaps,
        "infinite": infinite,
        "frozen": frozen,
        "noise": targets.mean(axis=0) + 3.0 * size * rng.standard_normal(targets.shape),
        "negative": -good,
        "opposite": 2.0 * before - targets,
        "shifted": np.vstack([targets[:1]] * 7 + [targets[:-7]]),
    }
