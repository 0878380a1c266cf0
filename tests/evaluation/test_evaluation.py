"""The evaluation: nobody sees a target before it is told, everybody goes through the same loop, the sums are right."""

import json
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

import nashcast as nc
from nashcast.datasets import Stream, concept_shift, logistic_map
from nashcast.datasets.catalog import entry
from nashcast.datasets.recorded.recordings import RECORDINGS
from nashcast.evaluation import evaluate as evaluation
from nashcast.evaluation import federation_methods
from nashcast.evaluation.declared import (
    Declared,
    check_streams,
    declared_streams,
    every_declared,
    stream_named,
    warmup_share,
)
from nashcast.evaluation.evaluate import Outcome, evaluate
from nashcast.evaluation.method import FAMILIES, PEERS, Method, Problem, one, problem_of
from nashcast.evaluation.methods import all_methods, chosen_methods
from nashcast.evaluation.peers.baselines import BASELINES
from nashcast.evaluation.peers.experts import Experts, expert_forecasts
from nashcast.evaluation.peers.interval_rivals import RIVALS
from nashcast.evaluation.peers.model_inputs import Past
from nashcast.evaluation.prequential import forecast_all, run, timed
from nashcast.evaluation.rows import KEYS, head_to_head, overview, rows_of, summary
from nashcast.evaluation.scoring import combined, packed, score, unpacked
from nashcast.evaluation.statistics.significance import diebold_mariano
from nashcast.evaluation.study import study_of
from nashcast.records import study as records
from support.extras import skip_if

ONE, TWO = Problem(1, 1, np.zeros(1)), Problem(3, 2, np.zeros(2))


# Statsforecast takes seconds to import.
NAMES = [
    pytest.param(name, marks=pytest.mark.slow) if method.family in ("statsforecast", "sktime") else name
    for name, method in all_methods().items()
]


def small(steps=60, y_dim=1):
    return logistic_map(steps) if y_dim == 1 else concept_shift(steps)


def need(method):
    skip_if("" if method.installed else method.missing)


@pytest.mark.parametrize("y_dim", [1, 2])
@pytest.mark.parametrize("name", NAMES)
def test_no_method_sees_a_target_before_it_is_told(name, y_dim):
    """Targets and inputs from the middle on are replaced by others: what was forecast until then must not move."""
    stream = small(40, y_dim)
    method = all_methods()[name]
    need(method)
    t, other = 25, small(40, y_dim)
    targets, inputs = other.targets.copy(), other.inputs.copy()
    targets[t:] = targets[t:] * -3.0 + 1.0
    inputs[t + 1 :] = 7.0
    changed = other._replace(targets=targets, inputs=inputs)
    was, now = (run(method, each, 1, 0.2).forecasts for each in (stream, changed))
    assert was.shape == stream.targets.shape
    assert np.isfinite(was).all()
    np.testing.assert_array_equal(was[: t + 1], now[: t + 1])
    assert method.name == "persistence" or not np.array_equal(was[t + 1 :], now[t + 1 :])


