"""The trained transformers of Table 1: what each learns from, and a folder that trains none twice."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from nashcast import InvalidInput, NashcastError
from nashcast.datasets import Stream, open_stream
from nashcast.paper import pretrained
from nashcast.paper.pretrained import (
    available,
    encoder_folder,
    encoders_for,
    provenance,
    scored_from,
    stream_for,
)

FILE_ROWS = 3001


def recorded(name, steps=2000, scale=None):
    """Stands for a recorded file: the first `steps` of its rows, not scaled."""
    rng = np.random.default_rng(len(name))
    x, y = rng.normal(20.0, 5.0, (FILE_ROWS, 3)), rng.normal(30.0, 9.0, (FILE_ROWS, 1))
    if scale is None and name == "ett":
        x, y = x / x[: steps + 1].max(), y / y[: steps + 1].max()
    return Stream(name, x[:steps], y[1 : steps + 1], y[0])


@pytest.fixture
def streams(monkeypatch):
    """The paper's streams with stand-ins for the recorded ones; the list of them may be changed."""
    opened = dict.fromkeys(pretrained.SYNTHETIC, open_stream) | dict.fromkeys(pretrained.RECORDED, recorded)
    monkeypatch.setattr(pretrained, "open_stream", lambda name, **options: opened[name](name, **options))
    monkeypatch.setattr(pretrained, "read_known", lambda known: SimpleNamespace(numbers=np.empty((FILE_ROWS, 1))))
    return opened


@pytest.fixture(autouse=True)
def nothing_shipped(monkeypatch):
    monkeypatch.setattr(pretrained, "shipped", lambda name: None)


@pytest.fixture
def quick(monkeypatch, streams, tmp_path):
    """Three sequences each, a folder, and a list of the encoders that were trained."""
    pytest.importorskip("torch")
    monkeypatch.setattr(pretrained, "SEQUENCES", 3)
    trained, train = [], pretrained.pretrain_on_sequences
    monkeypatch.setattr(
        pretrained, "pretrain_on_sequences", lambda *a, **k: trained.append(k["seed"]) or train(*a, **k)
    )
    return SimpleNamespace(folder=tmp_path / "kept", trained=trained)


def same(one, other):
    return all(one.weights[name].tobytes() == other.weights[name].tobytes() for name in one.weights)


def test_what_is_there_is_not_trained_again(quick):
    seen = []
    settings = {"causal": True, "folder": quick.folder, "epochs": 2}
    assert not available("logistic", 1, **settings)
    two = encoders_for("logistic", 2, **settings, progress=lambda *arguments: seen.append(arguments))
    assert [(agent, epoch) for agent, epoch, _ in seen] == [(0, 1), (0, 2), (1, 1), (1, 2)]
    assert len(set(quick.trained)) == 2
    assert not same(*two)
    assert available("logistic", 2, **settings)
    assert not available("logistic", 3, **settings)
    assert not available("logistic", 2, causal=False, folder=quick.folder, epochs=2)
    assert not available("logistic", 2, causal=True, folder=quick.folder, epochs=3)

    again = encoders_for("logistic", 2, **settings)
    assert len(quick.trained) == 2
    assert all(map(same, again, two))
    three = encoders_for("logistic", 3, **settings)
    assert len(quick.trained) == 3
    assert all(map(same, three, two))
    assert sorted(path.suffix for path in quick.folder.iterdir()) == [".json"] * 3 + [".npz"] * 3


