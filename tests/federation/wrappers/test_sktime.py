"""Against sktime's own checks."""

import numpy as np
import pandas as pd
import pytest
from sktime.utils.estimator_checks import check_estimator

from nashcast.federation.wrappers.sktime import FederationForecaster, _trend, as_sktime

# Why each does not apply:
NOT_APPLICABLE = [
    "test__y_remember_data",  # reads a copy of all data, which ours does not keep; sktime's default from 1.3 on
    "test_get_test_params_coverage",  # wants every check twice, for two sets of parameters; there is one parameter
]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_its_checks():
    options = {"raise_exceptions": False, "verbose": False, "tests_to_exclude": NOT_APPLICABLE}
    results = check_estimator(FederationForecaster, **options)
    assert len(results) > 300
    assert {name: str(result) for name, result in results.items() if result != "PASSED"} == {}


@pytest.mark.filterwarnings("ignore")
def test_update_goes_on_and_bounds_contain_the_forecast():
    y = pd.Series(np.sin(np.arange(80) / 3.0), index=pd.period_range("2024-01", periods=80, freq="M"), name="load")
    whole = as_sktime(_trend).fit(y, fh=[1, 2, 3])
    parts = as_sktime(_trend).fit(y[:60], fh=[1, 2, 3]).update(y[60:])
    pd.testing.assert_series_equal(whole.predict(), parts.predict())
    bounds = whole.predict_interval(coverage=0.8)
    assert (bounds.iloc[:, 0] < whole.predict()).all()