@pytest.mark.parametrize("name", NAMES)
def test_the_seed_matters_only_where_it_is_said_to(name):
    stream = small(30)
    method = all_methods()[name]
    need(method)
    first, again, other = (run(method, stream, seed, 0.2).forecasts for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    if not method.random:
        np.testing.assert_array_equal(first, other)


def test_the_names_and_families():
    names = all_methods()
    assert {method.family for method in names.values()} == set(FAMILIES)
    wanted = {"federation", "federation without its game", "paper's federation", *BASELINES}
    wanted |= {f"agent: {agent.name}" for agent in nc.default_agents()}
    wanted |= {
        f"federation, {rule} weights"
        for rule in ("windowed", "exponential", "fixed-share", "boa", "ml-poly", "ridge", "log-score")
    }
    wanted |= {f"{rule} over the federation's experts" for rule in ("BOA", "ML-Poly", "river EWARegressor")}
    wanted |= {"river SNARIMAX", "river HoltWinters", "river BayesianLinearRegression", "river KNNRegressor"}
    wanted |= {"river ARFRegressor", "reservoirpy Reservoir >> RLS", "reservoirpy NVAR >> RLS"}
    wanted |= {f"statsforecast Auto{name}" for name in ("ETS", "Theta", "ARIMA")}
    wanted |= {"sktime OnlineEnsemble NNLS", "sktime OnlineEnsemble NormalHedge"}
    assert wanted <= set(names)
    assert list(chosen_methods(["agents"], names)) == [
        "federation", *(name for name in names if name.startswith("agent: ")), "persistence",
    ]  # fmt: skip
    with pytest.raises(nc.InvalidInput, match=r"--methods: got 'rivr'. Did you mean 'river'\?"):
        chosen_methods(["rivr"], names)


class Constant:
    def __init__(self, value, problem, seed):
        self.value = np.full(problem.y_dim, value)

    def predict_one(self, x):
        return self.value

    def learn_one(self, x, y):
        pass


def test_settings_are_chosen_on_the_warm_up_alone():
    """1 is right in the first fifth, 5 afterwards: the choice must not know."""
    targets = np.concatenate([np.ones((20, 1)), np.full((80, 1), 5.0)])
    stream = Stream("turn", np.zeros((100, 1)), targets, np.zeros(1))
    method = Method("constant", "baselines", {f"{v:g}": partial(Constant, v) for v in (5.0, 1.0, np.nan)})
    done = run(method, stream, 0, 0.2)
    assert done.choice == "1"
    np.testing.assert_array_equal(done.forecasts, 1.0)
    only = Method("broken", "baselines", {"a": partial(Constant, np.nan), "b": partial(Constant, np.nan)})
    assert run(only, stream, 0, 0.2).choice == "a"


def test_the_loop_forecasts_then_tells():
    calls = []

    class Witness(Constant):
        def predict_one(self, x):
            calls.append(("predict", float(x[0])))
            return 0.0

        def learn_one(self, x, y):
            calls.append(("learn", float(x[0]), float(y[0])))

    stream = small(3)
    forecast_all(Witness(0.0, ONE, 0), stream)
    wanted = []
    for x, y in zip(stream.inputs[:, 0], stream.targets[:, 0], strict=True):
        wanted += [("predict", x), ("learn", x, y)]
    assert calls == wanted


def test_scores_against_a_plain_computation(monkeypatch):
    declared = Declared("logistic")
    stream = declared.open()
    method = all_methods()["RLS quadratic"]
    found = score(method, declared, 1, rivals=True)
    forecasts = BASELINES["RLS quadratic"](stream)
    errors = (forecasts - stream.targets)[:, 0] ** 2
    assert found["mse"] == pytest.approx(errors.mean())
    assert found["mse_after_warmup"] == pytest.approx(errors[40:].mean())
    np.testing.assert_allclose(unpacked(found["losses"]), errors, rtol=1e-6)
    bounds = nc.Intervals(1).replay(forecasts, stream.targets)[..., 0]
    inside = (bounds[:, :, 0] <= stream.targets) & (stream.targets <= bounds[:, :, 1])
    assert found["coverage"] == inside.mean(axis=0).tolist()
    assert found["width"] == pytest.approx((bounds[40:, :, 1] - bounds[40:, :, 0]).mean(axis=0).tolist())
    assert set(found) >= {f"{name}: coverage" for name in RIVALS}
    json.dumps(found)


def test_random_methods_are_the_mean_over_their_seeds():
    declared = Declared("logistic", options=(("steps", 50),))
    method = all_methods()["agent: random lags"]
    alone = [score(method, declared, seed, rivals=False) for seed in (1, 2)]
    both = combined(alone)
    assert both["mse_by_seed"] == [each["mse"] for each in alone]
    assert both["mse"] == pytest.approx(np.mean([each["mse"] for each in alone]))
    np.testing.assert_allclose(
        unpacked(both["losses"]), np.mean([unpacked(each["losses"]) for each in alone], axis=0), rtol=1e-5
    )
    assert alone[0]["mse"] != alone[1]["mse"]


def outcome(stream, name, family, losses, **more):
    losses = np.asarray(losses, dtype=float)
    after = losses[int(0.2 * len(losses)) :]
    result = {"mse": losses.mean(), "mse_after_warmup": after.mean(), "us_per_step": 5.0, "coverage": [0.8, 0.9, 0.95]}
    result |= {"width": [1.0, 2.0, 3.0], "choices": ["x"], "losses": packed(losses), **more}
    for rival in RIVALS:
        result |= {f"{rival}: coverage": [0.8, 0.9, 0.95], f"{rival}: width": [1.0, 2.0, 3.0], f"{rival}: endless": 0.0}
    return Outcome(Declared(stream), Method(name, family, one(partial(Constant, 0.0))), result)


def some_outcomes():
    rng = np.random.default_rng(0)
    a, b, c = rng.uniform(0.5, 1.5, (3, 100))
    missing = Outcome(Declared("logistic"), Method("river X", "river", package="river"), None, "needs river: pip")
    return [
        outcome("logistic", "federation", "ours", a), outcome("logistic", "no game", "ours", 2 * a),
        outcome("logistic", "persistence", "baselines", 3 * b), outcome("logistic", "good", "experts", 0.995 * a),
        missing,
        outcome("periodic", "federation", "ours", 2 * c), outcome("periodic", "persistence", "baselines", 1.9 * c),
    ], (a, b, c)  # fmt: skip


def test_rows_overview_and_summary():
    outcomes, (a, b, _) = some_outcomes()
    rows = rows_of(outcomes)
    assert all(set(KEYS) <= set(row) for row in rows)
    first, second, third = rows[:3]
    assert (first["stream"], first["method"], first["dm_p"], first["coverage90"]) == (
        "logistic",
        "federation",
        None,
        0.9,
    )
    assert first["skill"] == pytest.approx(1 - a[20:].mean() / (3 * b[20:].mean()))
    assert third["skill"] == 0.0
    assert second["dm_p"] == pytest.approx(diebold_mariano(2 * a[20:], a[20:])[1], rel=1e-4)
    assert rows[4]["mse"] is None
    assert rows[4]["why"] == "needs river: pip"
    logistic, periodic = overview(rows)
    assert (logistic["peer"], logistic["rank"], logistic["peers"]) == ("good", 2, 2)
    assert logistic["ratio"] == pytest.approx(1 / 0.995)
    assert periodic["persistence_ratio"] == pytest.approx(2 / 1.9)
    assert (logistic["near"], periodic["near"]) == (True, False)
    total = summary(rows)["mse_after_warmup"]
    assert (total["streams"], total["first"], total["first_or_within_1_percent"]) == (2, 0, 1)
    assert total["worst_stream"] == "periodic"
    assert total["worst_ratio_to_persistence"] == pytest.approx(2 / 1.9)


def test_the_study_says_what_was_not_run(tmp_path):
    outcomes, _ = some_outcomes()
    study = study_of(outcomes, (1,), {"ett": "needs ETTh1.csv: nashcast data fetch ett"})
    text = "\n".join(study.notes)
    assert "Not run, on any stream: river X (needs river: pip)." in text
    assert "Not run: ett: needs ETTh1.csv" in text
    assert "on 1 of 2 streams (50%)" in text
    assert [table.title for table in study.tables[-2:]] == ["logistic", "periodic"]
    row = next(row for row in study.tables[-2].rows if row["method"] == "river X")
    assert row["note"] == "needs river: pip"
    records.write(tmp_path / "record", replace(study, command="x"))
    assert records.read(tmp_path / "record").figures[0].panels[0].title == "logistic"


def test_results_are_kept_and_taken_up_again(tmp_path, monkeypatch):
    streams = [Declared("logistic", options=(("steps", 40),)), Declared("periodic", options=(("steps", 40),))]
    names, done = ["linear extrapolation"], []
    first = evaluate(streams, names, (1,), tmp_path, jobs=1, progress=lambda *told: done.append(told))
    assert done[-1] == ("runs", 6, 6)
    again = []
    monkeypatch.setattr(evaluation, "carry_out", again.append)
    second = evaluate(streams, names, (1,), tmp_path, jobs=1)
    assert again == []
    assert rows_of(first) == rows_of(second)
    assert [each.method.name for each in first[:3]] == ["federation", "persistence", "linear extrapolation"]


def test_more_seeds_run_only_what_is_new(tmp_path, monkeypatch):
    stream = Declared("logistic", options=(("steps", 40),))
    first = evaluate([stream], ["BOA over the federation's experts"], (1,), tmp_path, jobs=1)
    ran, carry_out = [], evaluation.carry_out
    monkeypatch.setattr(evaluation, "carry_out", lambda task: ran.append(task) or carry_out(task))
    second = evaluate([stream], ["BOA over the federation's experts"], (1, 2), tmp_path, jobs=1)
    assert {(task.method, task.seed) for task in ran} == {("federation", 2), ("BOA over the federation's experts", 2)}
    for one_seed, two_seeds in zip(first, second, strict=True):
        assert two_seeds.result["mse_by_seed"][0] == one_seed.result["mse"]
        assert len(two_seeds.result["mse_by_seed"]) == (2 if two_seeds.method.random else 1)


def test_other_code_or_other_seeds_are_not_taken_for_these(tmp_path, monkeypatch):
    stream = Declared("logistic", options=(("steps", 40),))
    method = all_methods()["federation"]
    task = evaluation.Task(stream, "federation", 1)
    keys = {evaluation._key(task, method, "d"), evaluation._key(task._replace(seed=2), method, "d")}
    keys |= {evaluation._key(task, method, "e")}
    monkeypatch.setattr(evaluation, "code_digest", lambda own, more: "other")
    keys |= {evaluation._key(task, method, "d")}
    assert len(keys) == 4


def test_a_peer_that_fails_is_tabled_and_our_own_fault_is_not(tmp_path, monkeypatch):
    def fails(problem, seed):
        raise RuntimeError("no luck")

    made = {
        "federation": Method("federation", "ours", one(partial(Constant, 0.0))),
        "persistence": Method("persistence", "baselines", whole=timed(BASELINES["persistence"])),
        "bad": Method("bad", "river", one(fails)),
    }
    monkeypatch.setattr(evaluation, "all_methods", lambda: made)
    stream = Declared("logistic", options=(("steps", 40),))
    rows = rows_of(evaluate([stream], None, (1,), tmp_path, jobs=1))
    assert rows[2]["why"] == "RuntimeError: no luck"
    assert rows[2]["mse"] is None
    made["federation"] = Method("federation", "ours", one(fails))
    with pytest.raises(RuntimeError, match="no luck"):
        evaluate([stream], None, (1,), tmp_path / "other", jobs=1)


def test_processes_give_the_same(tmp_path):
    streams = [Declared("logistic", options=(("steps", 40),))]
    names = ["linear extrapolation"]
    here, there = (rows_of(evaluate(streams, names, (1,), tmp_path / f"{jobs}", jobs=jobs)) for jobs in (1, 2))
    for row, other in zip(here, there, strict=True):
        assert {**row, "us_per_step": 0} == {**other, "us_per_step": 0}


def test_peer_by_peer():
    errors = {
        "one": {"federation": 1.0, "persistence": 4.0, "A": 0.995, "B": 2.0, "part": 0.1},
        "two": {"federation": 2.0, "persistence": 3.0, "A": 4.0, "B": 1.0, "part": 0.1},
        "three": {"federation": 0.0, "persistence": 1.0, "A": 1e-9, "B": None, "part": 0.1},
    }
    families = {"federation": "ours", "persistence": "baselines", "A": "river", "B": "experts", "part": "ours"}
    surely = {("one", "B"), ("two", "A"), ("two", "persistence")}
    rows = [
        {"stream": stream, "method": name, "family": families[name], "mse_after_warmup": error}
        | {"dm_p": None if name == "federation" else 0.04 if (stream, name) in surely else 0.05}
        for stream, methods in errors.items()
        for name, error in methods.items()
    ]
    own, *peers = head_to_head(rows)
    assert (own["method"], own["mean"], own["near"], own["better"], own["worse"]) == ("federation", 1.0, 2, 0, 0)
    found = {line["method"]: line for line in peers}
    assert [line["method"] for line in peers] == ["B", "A", "persistence"]
    # An error below a thousandth of persistence's counts as that, so "three" is even between A and the federation.
    assert found["A"]["mean"] == pytest.approx((0.995 * 2.0 * 1.0) ** (1 / 3))
    assert found["A"]["median"] == pytest.approx(1.0)
    assert found["B"]["mean"] == pytest.approx((2.0 * 0.5) ** 0.5)
    assert found["persistence"]["mean"] == pytest.approx((4.0 * 1.5 * 1e3) ** (1 / 3))
    counts = ("streams", "near", "better", "surely_better", "worse", "surely_worse")
    assert [found["A"][key] for key in counts] == [3, 2, 1, 0, 2, 1]
    assert [found["B"][key] for key in counts] == [2, 1, 1, 0, 1, 1]
    assert [found["persistence"][key] for key in counts] == [3, 0, 0, 0, 3, 1]


def test_the_declared_streams():
    streams = declared_streams()
    assert len([each for each in streams if not each.paper]) >= 6
    assert {each.name for each in declared_streams(paper_only=True)} == {
        "periodic", "logistic", "concept", "concept-y2", "boc", "boc-validation", "ett", "ett-validation",
    }  # fmt: skip
    assert warmup_share() == 0.2
    for each in every_declared():
        shape = entry(each.name).shape
        assert shape is not None
        assert each.paper or shape[0] >= 250
    # All that is in the table of recordings was declared, whatever came of it.
    assert {each.name for each in declared_streams(held_out=True)} == set(RECORDINGS)
    assert not {each.name for each in streams} & set(RECORDINGS)


def test_streams_by_name_and_by_file(tmp_path, monkeypatch):
    monkeypatch.delenv("NASHCAST_DATA", raising=False)
    assert stream_named("concept").shift == 100
    assert stream_named("brownian") == Declared("brownian")
    path = tmp_path / "mine.csv"
    path.write_text("day,load,price\n" + "\n".join(f"{t},{t % 7},{t % 5}" for t in range(200)))
    mine = stream_named(str(path))
    assert mine.label == "mine"
    assert mine.open().inputs.shape == (100, 3)
    assert dict(mine.options)["target"] == "price"
    assert stream_named(str(path), "load", 2).open().inputs.shape == (100, 2)
    with pytest.raises(nc.InvalidInput, match=r"stream: got 'concpt'. Did you mean 'concept"):
        stream_named("concpt")
    with pytest.raises(nc.InvalidInput, match="Pass the path of the file itself"):
        stream_named("file")
    with pytest.raises(nc.InvalidInput, match=r"--target: got none for .*nothing.csv. Pass the name of the column"):
        stream_named(str(tmp_path / "nothing.csv"))
    with pytest.raises(nc.NashcastError, match=r"none of the streams can be opened: ett: needs ETTh1.csv"):
        check_streams([Declared("ett")])


def test_peers_see_the_past_standardised_and_nothing_else():
    rng = np.random.default_rng(1)
    X, Y = 50 + 3 * rng.standard_normal((80, 2)), rng.standard_normal((80, 1))
    past = Past(Problem(2, 1, np.array([4.0])), lags=2)
    rows = []
    for t in range(80):
        lagged = np.concatenate([X[t], [4.0 if t == 0 else Y[t - 1, 0]], [4.0 if t < 2 else Y[t - 2, 0]]])
        found = past.features(X[t])
        if t > 1:
            seen = np.array(rows)
            spread = seen.std(axis=0)
            wanted = np.where(spread > 1e-12, (lagged - seen.mean(axis=0)) / np.where(spread > 1e-12, spread, 1), 0.0)
            np.testing.assert_allclose(found, wanted, atol=1e-9)
        rows.append(lagged)
        past.push(X[t], Y[t])
    assert past.last == Y[-1]


def test_a_digest_of_code_that_is_gone_fails(monkeypatch):
    evaluation.code_digest.cache_clear()
    assert evaluation.code_digest(True) != evaluation.code_digest(False)
    for gone in ("evaluation/none.py", "none/"):
        evaluation.code_digest.cache_clear()
        monkeypatch.setattr(evaluation, "_PEERS_CODE", (gone,))
        with pytest.raises(FileNotFoundError):
            evaluation.code_digest(False)
    evaluation.code_digest.cache_clear()


def test_the_federation_is_there_and_its_agents_are_diverse():
    assert federation_methods.FEDERATION in all_methods()
    assert len(federation_methods.names()) >= 5
    assert set(PEERS) < set(FAMILIES)
    wide = Problem(20, 1, np.zeros(1))
    assert federation_methods.federation(wide, 1).predict_one(np.ones(20)) == 0.0


def test_the_experts_are_those_that_the_federation_mixes():
    stream = small(50, 2)
    federation, experts = federation_methods.federation(problem_of(stream), 3), Experts(problem_of(stream), 3)
    for x, y in zip(stream.inputs, stream.targets, strict=True):
        forecast = federation.predict_one(x)
        said = expert_forecasts(federation, x)
        np.testing.assert_array_equal(said[:, 0].T, experts.said(x))
        weights = federation._loop._now[1].weights.reshape(said.shape)
        np.testing.assert_allclose((weights * said).sum(axis=2)[:, 0], forecast, rtol=1e-9, atol=1e-12)
        federation.learn_one(x, y)
        experts.learn(x, y)
    assert experts.count == said.shape[2] > 20


def test_rival_intervals_are_what_they_are_called():
    r = np.random.default_rng(2).standard_normal(1500)
    for name, rival in RIVALS.items():
        for level in (0.8, 0.9, 0.95):
            widths = rival(r, level)
            assert np.isinf(widths[0])
            assert np.mean(np.abs(r) <= widths) == pytest.approx(level, abs=0.025), name
            np.testing.assert_allclose(rival(1e3 * r, level), 1e3 * widths)
            later = r.copy()
            later[700:] = 0.0
            np.testing.assert_array_equal(rival(later, level)[:701], widths[:701])
    # By hand: the 4th smallest of 4 at 80 %, and nothing is enough for 90 %.
    few = np.array([1.0, -2.0, 3.0, 4.0, 0.0])
    assert RIVALS["rolling quantile"](few, 0.8)[4] == 4.0
    assert np.isinf(RIVALS["rolling quantile"](few, 0.9)[4])


def test_nobody_is_a_multiple_of_somebody_without_error():
    made = [
        outcome("periodic", "federation", "ours", np.full(100, 1e-9)),
        outcome("periodic", "exact", "river", np.zeros(100)),
    ]
    made.append(outcome("periodic", "persistence", "baselines", np.ones(100)))
    rows = rows_of(made)
    assert overview(rows)[0]["near"]
    assert summary(rows)["mse"]["share"] == 1.0
    assert study_of(made, (1,), {}).tables[0].rows[0]["ratio"] is None
    made[0] = outcome("periodic", "federation", "ours", np.full(100, 1e-3))
    assert not overview(rows_of(made))[0]["near"]
