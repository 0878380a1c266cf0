"""The published code's form: its draws, its game with every switch, its whole runs, and the printed digits."""

from dataclasses import replace

import numpy as np
import pytest

import nashcast as nc
from nashcast.datasets import Stream
from nashcast.encoders.network.transformer import Transformer, weight_shapes
from nashcast.games.moments.features import echo_moments, relu_moments
from nashcast.paper.published.departures import Departures, Sampler
from nashcast.paper.published.draws import draw, echo_states, random_features
from nashcast.paper.published.published_game import PublishedGame, play_published
from nashcast.paper.published.published_run import PublishedSeries, PublishedSettings, replay_published
from nashcast.paper.runs import ANCHORED, OURS, PUBLISHED, Way, run, stream_of
from nashcast.paper.settings import Setting, printed_line, row, rows
from support.golden import trace
from support.recorded import recorded_data
from support.reference import dense_game

NO_SAMPLES = Sampler(0, np.empty((1, 1, 1, 1)), np.empty((1, 1, 1)), 0.0)
RNG = np.random.Generator(np.random.PCG64(11))
EXACT = Departures(printed=False, scrambled=False, reshaped=False, detached=False)


def random_game(seed, T, N, p, d):
    rng = np.random.default_rng(seed)
    Z, mean = rng.normal(size=(2, T, N, p, d))
    root = 0.3 * rng.normal(size=(T, N, p * d, p * d))
    covariance = (root @ root.swapaxes(2, 3)).reshape(T, N, p, d, p, d).transpose(0, 1, 2, 4, 3, 5).copy()
    return Z, mean, covariance, rng.normal(size=(T, N)), rng.normal(size=(T, p)), rng.normal(size=p)


