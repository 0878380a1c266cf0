"""Noise that is looked up: normal, independent across keys, steps and indices, and the same whenever asked for."""

import numpy as np
import pytest
from scipy import stats

from nashcast import seeds
from nashcast.games.moments.counter_noise import standard_normals


def noise(key, first, steps, size):
    return standard_normals(key, np.arange(first, first + steps)[:, None], np.arange(size))


@pytest.mark.parametrize("shape", [(200_000, 1), (1, 200_000), (400, 500)])
def test_it_is_standard_normal_along_steps_and_indices(shape):
    values = noise(seeds.key(1, "noise"), 0, *shape).ravel()
    assert stats.kstest(values, "norm").pvalue > 1e-3
    assert abs(values.mean()) < 5 / np.sqrt(values.size)
    assert abs(stats.kurtosis(values)) < 0.06
    assert abs(np.corrcoef(values[:-1], values[1:])[0, 1]) < 5 / np.sqrt(values.size)


def test_keys_steps_and_indices_are_independent_of_each_other():
    n = 100_000
    keys = np.array([noise(key, 0, 1, 1)[0, 0] for key in range(2000)])
    assert stats.kstest(keys, "norm").pvalue > 1e-3
    one, other = noise(seeds.key(1, "agent", 0), 0, n, 1), noise(seeds.key(1, "agent", 1), 0, n, 1)
    assert abs(np.corrcoef(one[:, 0], other[:, 0])[0, 1]) < 5 / np.sqrt(n)
    rows = noise(7, 0, n, 2)
    assert abs(np.corrcoef(rows[:, 0], rows[:, 1])[0, 1]) < 5 / np.sqrt(n)
    assert abs(np.corrcoef(rows[1:, 0], rows[:-1, 1])[0, 1]) < 5 / np.sqrt(n)


def test_asking_again_elsewhere_or_alone_gives_the_same():
    block = noise(42, 10, 5, 3)
    np.testing.assert_array_equal(noise(42, 12, 1, 3)[0], block[2])
    assert standard_normals(42, 13, 1) == block[3, 1]
    assert standard_normals(42, -1, 0) != standard_normals(42, 0, 0)


def test_the_compiled_twin_gives_the_same_bits():
    twin = pytest.importorskip("nashcast.federation.compiled.counter_noise").standard_normal_at
    rng = np.random.default_rng(1)
    keys = [0, 1, 2**63 - 1, *rng.integers(0, 2**63, 20).tolist()]
    for key in keys:
        for step in (0, 7, -1, -12345, 2**40):
            twins = [twin(key, step, index) for index in range(50)]
            np.testing.assert_array_equal(standard_normals(key, step, np.arange(50)), twins)
