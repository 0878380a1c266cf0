"""Against sktime's own checks."""

import numpy as np
import pytest

pytest.importorskip("sktime")  # its checks need it; the dev lock has it

import pandas as pd
from sktime.utils.estimator_checks import check_estimator

from nashcast.errors import InvalidInput
from nashcast.federation.sktime import FederationForecaster, _trend, as_sktime


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_its_checks():
    results = check_estimator(FederationForecaster, raise_exceptions=False, verbose=False)
    assert len(results) > 50
    assert {name: str(result) for name, result in results.items() if result != "PASSED"} == {}


@pytest.mark.filterwarnings("ignore")
def test_update_goes_on_and_bounds_contain_the_forecast():
    y = pd.Series(np.sin(np.arange(80) / 3.0), index=pd.period_range("2024-01", periods=80, freq="M"), name="load")
    whole = as_sktime(_trend).fit(y, fh=[1, 2, 3])
    parts = as_sktime(_trend).fit(y[:60], fh=[1, 2, 3]).update(y[60:])
    pd.testing.assert_series_equal(whole.predict(), parts.predict())
    bounds = whole.predict_interval(coverage=0.8)
    assert (bounds.iloc[:, 0] < whole.predict()).all()
    with pytest.raises(InvalidInput, match="no further than fh"):
        whole.predict(fh=[9])
