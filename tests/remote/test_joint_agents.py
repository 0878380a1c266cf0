"""The joint game with agents elsewhere: the same numbers as in one process, in one round a step."""

import numpy as np
import pytest

import nashcast as nc

from joint_teams import make_joint, make_stream, make_team, run


def assert_same(found, expected, most=1e-12):
    scale = np.maximum(1.0, np.abs(expected))
    assert np.abs((found - expected) / scale).max() <= most


@pytest.mark.parametrize(("horizon", "y_dim"), [(1, 1), (1, 2), (3, 1), (3, 2)])
def test_agents_elsewhere_forecast_as_in_one_process(horizon, y_dim):
    X, Y = make_stream(250, y_dim, missing=0.04)
    Y[120:] += 60.0  # in doubt, then confirmed
    Y[180] += 1e5  # suspect
    late = {t: {t - 5: np.nan_to_num(Y[t - 6]) + 0.1} for t in range(20, 240) if np.isnan(Y[t - 5]).any()}
    settings = {"horizon": horizon, "y_dim": y_dim, "start": np.zeros(y_dim)}
    hub, line = make_joint(make_team(), **settings)
    found = run(hub.federation, X, Y, late)
    whole = nc.Federation(make_team(), **settings)
    expected = run(whole, X, Y, late)
    assert_same(found, expected)
    assert hub.federation.health["absences"] == {}
    assert hub.federation.health["suspect labels"] == whole.health["suspect labels"] > 0


def test_a_step_is_one_round():
    X, Y = make_stream(100)
    hub, line = make_joint(make_team(), start=0.0)
    run(hub.federation, X, Y)
    assert len(line.asked) == 1 + 100  # the opening, and one question a step
