"""One federation from a file: the same numbers as by hand, its baselines, its record."""

import numpy as np
import pytest

import nashcast as nc
from nashcast import seeds
from nashcast.agents.lookback.paper_agent import PaperAgent
from nashcast.config.config import parse
from nashcast.config.config_changes import changed
from nashcast.datasets import concept_shift
from nashcast.federation.compiled.replay import replay
from nashcast.records.runs import read_run
from nashcast.runs.single_run import check_folder, error_of, run, save, skill

DOCUMENT = {
    "name": "by hand and by file",
    "seed": 2024,
    "stream": {"name": "concept-y2"},
    "paper": {"ridge": 0.5, "budget": 0.95, "lookback": 3, "every": 2},
    "agents": [
        {"encoder": "random_features", "count": 2, "features": 4, "noise": 0.3, "ridge": 2, "decay": 0.1, "window": 7},
        {"encoder": "echo_state", "features": 3, "seed": 5, "samples": 20, "forgetting": 0.98},
        {"encoder": "linear", "name": "line"},
    ],
}


JOINT = {
    "name": "joint",
    "seed": 5,
    "horizon": 2,
    "stream": {"name": "concept-y2"},
    "agents": [{"encoder": "trend"}, {"encoder": "random_lags", "hidden": 6, "inputs": [0, 1]}],
}


def joint_by_hand(stream, **settings):
    drawn = nc.encoders.RandomLags(hidden=6, seed=seeds.key(5, "encoder", 1))
    agents = [nc.Agent(nc.encoders.Trend()), nc.Agent(drawn, inputs=[0, 1])]
    return nc.Federation(agents, start=stream.start, seed=5, **settings)


def test_a_joint_run_is_a_hand_made_federation_bit_for_bit():
    stream = concept_shift(target=1)
    expected = joint_by_hand(stream, horizon=2).replay(stream.inputs, stream.targets)
    seen = []
    about, arrays = run(parse(JOINT), progress=lambda done, total: seen.append((done, total)))
    for name in ("forecasts", "weights", "agents"):
        np.testing.assert_array_equal(arrays[name], getattr(expected, name))
    assert seen[:3] == [(0, 200), (50, 200), (100, 200)]
    summary = about["summary"]
    assert summary["mse"] == expected.mse
    without = joint_by_hand(stream, horizon=2, game=None).replay(stream.inputs, stream.targets)
    assert summary["baselines"] == {"no game": without.mse}
    assert about["agents"] == ["baselines", "trend", "random lags", "joint game"]
    assert sum(summary["last_weights"].values()) == pytest.approx(1.0)
    own = np.mean((expected.agents[:, 1] - stream.targets) ** 2)
    assert summary["agents_mse"]["trend"] == pytest.approx(own, rel=1e-15)
    # Two steps ahead: row t forecasts targets[t] and targets[t + 1].
    np.testing.assert_array_equal(arrays["ahead"][:, 0], expected.forecasts)
    second = np.mean((arrays["ahead"][:-1, 1] - stream.targets[1:]) ** 2)
    assert summary["horizon_mse"] == [pytest.approx(expected.mse), pytest.approx(second)]
    before = np.concatenate([stream.start[None], stream.targets[:-2]])
    assert summary["horizon_persistence_mse"][1] == pytest.approx(np.mean((before - stream.targets[1:]) ** 2))


def test_a_joint_black_box_that_fails_sits_out_and_the_run_says_so(tmp_path):
    (tmp_path / "vendor.py").write_text(BLACK_BOX)
    document = {**JOINT, "agents": [{"encoder": "lags"}, {"encoder": "forecaster", "function": "vendor:moody"}]}
    outcome = run(parse(document, folder=tmp_path))
    absent = int(np.sum(concept_shift(target=1).inputs[:, 0] > 3))
    assert absent > 0
    assert outcome.about["summary"]["absences"] == {"forecaster": absent}
    assert f"forecaster sat out {absent} steps." in outcome.about["notes"]


def by_hand(stream, **settings):
    random = [nc.encoders.RandomFeatures(4, seed=seeds.key(2024, "encoder", i), noise=0.3) for i in range(2)]
    agents = [PaperAgent(encoder, ridge=2, decay=0.1, window=7) for encoder in random]
    agents.append(PaperAgent(nc.encoders.EchoState(3, seed=5, samples=20), forgetting=0.98))
    agents.append(PaperAgent(nc.encoders.Linear()))
    settings = {"game": nc.LookbackGame(lookback=3, every=2), **settings}
    return nc.paper_federation(agents, ridge=0.5, budget=0.95, start=stream.start, seed=2024, **settings)


def test_a_run_is_a_hand_made_federation_bit_for_bit():
    stream = concept_shift(target=1)
    expected = replay(by_hand(stream), stream.inputs, stream.targets)
    about, arrays = run(parse(DOCUMENT))
    np.testing.assert_array_equal(arrays["forecasts"], expected.forecasts)
    np.testing.assert_array_equal(arrays["weights"], expected.weights)
    np.testing.assert_array_equal(arrays["agents"], expected.agents)
    np.testing.assert_array_equal(arrays["targets"], stream.targets)
    np.testing.assert_array_equal(arrays["start"], stream.start)
    summary = about["summary"]
    assert summary["mse"] == expected.mse
    assert summary["engine"] == "compiled"
    for name, settings in (("no game", {}), ("anchored, no game", {"anchored": True})):
        other = replay(by_hand(stream, game=None, **settings), stream.inputs, stream.targets)
        assert summary["baselines"][name] == other.mse
    last = np.concatenate([stream.start[None], stream.targets[:-1]])
    assert summary["persistence_mse"] == np.mean((stream.targets - last) ** 2)
    assert summary["skill"] == 1 - summary["mse"] / summary["persistence_mse"]
    assert summary["steps"] == 200
    assert about["agents"] == ["random features 1", "random features 2", "echo state", "line"]
    assert list(summary["last_weights"].values()) == expected.weights[-1].tolist()
    own = np.mean((expected.agents[:, 3] - stream.targets) ** 2)
    assert summary["agents_mse"]["line"] == pytest.approx(own, rel=1e-15)


