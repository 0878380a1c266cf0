"""Under river's own loop and against river's own checks."""

import pickle
from functools import partial

import numpy as np
import pytest
from river import checks, compose, evaluate, metrics, preprocessing

import nashcast as nc
from nashcast.federation.wrappers.river import as_river


def paper():
    agents = [
        nc.Agent(nc.encoders.Linear(), decoders=nc.Window(3)),
        nc.Agent(nc.encoders.RandomFeatures(features=4, seed=1)),
    ]
    return nc.paper_federation(agents)


ONE = partial(nc.Federation, [nc.Agent(nc.encoders.Trend()), nc.Agent(nc.encoders.Lags())])
DEFAULT = partial(nc.Federation, nc.default_agents())
THREE = partial(ONE, y_dim=3)
TWO = partial(ONE, y_dim=2)
MODELS = {"one target": ONE, "default agents": DEFAULT, "three targets": THREE}


def stream(steps=120):
    rng = np.random.default_rng(0)
    return [
        ({"a": float(x), "b": float(x**2)}, float(np.sin(i / 5) + 0.1 * x))
        for i, x in enumerate(rng.normal(size=steps))
    ]


@pytest.mark.parametrize(
    ("make", "check"),
    [
        pytest.param(make, place, id=f"{name}, {place} {check.__name__}")
        for name, make in MODELS.items()
        for place, check in enumerate(checks.yield_checks(as_river(make)))
    ],
)
def test_rivers_own_checks(make, check):
    model = as_river(make)
    list(checks.yield_checks(model))[check](model.clone())


@pytest.mark.parametrize("make", [ONE, paper])
def test_progressive_val_score_is_a_replay(make):
    rows = stream()
    score = evaluate.progressive_val_score(rows, as_river(make), metrics.MSE())
    X, Y = np.array([[x["a"], x["b"]] for x, _ in rows]), np.array([[y] for _, y in rows])
    assert score.get() == pytest.approx(make().replay(X, Y).mse)


def test_a_clone_has_learnt_nothing_and_a_pickle_everything():
    model, rows = as_river(ONE), stream()
    for x, y in rows:
        model.learn_one(x, y)
    fresh, again = model.clone(), pickle.loads(pickle.dumps(model))
    assert fresh.predict_one(rows[0][0]) == 0.0
    fresh.learn_one(*rows[0])
    first = as_river(ONE)
    first.learn_one(*rows[0])
    assert fresh.predict_one(rows[1][0]) == first.predict_one(rows[1][0])
    for x, y in stream(10):
        assert again.predict_one(x) == model.predict_one(x)
        again.learn_one(x, y)
        model.learn_one(x, y)


def test_features_are_those_of_the_first_row():
    """Later ones are ignored, whatever they are; missing ones are as they last were."""
    model, plain = as_river(ONE), as_river(ONE)
    before = {}
    for t, (x, y) in enumerate(stream()):
        more = {"c": float("nan") if t % 2 else "text", **x} if t else x
        last = {**x, "b": before["b"]} if t % 3 == 2 else x
        if t % 3 == 2:
            del more["b"]
        assert model.predict_one(more) == pytest.approx(plain.predict_one(last), rel=1e-12)
        model.learn_one(more, y)
        plain.learn_one(last, y)
        before = last


def test_several_targets_in_a_pipeline_as_river_has_them():
    rng = np.random.default_rng(1)
    model = compose.Pipeline(preprocessing.StandardScaler(), as_river(TWO))
    assert model.predict_one({"a": 0.0}) == {}
    for x in rng.normal(size=40):
        model.learn_one({"a": float(x)}, {"u": float(x), 7: float(-x)})
    assert set(model.predict_one({"a": 0.3})) == {"u", 7}
    again = pickle.loads(pickle.dumps(model))
    assert again.predict_one({"a": 0.3}) == model.predict_one({"a": 0.3})


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (ONE(), "make: got Federation .* Pass a function that makes a nashcast.Federation"),
        (dict, "make: got a function that returned dict .* Pass a function that makes a nashcast.Federation"),
        (partial(ONE, horizon=3), "make: got a federation of horizon 3. Return one of horizon 1"),
    ],
)
def test_misuse_is_told(make, words):
    with pytest.raises(nc.InvalidInput, match=words):
        as_river(make)


def test_names_that_are_the_same_as_text_are_refused():
    with pytest.raises(nc.InvalidInput, match="Give every column a name that differs as text"):
        as_river(ONE).learn_one({1: 0.0, "1": 1.0}, 2.0)