def test_an_interrupted_training_leaves_what_was_done_and_nothing_else(quick):
    def stop(agent, epoch, loss):
        if agent == 1:
            raise KeyboardInterrupt

    settings = {"causal": True, "folder": quick.folder, "epochs": 1}
    with pytest.raises(KeyboardInterrupt):
        encoders_for("periodic", 3, **settings, progress=stop)
    stem = "periodic-causal-1-epochs-agent-0"
    assert sorted(path.name for path in quick.folder.iterdir()) == [f"{stem}.json", f"{stem}.npz"]
    first = encoders_for("periodic", 1, **settings)[0]
    # The one that was interrupted is as if it had not been.
    elsewhere = encoders_for("periodic", 2, **settings | {"folder": quick.folder / "elsewhere"})
    assert all(map(same, encoders_for("periodic", 2, **settings), elsewhere))
    assert same(first, elsewhere[0])


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("dataset", ["concept", "ett", "boc"])
def test_an_encoder_is_kept_with_what_it_was_trained_on(quick, monkeypatch, dataset, causal):
    monkeypatch.setattr(pretrained, "_LENGTH", {"boc": 60, "ett": 60})
    monkeypatch.setattr(pretrained, "_CAUSAL_LENGTH", 40)
    settings = {"causal": causal, "folder": quick.folder, "epochs": 1}
    losses = []
    encoder, *_ = encoders_for(dataset, 1, **settings, progress=lambda agent, epoch, loss: losses.append(loss))
    assert encoder.look_ahead is not causal
    stream = stream_for(dataset, causal=causal)
    assert encoder.build(stream.inputs.shape[1], stream.targets.shape[1]).features == 2
    about = provenance(dataset, 0, **settings)
    expected = {
        "dataset": dataset,
        "way": "causal" if causal else "published",
        "look_ahead": not causal,
        "agent": 0,
        "seed": quick.trained[0],
        "rows": {("concept", True): 50, ("concept", False): 200}.get((dataset, causal), 500 if causal else 3000),
        "sequences": 3,
        "length": 40 if causal else 200 if dataset == "concept" else 60,
        "epochs": 1,
        "final_loss": losses[-1],
    }
    assert {name: about[name] for name in expected} == expected
    assert about["versions"]["torch"]


@pytest.mark.parametrize("dataset", ["periodic", "logistic", "concept"])
def test_as_published_the_synthetic_sequences_are_copies_of_the_scored_series(streams, dataset):
    X, Y, rows = pretrained._lesson(dataset, False, 1)
    stream = open_stream(dataset)
    assert len(X) == len(Y) == 100
    assert rows == 200
    assert (stream.inputs == X).all()
    assert (stream.targets == Y).all()


@pytest.mark.parametrize(("dataset", "scaled"), [("boc", False), ("ett", True)])
def test_as_published_the_recorded_sequences_come_from_the_whole_file(streams, dataset, scaled):
    X, Y, rows = pretrained._lesson(dataset, False, 1)
    length = {"boc": 1001, "ett": 500}[dataset]
    assert (X.shape, Y.shape, rows) == ((100, length, 3), (100, length, 1), 3000)
    if scaled:
        np.testing.assert_array_equal(X.max(axis=(1, 2)), 1.0)
        np.testing.assert_array_equal(Y.max(axis=(1, 2)), 1.0)
    file = recorded(dataset, steps=3000, scale="none")
    starts = []
    for x, y in zip(X, Y, strict=True):
        # Found by a ratio, which does not depend on the scale.
        last = 3001 - length
        start = int(np.abs(file.inputs[:last, 0] / file.inputs[:last, 1] - x[0, 0] / x[0, 1]).argmin())
        raw = file.inputs[start : start + length]
        np.testing.assert_allclose(x, raw / raw.max() if scaled else raw)
        raw = file.targets[start : start + length]
        np.testing.assert_allclose(y, raw / raw.max() if scaled else raw)
        starts.append(start)
    assert max(starts) + length > 2000  # beyond the scored period, which is 2000 rows long
    assert len(set(starts)) > 50
    assert not np.array_equal(pretrained._lesson(dataset, False, 2).inputs, X)


