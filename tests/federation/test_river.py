"""Under river's own loop, unchanged."""

import numpy as np
import pytest
from river import evaluate, metrics

import nashcast as nc
from nashcast.agents.paper_agent import PaperAgent
from nashcast.federation.river import as_river


def test_progressive_val_score_runs_unchanged():
    rng = np.random.default_rng(0)
    stream = [
        ({"a": float(x), "b": float(x**2)}, float(np.sin(i / 5) + 0.1 * x)) for i, x in enumerate(rng.normal(size=120))
    ]
    agents = [PaperAgent(nc.encoders.Linear(), window=3), PaperAgent(nc.encoders.RandomFeatures(features=4, seed=1))]
    federation = nc.paper_federation(agents)
    score = evaluate.progressive_val_score(stream, as_river(federation), metrics.MSE())

    again = nc.paper_federation(
        [PaperAgent(nc.encoders.Linear(), window=3), PaperAgent(nc.encoders.RandomFeatures(features=4, seed=1))]
    )
    X = np.array([[x["a"], x["b"]] for x, _ in stream])
    Y = np.array([[y] for _, y in stream])
    assert score.get() == pytest.approx(again.replay(X, Y).mse)


def test_several_targets_as_river_has_them():
    rng = np.random.default_rng(1)
    stream = [({"a": float(x)}, {"u": float(x), "v": float(-x)}) for x in rng.normal(size=40)]
    model = as_river(nc.paper_federation([PaperAgent(nc.encoders.Linear())], y_dim=2))
    metric = metrics.multioutput.MicroAverage(metrics.MSE())
    for x, y in stream:
        forecast = model.predict_one(x)
        if isinstance(forecast, dict):
            metric.update(y, forecast)
        model.learn_one(x, y)
    assert np.isfinite(metric.get())
    assert sorted(model.predict_one(stream[0][0])) == ["u", "v"]
