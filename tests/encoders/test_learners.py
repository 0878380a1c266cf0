"""Models that learn inside a federation: from every label once, saved as numbers or taught again."""

import warnings

import numpy as np
import pandas as pd
import pytest
from river import linear_model, preprocessing, time_series
from sklearn.linear_model import LinearRegression, SGDRegressor
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import nashcast as nc
from nashcast.agents.lookback.paper_agent import PaperAgent
from nashcast.checks import check_encoder
from nashcast.encoders import Learner, RiverModel, SklearnRegressor, SklearnTransformer
from nashcast.encoders.black_box.model_state import NotPlain, from_arrays, to_arrays

RNG = np.random.default_rng(0)
X = RNG.standard_normal((160, 2))
Y = np.zeros(161)
for _t in range(160):
    Y[_t + 1] = 0.8 * Y[_t] + X[_t] @ [1.0, -2.0] + 0.1 * RNG.standard_normal()


class Regression:
    """Least mean squares over the input and three lags. `told` holds every lesson."""

    def __init__(self):
        self.weights, self.told = np.zeros(5), []

    def predict(self, x):
        return self.weights @ x

    def learn(self, x, y):
        self.told.append((x.copy(), y))
        self.weights = self.weights + 0.05 * (y - self.weights @ x) * x


class Saved(Regression):
    def get_state(self):
        return {"weights": self.weights}

    def set_state(self, state):
        self.weights = state["weights"]


def pair():
    model = Regression()
    return model.predict, model.learn


def river_regression():
    return preprocessing.StandardScaler() | linear_model.LinearRegression()


LEARNERS = {
    "object": lambda: Learner(Regression, lags=3),
    "object that saves itself": lambda: Learner(Saved, lags=3),
    "pair of functions": lambda: Learner(pair, lags=3),
    "river regressor": lambda: RiverModel(river_regression(), lags=3),
    "river forecaster": lambda: RiverModel(time_series.HoltWinters(alpha=0.3)),
    "sklearn, plain state": lambda: SklearnRegressor(SGDRegressor(), lags=3, learn=True),
    "sklearn, replayed": lambda: SklearnRegressor(MLPRegressor(hidden_layer_sizes=(3,), random_state=0), learn=True),
}


@pytest.mark.parametrize("make", LEARNERS.values(), ids=LEARNERS)
def test_learners_keep_every_contract(make):
    check_encoder(make(), x_dim=2, y_dim=1, steps=12)


def step(federation, t):
    """One step; every ninth label is missing, and some of these come four steps later."""
    x = {"a": X[t, 0], "b": X[t, 1]}
    forecast = federation.predict_one(x)
    federation.learn_one(x, Y[t + 1] if t % 9 else None)
    if t % 9 == 4 and t % 2:
        federation.learn_late(t - 4, Y[t - 3])
    return forecast


@pytest.mark.parametrize("make", LEARNERS.values(), ids=LEARNERS)
def test_saved_and_loaded_they_go_on_bit_for_bit(make, tmp_path):
    def federation():
        return nc.Federation([nc.Agent(make(), name="learner")], horizon=2)

    one, other = federation(), federation()
    for t in range(60):
        step(one, t)
    one.save(tmp_path / "state")
    other.load(tmp_path / "state")
    for t in range(60, 100):
        np.testing.assert_array_equal(step(one, t), step(other, t))


def test_every_label_is_learnt_once_with_the_row_of_its_own_step():
    made = []
    make = Learner(lambda: made.append(Regression()) or made[-1], lags=3)
    federation = nc.Federation([nc.Agent(make, inputs=["b"], name="learner")])
    for t in range(40):
        step(federation, t)
    expected = []
    for t in range(2, 40):  # the first label, of step 1, begins the stream
        if t % 9:
            expected.append(t)
        if t % 9 == 4 and t % 2 and t > 4:
            expected.append(t - 4)
    (model,) = made
    assert [y for _, y in model.told] == [Y[t + 1] for t in expected]
    # What it saw then: the input it may see, and the last targets, the newest first.
    for (row, _), t in zip(model.told, expected, strict=True):
        assert row.shape == (4,)
        assert row[0] == X[t, 1]
        if t > 4 and t % 9 > 3:
            np.testing.assert_array_equal(row[1:], Y[[t, t - 1, t - 2]])


def test_it_learns_and_is_worth_it():
    federation = nc.Federation([nc.Agent(RiverModel(river_regression(), lags=3), name="river")])
    for t in range(150):
        step(federation, t)
    trust = {one.name: one for one in federation.trust()}
    assert trust["river"].recent_error < 0.25 * trust["baselines"].recent_error
    frozen = nc.Federation([nc.Agent(RiverModel(river_regression(), learn=False), name="river")])
    for t in range(150):
        step(frozen, t)
    assert frozen._loop._agents._forecasters[0].said == 0.0


def test_a_learner_that_fails_to_learn_sits_the_next_step_out():
    class Fails(Regression):
        def learn(self, x, y):
            super().learn(x, y)
            if len(self.told) % 10 == 0:
                raise RuntimeError("out of memory")

    federation = nc.Federation([nc.Agent(Learner(Fails, lags=3), name="learner")])
    for t in range(100, 135):
        x = {"a": X[t, 0], "b": X[t, 1]}
        federation.predict_one(x)
        federation.learn_one(x, Y[t + 1])
    assert federation.health["absences"] == {"learner": 3}
    assert "it failed to learn: RuntimeError: out of memory" in federation.health["reasons"]["learner"]