@pytest.mark.parametrize("printed", [False, True])
@pytest.mark.parametrize("scrambled", [False, True])
@pytest.mark.parametrize(("T", "N", "p", "d"), [(1, 2, 1, 3), (3, 2, 1, 1), (4, 3, 1, 2), (3, 2, 2, 2), (2, 5, 2, 3)])
def test_the_game_is_the_dense_theorem_with_its_switches(T, N, p, d, printed, scrambled):
    Z, mean, covariance, w, y, start = random_game(T + 10 * N, T, N, p, d)
    game = PublishedGame(Z, mean, covariance, w, y, start, 0.4, 2.0)
    decoders, forecasts = play_published(game, EXACT._replace(printed=printed, scrambled=scrambled), NO_SAMPLES, RNG)
    dense = dense_game.solve(
        list(Z.swapaxes(0, 1)), list(mean.swapaxes(0, 1)), list(covariance.swapaxes(0, 1)), w, y,
        np.tile(start, (N, 1)), np.full(N, 0.4), np.full(N, 2.0), [np.zeros((T, d))] * N,
        printed_recursion=printed, published_assembly=scrambled,
    )  # fmt: skip
    np.testing.assert_allclose(decoders.reshape(T, -1), np.array(dense.decoders), rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(forecasts.reshape(T + 1, -1), dense.forecasts, rtol=1e-8, atol=1e-10)


def test_without_departures_it_is_the_exact_game():
    Z, mean, covariance, w, y, start = random_game(5, 4, 3, 2, 2)
    game = PublishedGame(Z, mean, covariance, w, y, start, 0.4, 2.0)
    decoders, forecasts = play_published(game, EXACT, NO_SAMPLES, RNG)
    exact = nc.solve_game(Z, w, y, start, ridge=2.0, decay=0.4, means=mean, covariance=covariance)
    np.testing.assert_allclose(decoders, exact.decoders, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(forecasts, exact.forecasts, rtol=1e-9, atol=1e-11)


def test_sampled_expectations_come_close_to_the_closed_form():
    """With many samples the sampled game tends to the one whose moments are sampled once and shared."""
    rng = np.random.default_rng(3)
    T, N, p, d = 3, 2, 1, 2
    drive, B = rng.normal(size=(T, N, p, d)), rng.normal(size=(N, p, p))
    Z = rng.uniform(0, 1, size=(T, N, p, d))
    moments = [
        echo_moments(drive[:, i], B[i], Z[0, i], 1.0, samples=200_000, rng=np.random.default_rng(i)) for i in range(N)
    ]
    mean = np.stack([m.mean for m in moments], axis=1)
    covariance = np.stack([m.covariance for m in moments], axis=1)
    w, y, start = rng.normal(size=(T, N)), rng.normal(size=(T, p)), rng.normal(size=p)
    sampler = Sampler(20_000, drive, B, 1.0)
    sampled, _ = play_published(PublishedGame(Z, Z, covariance[:1], w, y, start, 0.1, 1.0), EXACT, sampler, RNG)
    shared, _ = play_published(PublishedGame(Z, mean, covariance, w, y, start, 0.1, 1.0), EXACT, NO_SAMPLES, RNG)
    np.testing.assert_allclose(sampled, shared, atol=0.01)


@pytest.mark.parametrize("name", ["rfn2_logistic_nash", "esn2_concept2d_nogame"])
def test_the_draws_are_those_of_the_traces(name):
    g = trace(name)
    model = str(g["kind"])
    draws = draw(model, int(g["seed"]), int(g["N"]), int(g["d_x"]), int(g["d_y"]), int(g["d_z"]), int(g["rounds"]))
    np.testing.assert_allclose(draws.inputs, g["A"], rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(draws.bias, g["b"], rtol=1e-12, atol=1e-14)
    if model == "esn":
        np.testing.assert_allclose(draws.recurrent, g["B"], rtol=1e-12, atol=1e-14)
    inputs, sigma = g["x"][: int(g["rounds"])], float(g["sigma"])
    made = (
        random_features(draws, inputs, sigma) if model == "rfn" else echo_states(draws, inputs, sigma, "hard_sigmoid")
    )
    for encoder, Z in zip(made, g["Z"], strict=True):
        np.testing.assert_allclose(encoder.series, Z[: len(inputs)], rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(
    "name",
    ["rfn2_logistic_nash", "fixed2_concept2d_nash", "fixed2_concept2d_nogame", "esn2_concept2d_nogame"]
    + [f"{name}.corrected" for name in ("rfn2_logistic_nash", "fixed2_concept2d_nash", "esn2_concept2d_nogame")],
)
def test_whole_runs_are_those_of_the_traces(name):
    g = trace(name)
    R = int(g["rounds"])
    stream = Stream("trace", g["x"][:R], g["y"][1:], g["y"][0])
    Z = g["Z"][:, :R]
    means, covariance = Z, np.zeros((*Z.shape[:3], Z.shape[2], Z.shape[3], Z.shape[3]))
    if str(g["kind"]) == "rfn":
        moments = [
            relu_moments((stream.inputs @ A.T)[:, :, None] + b, float(g["sigma"]))
            for A, b in zip(g["A"], g["b"], strict=True)
        ]
        means, covariance = np.stack([m.mean for m in moments]), np.stack([m.covariance for m in moments])
    wrong = not name.endswith(".corrected")
    settings = PublishedSettings(
        ridge=float(g["gamma"]), decay=float(g["alpha"]), window=int(g["client_T"]),
        lookback=int(g["game_T"]) if bool(g["nash"]) else 0, every=int(g["sync_freq"]), kappa=float(g["kappa"]),
        eta=float(g["eta"]),
    )  # fmt: skip
    series = PublishedSeries(Z, means, covariance, NO_SAMPLES)
    result = replay_published(stream, series, settings, Departures(True, wrong, wrong, True))
    np.testing.assert_allclose(result.forecasts, g["server_outputs"][1:], rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(result.weights, g["mixture_weights"], rtol=1e-8, atol=1e-8)
    assert result.mse == pytest.approx(float(g["mse"]), rel=1e-8)


def mean_of(setting, way):
    return np.mean([run(setting, seed, way).mse for seed in (2024, 2025, 2026)])


@pytest.mark.parametrize("agents", [2, 5])
@pytest.mark.parametrize("dataset", ["periodic", "logistic", "concept", "boc", "ett"])
def test_the_ten_printed_errors_of_random_features_with_the_game(dataset, agents):
    recorded_data(dataset)
    printed = printed_line("table1", "rfn", dataset, agents)["game"]
    assert mean_of(row("rfn", dataset, agents, True).setting(), PUBLISHED) == pytest.approx(printed, rel=1e-5)


@pytest.mark.parametrize(
    ("model", "dataset", "agents", "changes"),
    [
        ("rfn", "periodic", 2, {}),
        ("rfn", "logistic", 2, {"decay": 0.001, "ridge": 10}),
        ("rfn", "concept", 2, {"decay": 0.1}),
        ("rfn", "boc", 2, {"rounds": 1000}),
        ("rfn", "boc", 5, {"rounds": 1000}),
        ("rfn", "ett", 5, {}),
        ("esn", "concept", 2, {}),
        ("esn", "boc", 5, {}),
        ("esn", "ett", 2, {}),
    ],
)
def test_printed_errors_without_game(model, dataset, agents, changes):
    """Of the bold setting, or of the one that gives it (erratum 7)."""
    recorded_data(dataset)
    setting = replace(row(model, dataset, agents, False).setting(), **changes)
    printed = printed_line("table1", model, dataset, agents)["no_game"]
    assert mean_of(setting, PUBLISHED) == pytest.approx(printed, rel=1e-5)


def test_tanh_diverges_where_hard_sigmoid_gives_the_printed_error():
    recorded_data("ett")
    setting = replace(row("esn", "ett", 2, False).setting(), activation="tanh")
    assert not mean_of(setting, PUBLISHED) < 1.0


def test_wild_forecasts_of_the_published_game_are_gone_with_blocks_in_place():
    """The validation line in which the paper's game loses: its outliers come from erratum 4."""
    recorded_data("boc")
    setting = Setting("rfn", "boc-validation", 2, 0.01, 10, 2, noise=1, features=6, lookback=2)
    targets = stream_of(setting).targets
    worst = {}
    for name, way in {
        "published": PUBLISHED,
        "in place": Way("published", Departures(scrambled=False)),
        "ours": OURS,
    }.items():
        worst[name] = np.max((run(setting, 2025, way).forecasts - targets) ** 2)
    assert worst["published"] > 10
    assert worst["in place"] < 2e-3
    assert worst["ours"] < 2e-3


def test_without_game_there_is_nothing_the_two_forms_differ_in_but_the_mixture():
    single = row("rfn", "logistic", 5, False).setting()
    np.testing.assert_allclose(
        run(single, 1, PUBLISHED).forecasts, run(single, 1, OURS).forecasts, rtol=1e-9, atol=1e-12
    )
    double = row("esn", "concept", 2, False).setting()
    right = Way("published", Departures(reshaped=False))
    np.testing.assert_allclose(run(double, 1, right).forecasts, run(double, 1, OURS).forecasts, rtol=1e-8, atol=1e-10)
    assert abs(run(double, 1, PUBLISHED).mse / run(double, 1, OURS).mse - 1) > 0.1


def test_rarer_games_carry_their_forecasts_on():
    """Erratum 8: with the forecast carried, and the recursion and blocks right, this is the exact federation."""
    setting = replace(row("rfn", "logistic", 2, True).setting(), every=3)
    exact = run(setting, 2024, OURS).forecasts
    carried = run(setting, 2024, Way("published", Departures(False, False, False, False))).forecasts
    np.testing.assert_allclose(carried, exact, rtol=1e-8, atol=1e-10)
    assert (
        np.abs(run(setting, 2024, Way("published", Departures(False, False, False, True))).forecasts - exact).max()
        > 1e-3
    )


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"every": 2}, 3.377e-4),
        ({"decay": 1, "ridge": 10, "noise": 1, "features": 6, "window": 5, "every": 10}, 5.8208e-4),
    ],
)
def test_rarer_games_as_published(changes, expected):
    """Erratum 8: the game's forecast stands in the agents' own regressions, but their next state goes on without it."""
    setting = replace(row("rfn", "boc", 5, True).setting(), lookback=2, **changes)
    errors = [run(setting, seed, PUBLISHED).mse for seed in (2024, 2025, 2026)]
    assert np.mean(errors) == pytest.approx(expected, rel=1e-4)


def test_with_a_game_at_every_step_the_windows_of_the_paper_have_no_effect():
    """Erratum 9: identical to the bit. Only one shorter than the steps before the first game is felt."""
    setting = row("rfn", "periodic", 2, True).setting()
    one, two, five = (run(replace(setting, window=window), 2024, PUBLISHED).forecasts for window in (1, 2, 5))
    np.testing.assert_array_equal(two, five)
    assert np.abs(one - five).max() > 0


def test_anchored_runs_ignore_the_game():
    setting = row("rfn", "periodic", 2, True).setting()
    same = run(setting.without_game(), 1, ANCHORED).forecasts
    np.testing.assert_array_equal(run(setting, 1, ANCHORED).forecasts, same)


def test_every_bold_setting_is_in_its_grid():
    for model in ("transformer", "rfn", "esn"):
        assert len(rows(model)) == 20
        for each in rows(model):
            assert set(each.bold) == set(each.grid)
            assert all(each.bold[name] in values for name, values in each.grid.items()), each


def test_printed_errors_divide_by_the_number_of_targets():
    """Erratum 6: the paper defines the error as a mean of squared norms; the printed one is half of that here."""
    setting = row("esn", "concept", 2, False).setting()
    printed = printed_line("table1", "esn", "concept", 2)["no_game"]
    targets = stream_of(setting).targets
    norms = [
        np.sum((run(setting, seed, PUBLISHED).forecasts - targets) ** 2, axis=1).mean() for seed in (2024, 2025, 2026)
    ]
    assert np.mean(norms) == pytest.approx(2 * printed, rel=1e-5)


def test_a_layer_norm_over_two_numbers_leaves_two_values():
    """Erratum 10: whatever the weights, a transformer of width 2 says little more than a sign."""
    rng = np.random.default_rng(0)
    shapes = weight_shapes(3, 2, 1)
    weights = {name: rng.normal(size=shape) for name, shape in shapes.items()}
    for name in shapes:
        if "norm" in name:
            weights[name] = np.ones(2) if name.endswith("weight") else np.zeros(2)
    inputs = rng.normal(size=(500, 3))
    built = Transformer(weights, y_dim=1).build(3, 1)
    Z, _ = built.encode_series(inputs, built.start(), 0, 0)
    np.testing.assert_allclose(Z[:, 0, 0], -Z[:, 0, 1], atol=1e-12)
    assert np.mean(np.abs(np.abs(Z[:, 0, 0]) - 1) < 0.01) > 0.95


def test_fresh_samples_at_every_place_make_the_same_game_differ_from_itself():
    """Erratum 12: with samples shared by all places the game is one game; with 100 fresh ones it never is."""
    rng = np.random.default_rng(4)
    T, N, p, d = 3, 2, 1, 2
    drive, B, Z = rng.normal(size=(T, N, p, d)), rng.normal(size=(N, p, p)), rng.uniform(size=(T, N, p, d))
    w, y, start, nothing = rng.normal(size=(T, N)), rng.normal(size=(T, p)), np.zeros(p), np.zeros((1, N, p, p, d, d))
    sampler = Sampler(100, drive, B, 1.0)
    generator = np.random.Generator(np.random.PCG64(1))
    game = PublishedGame(Z, Z, nothing, w, y, start, 0.1, 0.1)
    games = [play_published(game, EXACT, sampler, generator)[0] for _ in range(20)]
    assert np.std(games, axis=0).max() > 1e-3
