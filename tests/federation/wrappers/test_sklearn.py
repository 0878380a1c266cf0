"""Against scikit-learn's own checks."""

import numpy as np
import pytest
from sklearn.utils.estimator_checks import estimator_checks_generator

import nashcast as nc
from nashcast.errors import InvalidInput
from nashcast.federation.wrappers.sklearn import as_sklearn

# Not run: why. `check_array_api_input` skips itself unless SciPy's array API is switched on by an environment variable.
NOT_APPLICABLE = {"check_array_api_input"}


def small(x_dim):
    return nc.Federation([nc.Agent(nc.encoders.Trend()), nc.Agent(nc.encoders.Lags())], x_dim=x_dim)


def _name(check):
    return getattr(check, "func", check).__name__


CHECKS = [check for _, check in estimator_checks_generator(as_sklearn(small)) if _name(check) not in NOT_APPLICABLE]


@pytest.mark.parametrize("place", range(len(CHECKS)), ids=[f"{i} {_name(check)}" for i, check in enumerate(CHECKS)])
def test_check(place):
    CHECKS[place](as_sklearn(small))


def test_partial_fit_goes_on_where_fit_ended():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)), rng.normal(size=60)
    whole = as_sklearn(small).fit(X, y)
    parts = as_sklearn(small).fit(X[:30], y[:30]).partial_fit(X[30:], y[30:])
    np.testing.assert_array_equal(whole.predict(X[:5]), parts.predict(X[:5]))


def test_a_longer_horizon_is_refused():
    model = as_sklearn(lambda x_dim: nc.Federation([nc.Agent(nc.encoders.Trend())], horizon=3))
    with pytest.raises(InvalidInput, match="horizon 1"):
        model.fit(np.zeros((5, 1)), np.arange(5.0))