def test_with_lags_further_steps_follow_from_its_own_forecasts():
    built = Learner(Regression, lags=3).build(2, 1)
    built._model._model.weights = np.array([0.5, 0.0, 2.0, 0.0, 1.0])
    said = built.forecast_row(np.array([4.0, 9.0, 3.0, 2.0, 1.0]), 3)[0, :, 0]
    # 2 + 2·y₁ + y₃, with the forecasts as the newest values
    np.testing.assert_array_equal(said, [2 + 6 + 1, 2 + 18 + 2, 2 + 44 + 3])
    assert np.isnan(
        Learner(lambda: (lambda x: 1.0, lambda x, y: None)).build(1, 1).forecast_row(np.ones(1), 2)[0, 1, 0]
    )


def test_sklearn_models_fitted_on_columns_find_them_by_name_without_a_warning():
    frame = pd.DataFrame({"wind": X[:, 0], "sun": X[:, 1]})  # not in the order of the alphabet
    model = make_pipeline(StandardScaler(), LinearRegression()).fit(frame, Y[1:])
    scaler = StandardScaler().fit(frame[["wind"]])
    agents = [nc.Agent(SklearnRegressor(model), name="model"), nc.Agent(SklearnTransformer(scaler, 1), name="scaler")]
    federation = nc.Federation(agents)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for t in range(20):
            x = {"sun": X[t, 1], "wind": X[t, 0], "rain": 7.0}
            federation.predict_one(x)
            if t:
                said = federation._loop._agents._forecasters[0].said
                np.testing.assert_allclose(said[0, 0, 0], model.predict(frame.iloc[[t]])[0])
            federation.learn_one(x, Y[t + 1])
    assert not federation.health["absences"]
    # Without names, columns are taken in their order.
    built = SklearnRegressor(model).build(2, 1)
    assert built.forecast(_context(X[3]), 1)[0, 0, 0] == pytest.approx(model.predict(frame.iloc[[3]])[0])


def _context(x):
    from nashcast.encoders.base import Noise, input_context

    return input_context(x, Noise(1, 0))


def test_a_fitted_model_of_lags_forecasts_further_steps():
    lagged = np.column_stack([X[3:, 0], Y[3:-1], Y[2:-2], Y[1:-3]])
    frame = pd.DataFrame(lagged[:, [1, 0, 2]], columns=["lag_1", "a", "lag_2"])
    model = LinearRegression().fit(frame, Y[4:])
    federation = nc.Federation([nc.Agent(SklearnRegressor(model, lags=2), name="model")], horizon=2)
    for t in range(30):
        federation.predict_one({"a": X[t, 0], "b": 0.0})
        federation.learn_one({"a": X[t, 0], "b": 0.0}, Y[t + 1])
    federation.predict_one({"a": X[30, 0], "b": 0.0})
    first = model.predict(pd.DataFrame([[Y[30], X[30, 0], Y[29]]], columns=frame.columns))[0]
    second = model.predict(pd.DataFrame([[first, X[30, 0], Y[30]]], columns=frame.columns))[0]
    np.testing.assert_allclose(federation._loop._agents._forecasters[0].said[0, :, 0], [first, second])


def test_states_are_plain_or_refused():
    state = {"a": np.arange(3), "b": [1, 2.5, (None, True, "x")], "c": {1: np.float32(2)}, "d": float("inf")}
    back = from_arrays(to_arrays(state))
    assert back["b"] == state["b"]
    assert (back["c"], back["d"]) == ({1: np.float32(2)}, float("inf"))
    assert back["c"][1].dtype == np.float32
    for value in (object(), {1.5: 2}, lambda: 1, np.array([object()])):
        with pytest.raises(NotPlain):
            to_arrays({"value": value})
    for damage in (b"", b"[1]", b'{"array": 7}', b'{"eval": "1"}', b'{"list": [' * 40 + b"1" + b"]}" * 40):
        with pytest.raises(nc.InvalidInput, match=r"saved model: got damaged values"):
            from_arrays({"structure": np.frombuffer(damage, dtype=np.uint8)})


def test_messages():
    number, word = 3, "often"
    with pytest.raises(nc.InvalidInput, match=r"make: got int 3. Pass a class, or a function that makes a model"):
        Learner(number)
    with pytest.raises(
        nc.InvalidInput, match=r"make: got a function that returned int 3. Return an object with predict"
    ):
        Learner(lambda: number).build(1, 1)
    with pytest.raises(nc.InvalidInput, match=r"lags: got str 'often'"):
        Learner(Regression, lags=word)
    with pytest.raises(nc.InvalidInput, match=r"a LinearRegression without partial_fit. Pass learn=False"):
        SklearnRegressor(LinearRegression(), learn=True)
    model = LinearRegression().fit(pd.DataFrame({"u": [1.0, 2.0], "v": [1.0, 3.0]}), [1.0, 2.0])
    with pytest.raises(nc.InvalidInput, match=r"a LinearRegression fitted on v. There are only u, w"):
        SklearnRegressor(model).build_named(2, 1, ("u", "w"))
    with pytest.raises(
        nc.InvalidInput, match=r"lags: got 2. Omit it: it is for regressors that learn, not a forecaster"
    ):
        RiverModel(time_series.HoltWinters(alpha=0.3), lags=2)
    with pytest.raises(nc.InvalidInput, match=r"learn: got False. A forecaster must learn"):
        RiverModel(time_series.HoltWinters(alpha=0.3), learn=False)
    with pytest.raises(nc.InvalidInput, match=r"which learns by itself. Pass learn=False for a frozen copy"):
        PaperAgent(RiverModel(river_regression())).begin(2, np.zeros(1), 1, 2)