@pytest.mark.parametrize(("dataset", "seen", "length"), [("concept", 50, 50), ("boc", 500, 200), ("ett", 500, 200)])
def test_causally_only_the_first_quarter_is_learnt_from(streams, dataset, seen, length):
    X, Y, rows = pretrained._lesson(dataset, True, 1)
    assert scored_from(dataset, causal=True) == rows == seen
    assert X.shape[1] == Y.shape[1] == length
    opened = streams[dataset]

    def changed(first):
        def other(name, **options):
            stream = opened(name, **options)
            inputs, targets = stream.inputs.copy(), stream.targets.copy()
            inputs[first:], targets[first:] = 1e6, -1e6
            return stream._replace(inputs=inputs, targets=targets)

        return other

    streams[dataset] = changed(seen)
    lesson = pretrained._lesson(dataset, True, 1)
    np.testing.assert_array_equal(lesson.inputs, X)
    np.testing.assert_array_equal(lesson.targets, Y)
    # What comes before is looked at: otherwise the above would say nothing.
    streams[dataset] = changed(seen // 2)
    assert not np.array_equal(pretrained._lesson(dataset, True, 1).targets, Y)


def test_the_series_to_score_on(streams):
    for dataset in (*pretrained.SYNTHETIC, *pretrained.RECORDED):
        assert scored_from(dataset, causal=False) == 0
        np.testing.assert_array_equal(stream_for(dataset, causal=False).targets, streams[dataset](dataset).targets)
    raw, scaled = recorded("ett", scale="none"), stream_for("ett", causal=True)
    assert scaled.inputs[:500].max() == scaled.targets[:500].max() == 1.0
    for one, other in ((scaled.targets, raw.targets), (scaled.start, raw.start)):
        np.testing.assert_allclose(scaled.in_units(one), other)


def test_where_encoders_are_kept(monkeypatch, tmp_path):
    for name in ("NASHCAST_ENCODERS", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NASHCAST_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("HOME", str(tmp_path))
    assert encoder_folder() == tmp_path / ".local" / "share" / "nashcast" / "encoders"
    monkeypatch.setenv("XDG_DATA_HOME", "relative")
    assert encoder_folder() == tmp_path / ".local" / "share" / "nashcast" / "encoders"
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "shared"))
    assert encoder_folder() == tmp_path / "shared" / "nashcast" / "encoders"
    monkeypatch.setenv("NASHCAST_ENCODERS", "~/trained")
    assert encoder_folder() == tmp_path / "trained"
    assert encoder_folder(tmp_path / "here") == tmp_path / "here"
    monkeypatch.delenv("NASHCAST_ENCODERS")
    monkeypatch.delenv("XDG_DATA_HOME")
    monkeypatch.setattr(Path, "home", lambda: (_ for _ in ()).throw(RuntimeError("no home")))
    with pytest.raises(InvalidInput, match=r"^NASHCAST_ENCODERS: got nothing, .* Set NASHCAST_ENCODERS to a folder"):
        encoder_folder()


def test_what_cannot_be_is_refused(tmp_path):
    known = "Transformers are trained for periodic, logistic, concept, boc, ett"
    for ask in (
        lambda: encoders_for("weather", 2, causal=True, folder=tmp_path),
        lambda: available("weather", 2, causal=True, folder=tmp_path),
        lambda: provenance("weather", 0, causal=True, folder=tmp_path),
        lambda: stream_for("weather", causal=True),
    ):
        with pytest.raises(InvalidInput, match=rf"^dataset: got 'weather'. {known}"):
            ask()
    with pytest.raises(InvalidInput, match=r"^agents: got int 0"):
        encoders_for("periodic", 0, causal=True, folder=tmp_path)
    with pytest.raises(InvalidInput, match=r"^epochs: got int 0"):
        encoders_for("periodic", 1, causal=True, folder=tmp_path, epochs=0)
    with pytest.raises(InvalidInput, match=r"^encoder: got no readable .*agent-3.json. Train it"):
        provenance("periodic", 3, causal=True, folder=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_damaged_encoder_and_a_folder_that_is_none_are_reported(tmp_path):
    (tmp_path / "periodic-causal-7-epochs-agent-0.npz").write_text("no archive")
    with pytest.raises(InvalidInput, match=r"^encoder: got .*agent-0.npz, which cannot be read. Remove it"):
        encoders_for("periodic", 1, causal=True, folder=tmp_path, epochs=7)
    (tmp_path / "file").write_text("")
    with pytest.raises(NashcastError, match=r"^cannot save trained encoders in .*file.*Set NASHCAST_ENCODERS"):
        encoders_for("periodic", 1, causal=True, folder=tmp_path / "file")


def test_agents_are_trained_with_seeds_from_the_authors_on(quick):
    encoders_for("periodic", 2, causal=True, folder=quick.folder, epochs=1)
    assert quick.trained == [2026, 2027]
