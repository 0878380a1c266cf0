"""Bad input to the game: a typed error that names the argument, what it got and the remedy."""

import numpy as np
import pytest

import nashcast as nc
from nashcast.games.lookback import game as game_module
from support.games import random_game

T, N, P, D = 3, 2, 1, 2


def good():
    rng = np.random.default_rng(0)
    return {
        "features": rng.standard_normal((T, N, P, D)),
        "weights": np.full((T, N), 0.5),
        "targets": rng.standard_normal((T, P)),
        "start": np.zeros(P),
        "ridge": 1.0,
        "decay": 0.1,
    }


def with_nan(shape):
    values = np.ones(shape)
    values.flat[-1] = np.nan
    return values


FEATURES = [np.ones((T, P, 2)), np.ones((T, P, 3))]
BAD = [
    ({"features": np.ones((T, N, P))}, "features", "(lookback, agents, y_dim, features)"),
    ({"features": np.ones((0, N, P, D))}, "features", "at least 1"),
    ({"features": np.ones((T, 0, P, D))}, "features", "at least 1"),
    ({"features": with_nan((T, N, P, D))}, "features", "nan at index (2, 1, 0, 1)"),
    ({"features": np.full((T, N, P, D), "a")}, "features", "Pass numbers"),
    ({"features": []}, "features", "at least one agent"),
    ({"features": None}, "features", "one array for each agent"),
    ({"features": [np.ones((T, D)), np.ones((T, D))]}, "features[0]", "(lookback, y_dim, features)"),
    ({"features": [np.ones((0, P, D))]}, "features[0]", "at least one step"),
    ({"features": [np.ones((T, P, 2)), np.ones((T + 1, P, 2))]}, "features[1]", "= (3, 1, 2)"),
    ({"features": [np.ones((T, P, 2)), with_nan((T, P, 2))]}, "features[1]", "nan at index (2, 0, 1)"),
    ({"weights": np.ones((T, N + 1))}, "weights", "(lookback, agents) = (3, 2)"),
    ({"weights": with_nan((T, N))}, "weights", "Remove or fill the 1 entries"),
    ({"targets": np.ones(T)}, "targets", "(lookback, y_dim) = (3, 1)"),
    ({"targets": np.full((T, P), np.inf)}, "targets", "inf at index (0, 0)"),
    ({"start": np.ones(3)}, "start", "(y_dim,) or (agents, y_dim) = (1,)"),
    ({"start": np.ones((N, 4))}, "start", "(agents, y_dim) = (2, 1)"),
    ({"start": np.array([np.nan])}, "start", "nan at index (0,)"),
    ({"ridge": 0.0}, "ridge", "Pass numbers > 0"),
    ({"ridge": -2.0}, "ridge", "got -2"),
    ({"ridge": np.nan}, "ridge", "finite"),
    ({"ridge": [1.0, 0.0]}, "ridge", "Pass numbers > 0"),
    ({"ridge": [1.0, 1.0, 1.0]}, "ridge", "(agents,) = (2,)"),
    ({"ridge": "strong"}, "ridge", "one number"),
    ({"decay": -0.1}, "decay", "≥ 0"),
    ({"decay": np.array([0.1, np.inf])}, "decay", "inf at index (1,)"),
    ({"means": np.ones((T, N, P, D + 1))}, "means", "= (3, 2, 1, 2)"),
    ({"means": with_nan((T, N, P, D))}, "means", "nan at index (2, 1, 0, 1)"),
    ({"covariance": np.ones((T, N, D, D))}, "covariance", "= (3, 2, 1, 1, 2, 2)"),
    ({"covariance": with_nan((T, N, P, P, D, D))}, "covariance", "nan at index (2, 1, 0, 0, 1, 1)"),
    ({"prior": np.ones((N, D))}, "prior", "(lookback, agents, features) = (3, 2, 2)"),
    ({"prior": with_nan((T, N, D))}, "prior", "nan at index (2, 1, 1)"),
    ({"features": FEATURES, "means": FEATURES[:1]}, "means", "one for each of the 2 agents"),
    ({"features": FEATURES, "means": [FEATURES[1], FEATURES[0]]}, "means[0]", "= (3, 1, 2)"),
    ({"features": FEATURES, "covariance": [None, np.ones((T, 3, 3))]}, "covariance[1]", "= (3, 1, 1, 3, 3)"),
    ({"features": FEATURES, "prior": [np.ones((T, 2)), None]}, "prior[1]", "Pass"),
    ({"features": FEATURES, "prior": np.ones((T, N, D))}, "prior", "list with one array for each agent"),
]


@pytest.mark.parametrize(("change", "argument", "words"), BAD)
def test_the_error_names_argument_value_and_remedy_and_nothing_is_solved(change, argument, words, monkeypatch):
    def must_not_run(*_):
        raise AssertionError("bad input reached the solver")

    monkeypatch.setattr(game_module, "solve_problem", must_not_run)
    arguments = {**good(), **change}
    with pytest.raises(nc.InvalidInput) as caught:
        nc.solve_game(**arguments)
    assert str(caught.value).startswith(f"{argument}: got ")
    assert words in str(caught.value)
    assert caught.value.argument == argument


def test_an_input_error_is_a_value_error_and_a_nashcast_error():
    assert issubclass(nc.InvalidInput, ValueError)
    assert issubclass(nc.InvalidInput, nc.NashcastError)


def test_lists_integers_and_strided_arrays_are_taken():
    arguments = good()
    one = nc.solve_game(**arguments)
    wide = np.zeros((T, N, P, 2 * D))
    wide[..., ::2] = arguments["features"]
    arguments.update(features=wide[..., ::2], weights=arguments["weights"].tolist(), start=[0], ridge=1)
    np.testing.assert_array_equal(nc.solve_game(**arguments).decoders, one.decoders)


def test_respond_checks_its_arguments():
    game = random_game(1, N=2, T=2, p=1)
    solved = nc.solve_game(*game.arguments(), **game.settings())
    with pytest.raises(nc.InvalidInput, match=r"step: got 2\. Pass a step from 0 to 1"):
        nc.respond(solved, 2, game.start)
    with pytest.raises(nc.InvalidInput, match="forecasts: got shape"):
        nc.respond(solved, 0, np.ones(7))


@pytest.mark.parametrize("scale", [1e-150, 1e-12, 1e12, 1e150])
def test_the_size_of_the_targets_does_not_matter(scale):
    arguments = good()
    one = nc.solve_game(**arguments)
    arguments["targets"] = arguments["targets"] * scale
    np.testing.assert_allclose(nc.solve_game(**arguments).decoders, one.decoders * scale, rtol=1e-10)
