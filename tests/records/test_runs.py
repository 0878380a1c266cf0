"""A run's record: what is written is read, and what is damaged is refused."""

import json
import zipfile

import numpy as np
import pytest

import nashcast as nc
from nashcast.records.folder import read_record, write_record
from nashcast.records.runs import may_overwrite, read_run, write_run

ABOUT = {
    "name": "two agents", "command": "nashcast run a.toml", "seed": 1, "settings": {"seed": 1},
    "summary": {"mse": 0.25}, "agents": ["a", "b"],
}  # fmt: skip


def arrays(steps=5, p=2):
    rng = np.random.default_rng(steps)
    shapes = {"start": (p,), "targets": (steps, p), "forecasts": (steps, p), "weights": (steps, 2)}
    return {name: rng.standard_normal(shape) for name, shape in {**shapes, "agents": (steps, 2, p)}.items()}


def test_a_record_comes_back_as_it_was_written(tmp_path):
    write_run(tmp_path / "a" / "b", ABOUT, arrays())
    record = read_run(tmp_path / "a" / "b")
    assert record.about | ABOUT == record.about
    assert record.about["kind"] == "run"
    assert {"python", "numpy", "numba"} <= record.about["versions"].keys()
    assert record.arrays.keys() == arrays().keys()
    for name, array in arrays().items():
        np.testing.assert_array_equal(record.arrays[name], array)


def test_a_second_record_replaces_the_first_and_other_files_stay(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    write_run(tmp_path, ABOUT, arrays())
    write_run(tmp_path, {**ABOUT, "seed": 2}, arrays(7))
    assert read_run(tmp_path).about["seed"] == 2
    assert len(read_run(tmp_path).arrays["targets"]) == 7
    assert sorted(path.name for path in tmp_path.iterdir()) == ["arrays.npz", "notes.txt", "record.json"]


def cut(path):
    path.write_bytes(path.read_bytes()[:-40])


def flip(path):
    """One byte in the middle of the compressed numbers."""
    with zipfile.ZipFile(path) as archive:
        middle = archive.infolist()[1].header_offset + 120
    content = bytearray(path.read_bytes())
    content[middle] ^= 0xFF
    path.write_bytes(bytes(content))


@pytest.mark.parametrize(
    ("name", "damage", "words"),
    [
        ("record.json", cut, "cannot be read (JSONDecodeError). It is damaged"),
        ("record.json", lambda path: path.write_bytes(b"\xff\xfe"), "cannot be read (UnicodeDecodeError)"),
        ("record.json", lambda path: path.write_text("[]"), "format 'no object'"),
        ("record.json", lambda path: path.write_text('{"format": 99}'), "of format 99. This nashcast reads format 1"),
        ("record.json", lambda path: path.unlink(), "without record.json. Pass a folder that a nashcast command wrote"),
        ("arrays.npz", cut, "cannot be read (BadZipFile). It is damaged"),
        ("arrays.npz", flip, "cannot be read ("),
        ("arrays.npz", lambda path: path.write_text("no"), "cannot be read ("),
        ("arrays.npz", lambda path: path.unlink(), "without its array start. It is damaged"),
    ],
)
def test_damaged_records_are_refused_with_a_remedy(tmp_path, name, damage, words):
    write_run(tmp_path, ABOUT, arrays())
    damage(tmp_path / name)
    with pytest.raises(nc.InvalidInput) as caught:
        read_run(tmp_path)
    assert str(caught.value).startswith(f"record: got {tmp_path}")
    assert words in str(caught.value)


def test_a_record_without_a_part_or_of_another_kind_is_refused(tmp_path):
    write_record(tmp_path, "study", ABOUT, arrays())
    with pytest.raises(nc.InvalidInput, match=r"the record of a study. Pass the record of a run"):
        read_run(tmp_path)
    for name in ("seed", "agents"):
        write_run(tmp_path, {key: value for key, value in ABOUT.items() if key != name}, arrays())
        with pytest.raises(nc.InvalidInput, match=f"without its {name}"):
            read_run(tmp_path)
    write_run(tmp_path, ABOUT, {**arrays(), "weights": np.zeros((5, 3))})
    with pytest.raises(nc.InvalidInput, match=r"without its array weights of shape \(5, 2\)"):
        read_run(tmp_path)
    assert read_record(tmp_path).arrays["weights"].shape == (5, 3)


def test_only_the_same_settings_may_be_overwritten(tmp_path):
    assert may_overwrite(tmp_path, {"seed": 1})
    write_run(tmp_path, ABOUT, arrays())
    assert may_overwrite(tmp_path, {"seed": 1})
    assert not may_overwrite(tmp_path, {"seed": 2})
    cut(tmp_path / "record.json")
    assert not may_overwrite(tmp_path, {"seed": 1})


@pytest.mark.parametrize("place", ["/proc/nothing", "/dev/null/below"])
def test_a_folder_that_cannot_be_written_is_told(place):
    with pytest.raises(nc.NashcastError, match=f"cannot write a record to {place}: .* Pass a folder with room"):
        write_run(place, ABOUT, arrays())


def test_what_cannot_be_said_in_json_leaves_the_old_record(tmp_path):
    write_run(tmp_path, ABOUT, arrays())
    with pytest.raises(TypeError):
        write_run(tmp_path, {**ABOUT, "seed": object()}, arrays())
    assert read_run(tmp_path).about["seed"] == 1
    assert json.loads((tmp_path / "record.json").read_text())["name"] == "two agents"
    assert len(list(tmp_path.iterdir())) == 2