def test_a_federation_without_a_game_is_its_own_baseline():
    without = parse(changed(DOCUMENT, {"game": False, "steps": 20}))
    assert run(without).about["summary"]["baselines"].keys() == {"anchored, no game"}
    anchored = run(parse(changed(DOCUMENT, {"game": False, "paper.anchored": True, "steps": 20})))
    assert anchored.about["summary"]["baselines"] == {}
    assert anchored.about["summary"]["mse"] == run(without).about["summary"]["baselines"]["anchored, no game"]


def test_what_cannot_be_compiled_runs_online_with_the_same_verbs():
    config = parse(changed(DOCUMENT, {"paper.rewrite_past": True, "steps": 70}))
    seen = []
    about, arrays = run(config, progress=lambda done, total: seen.append((done, total)))
    stream = concept_shift(target=1)
    federation = by_hand(stream, game=nc.LookbackGame(lookback=3, every=2, rewrite_past=True))
    expected = federation.replay(stream.inputs[:70], stream.targets[:70])
    np.testing.assert_array_equal(arrays["forecasts"], expected.forecasts)
    np.testing.assert_array_equal(arrays["weights"], expected.weights)
    np.testing.assert_array_equal(arrays["agents"], expected.agents)
    assert about["summary"]["engine"] == "online"
    assert "rewrite_past" in about["summary"]["online_because"]
    assert seen == [(0, 70), (50, 70), (70, 70)]


BLACK_BOX = """
def moody(x):
    if x[0] > 3:
        raise RuntimeError("closed for lunch")
    return x[:1]

def never(x):
    raise RuntimeError("closed for good")
"""


def test_a_black_box_that_fails_sits_out_and_the_run_says_so(tmp_path):
    (tmp_path / "vendor.py").write_text(BLACK_BOX)
    document = {**DOCUMENT, "agents": [{"encoder": "linear"}, {"encoder": "forecaster", "function": "vendor:moody"}]}
    about, arrays = run(parse(document, folder=tmp_path))
    summary = about["summary"]
    assert summary["engine"] == "online"
    assert summary["online_because"] == "RuntimeError: closed for lunch"
    absent = int(np.sum(concept_shift(target=1).inputs[:, 0] > 3))
    assert summary["absences"] == {"forecaster": absent}
    assert not arrays["weights"][-1, 1]
    assert np.isfinite(arrays["forecasts"]).all()


def test_the_record_is_what_was_run(tmp_path):
    outcome = run(parse({**DOCUMENT, "steps": 30}), command="nashcast run f.toml")
    save(outcome, tmp_path / "record")
    record = read_run(tmp_path / "record")
    assert record.about | outcome.about == record.about
    assert record.arrays.keys() == outcome.arrays.keys()
    for name, array in outcome.arrays.items():
        np.testing.assert_array_equal(record.arrays[name], array)
    again = run(parse(record.about["settings"]))
    np.testing.assert_array_equal(again.arrays["forecasts"], record.arrays["forecasts"])


def test_a_diverged_run_is_a_result_and_not_a_warning(tmp_path):
    agents = [{"encoder": "random_features", "count": 5, "features": 6, "noise": 1.0, "ridge": 0.1}]
    document = {"stream": {"name": "concept-y2", "steps": 4000}, "agents": agents, "game": False, "paper": {}}
    outcome = run(parse(document))
    assert outcome.about["summary"]["mse"] == float("inf")
    assert outcome.about["summary"]["skill"] == -float("inf")
    save(outcome, tmp_path)
    assert read_run(tmp_path).about["summary"]["mse"] == float("inf")


def test_error_and_skill():
    assert error_of(np.array([[1.0, 3.0]]), np.array([[1.0, 1.0]])) == 2.0
    assert error_of(np.array([[np.nan]]), np.zeros((1, 1))) == float("inf")
    assert error_of(np.array([[1e200]]), np.zeros((1, 1))) == float("inf")
    assert skill(1.0, 4.0) == 0.75
    assert skill(1.0, 0.0) is None


def test_the_folder_is_looked_at_before_a_long_run(tmp_path):
    config, other = parse({**DOCUMENT, "steps": 20}), parse({**DOCUMENT, "steps": 21})
    check_folder(tmp_path / "a" / "b", config, overwrite=False)
    assert not list(tmp_path.iterdir())  # looked at, not made
    save(run(config), tmp_path / "a")
    check_folder(tmp_path / "a", config, overwrite=False)
    check_folder(tmp_path / "a", other, overwrite=True)
    with pytest.raises(
        nc.InvalidInput, match=r"--output: got .*a, which holds a record of other settings or a damaged one"
    ):
        check_folder(tmp_path / "a", other, overwrite=False)
    (tmp_path / "file").write_text("")
    for place in (tmp_path / "file" / "below", "/proc/nothing"):
        with pytest.raises(
            nc.InvalidInput, match=r"which cannot be written \(.*\). Pass a writable folder, or --no-record"
        ):
            check_folder(place, config, overwrite=False)
