"""The compiled mixture weights of replay against Theorem 1 in plain NumPy."""

import numpy as np
import pytest

import nashcast as nc
from nashcast.engines.compiled_mixture import fill_mixture_weights, mixture_scratch


@pytest.mark.parametrize(("steps", "p", "N"), [(1, 1, 3), (1, 2, 3), (4, 1, 2), (6, 2, 5), (1, 1, 40), (20, 3, 4)])
def test_both_forms_agree(steps, p, N):
    rng = np.random.default_rng(steps + N)
    Y, y = rng.standard_normal((steps, p, N)), rng.standard_normal((steps, p))
    rows, weights = steps * p, np.empty(N)
    scratch = np.empty((mixture_scratch(rows, N), max(rows, N)))
    fill_mixture_weights(Y.reshape(rows, N), y.reshape(rows), p, 0.3, 0.9, 0.8, scratch, weights)
    wanted = nc.mixture_weights(Y, y, ridge=0.3, budget=0.9, discount=0.8)
    np.testing.assert_allclose(weights, wanted, rtol=1e-11, atol=1e-13)
