"""A state kept after every step: whatever moment its writer is killed at, this step's or the last one's is there."""

import os

import numpy as np
import pytest

from nashcast.errors import InvalidInput
from nashcast.federation.saving.double_buffered_file import DoubleBufferedFile
from nashcast.federation.saving.state_file import read_arrays, write_arrays, write_slot


def state(number, size=40):
    return {"values": np.full(size, float(number)), "one": np.array(number)}, {"number": number}


def number_in(path):
    arrays, about = read_arrays(path)
    assert set(arrays["values"]) == {float(about["number"])}
    assert arrays["one"].shape == ()
    assert arrays["one"] == about["number"]
    return about["number"]


def test_the_last_state_is_read(tmp_path):
    path = tmp_path / "s.state"
    file = DoubleBufferedFile(path)
    for number in range(7):
        write_slot(file, *state(number))
        assert number_in(path) == number
    begun = DoubleBufferedFile(path)  # another program goes on
    for number in range(7, 10):
        write_slot(begun, *state(number))
        assert number_in(path) == number
    assert [p.name for p in tmp_path.iterdir()] == ["s.state"]


def test_arrays_come_back_as_they_were(tmp_path):
    arrays = {"grid": np.arange(12.0).reshape(3, 4).T, "none": np.zeros((0, 2)), "yes": np.array([True, False])}
    write_slot(DoubleBufferedFile(tmp_path / "kept"), arrays, {"a": [1, "β"]})
    write_arrays(tmp_path / "saved", arrays, {"a": [1, "β"]})
    for name in ("kept", "saved"):
        found, about = read_arrays(tmp_path / name)
        assert about == {"a": [1, "β"]}
        for key, array in arrays.items():
            np.testing.assert_array_equal(found[key], array)
            assert found[key].dtype == array.dtype


@pytest.mark.parametrize("written", [1, 2, 3])
def test_killed_at_any_byte_the_state_is_the_last_or_the_one_before(written, tmp_path):
    path, torn = tmp_path / "s.state", tmp_path / "torn"
    file = DoubleBufferedFile(path)
    for number in range(written):
        write_slot(file, *state(number))
    before = path.read_bytes()
    write_slot(file, *state(written))
    after = path.read_bytes()
    before = before.ljust(len(after), b"\0") if written > 1 else before
    changed = [i for i, (a, b) in enumerate(zip(before.ljust(len(after), b"\1"), after, strict=True)) if a != b]
    found = set()
    for cut in range(changed[0], len(after) + 1):
        torn.write_bytes(after[:cut] + before[cut:])
        found.add(number_in(torn))
    assert found == {written - 1, written}


def test_a_state_that_has_grown_and_a_file_that_was_removed(tmp_path):
    path = tmp_path / "s.state"
    file = DoubleBufferedFile(path)
    for number, size in enumerate((10, 10, 10, 500, 500, 3, 2000, 2000)):
        write_slot(file, *state(number, size))
        assert number_in(path) == number
    path.unlink()
    write_slot(file, *state(8))
    assert number_in(path) == 8
    other = DoubleBufferedFile(path)
    write_slot(other, *state(20))
    write_slot(file, *state(9))
    assert number_in(path) == 9


def test_a_full_disk_leaves_the_state_before(tmp_path, monkeypatch):
    path, write = tmp_path / "s.state", os.pwrite
    file = DoubleBufferedFile(path)
    for number in range(3):
        write_slot(file, *state(number))
    monkeypatch.setattr(os, "pwrite", lambda fd, data, at: write(fd, data[:50], at))
    for _ in range(2):
        with pytest.raises(InvalidInput, match=r"s\.state: No space left on device\. Choose a folder"):
            write_slot(file, *state(3))
        assert number_in(path) == 2
    monkeypatch.undo()
    write_slot(file, *state(4))
    assert number_in(path) == 4
    with pytest.raises(InvalidInput, match="No such file or directory"):
        write_slot(DoubleBufferedFile(tmp_path / "nowhere" / "s"), *state(0))


@pytest.mark.parametrize(
    "damage", [lambda d: d[:12], lambda d: d[:-9], lambda d: d[:8], lambda d: d[:40] + b"?" + d[41:]]
)
def test_what_is_damaged_is_refused(damage, tmp_path):
    path = tmp_path / "s.state"
    write_slot(DoubleBufferedFile(path), *state(1))
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(InvalidInput, match="cannot be read"):
        read_arrays(path)
