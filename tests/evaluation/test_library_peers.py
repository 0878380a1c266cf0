"""Peers of statsforecast and sktime: refits by the stated schedule, and sktime's own forecasts to the last digits."""

import warnings
from functools import partial

import numpy as np
import pytest

from nashcast.evaluation.method import Problem
from nashcast.evaluation.peers import sktime_peers, statsforecast_peers
from nashcast.evaluation.peers.sktime_peers import Combined, Naive, drift, last, mean_of
from nashcast.evaluation.peers.statsforecast_peers import SEASONAL, WINDOW, Refitted
from support.extras import skip_if


@pytest.fixture(autouse=True)
def _installed():
    for method in (*statsforecast_peers.methods(), *sktime_peers.methods()):
        skip_if("" if method.installed else method.missing)


def series(steps, seed=0):
    return np.sin(np.arange(steps) / 3.0) + 0.1 * np.random.default_rng(seed).standard_normal(steps)


class Counting:
    """A model that notes what it was fitted to, and forecasts how much it has seen."""

    fits: list

    def fit(self, window):
        self.fits.append(len(window))
        return self

    def forward(self, window, horizon):
        return {"mean": np.array([float(len(window))])}


def walked(make, most, values):
    model, said = Refitted(make, most, values[0]), []
    for value in values[1:]:
        said.append(model.forecast())
        model.learn(value)
    return np.array(said)


def test_the_refit_schedule():
    Counting.fits = []
    values = series(1001).tolist()
    said = walked(Counting, 200, values)
    seen = [30, 45, 67, 100, 150, 225, 337]
    while seen[-1] + 200 <= 1000:
        seen.append(min(int(seen[-1] * 1.5), seen[-1] + 200))
    assert Counting.fits == [min(count, WINDOW) for count in seen]
    assert said[:29].tolist() == values[:29]  # too little to fit: the last value
    assert said[29:].tolist() == [float(min(count, WINDOW)) for count in range(30, 1001)]


@pytest.mark.slow  # statsforecast takes seconds to import
@pytest.mark.parametrize("name", SEASONAL)
def test_a_forecast_on_the_step_of_a_fit_is_the_packages(name):
    values = series(46)
    make = partial(SEASONAL[name], 1)
    said = walked(make, 200, values.tolist())
    for count in (30, 45):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            reference = make().fit(values[:count]).predict(1)["mean"][0]
        assert said[count - 1] == pytest.approx(reference, rel=1e-6)


def test_what_cannot_be_fitted_is_persistence():
    class Failing(Counting):
        def fit(self, window):
            raise np.linalg.LinAlgError

    class Endless(Counting):
        def forward(self, window, horizon):
            return {"mean": np.array([np.inf])}

    Counting.fits = []
    values = series(60).tolist()
    assert walked(Failing, 200, values).tolist() == values[:-1]
    assert walked(Endless, 200, values).tolist() == values[:-1]
    assert walked(partial(SEASONAL["AutoETS"], 1), 200, [2.0] * 60).tolist() == [2.0] * 59


@pytest.mark.slow  # and so does sktime
@pytest.mark.parametrize("algorithm", ["NNLS", "NormalHedge"])
def test_the_ensemble_is_sktimes(algorithm):
    import pandas as pd
    from sktime.forecasting.naive import NaiveForecaster
    from sktime.forecasting.online_learning import OnlineEnsembleForecaster

    values, begun = series(30) + 3.0, 6
    ours = Combined(algorithm, [Naive(rule, values[0]) for rule in (last, partial(mean_of, 3), partial(mean_of, 5))])
    for value in values[1:begun]:  # the members alone: sktime's ensemble begins to learn after its fit
        for member in ours._members:
            member.learn(float(value))
    naive = {"a": ("last", None), "b": ("mean", 3), "c": ("mean", 5)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = OnlineEnsembleForecaster(
            [(name, NaiveForecaster(rule, window_length=length)) for name, (rule, length) in naive.items()],
            ensemble_algorithm=sktime_peers.ensemble_algorithm(algorithm, 3),
        )
        theirs.fit(pd.Series(values[:begun]), fh=[1])
        for t in range(begun, len(values)):
            assert ours.forecast() == pytest.approx(float(theirs.predict(fh=[1]).iloc[0]), rel=1e-9)
            theirs.update(pd.Series(values[t : t + 1], index=[t]), update_params=True)
            ours.learn(float(values[t]))


def test_drift_is_the_line_through_the_first_and_the_last_value():
    values = series(20)
    slope, offset = np.polyfit([0, 19], [values[0], values[-1]], 1)
    assert drift(values.tolist()) == pytest.approx(offset + 20 * slope)
    assert drift([4.0]) == 4.0


@pytest.mark.slow
def test_equal_members_leave_the_weights():
    ours = Combined("NormalHedge", [Naive(last, 1.0), Naive(last, 1.0)])
    for value in (2.0, 3.0):
        assert ours.forecast() == ours._members[0].forecast()
        ours.learn(value)


@pytest.mark.slow
def test_each_target_has_its_own_models():
    y = np.column_stack([series(50), 5.0 * series(50, seed=1)])
    for method in (statsforecast_peers.methods()[1], sktime_peers.methods()[0]):
        make = next(iter(method.choices.values()))
        both = make(Problem(1, 2, y[0]), 0)
        single = [make(Problem(1, 1, y[0, k : k + 1]), 0) for k in range(2)]
        for row in y[1:]:
            said = both.predict_one(np.zeros(1))
            alone = [float(np.ravel(one.predict_one(np.zeros(1)))[0]) for one in single]
            np.testing.assert_allclose(said, alone, rtol=1e-9)
            both.learn_one(np.zeros(1), row)
            for k, one in enumerate(single):
                one.learn_one(np.zeros(1), row[k : k + 1])
