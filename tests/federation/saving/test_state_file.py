"""State files: read exactly as written, or refused with one error; never more memory than the file is worth."""

import json
import os
import stat
import tracemalloc

import numpy as np
import pytest

from nashcast.errors import InvalidInput
from nashcast.federation.saving.double_buffered_file import DoubleBufferedFile
from nashcast.federation.saving.state_file import MAX_NAME, VERSION, read_arrays, write_arrays, write_slot
from support.damage import ACCIDENTS, EDITS, frame, read_plainly, sample_state, slots, sound_files

MEGABYTE = 2**20


def same(found, expected):
    arrays, about = found
    assert about == expected[1]
    assert list(arrays) == list(expected[0])
    for name, array in arrays.items():
        assert (array.dtype, array.shape) == (expected[0][name].dtype, expected[0][name].shape)
        assert array.tobytes() == expected[0][name].tobytes()
        assert array.flags.writeable
        assert array.flags.owndata or array.base.flags.owndata


def message_of(path, **options):
    with pytest.raises(InvalidInput) as caught:
        read_arrays(path, **options)
    return str(caught.value)


def test_arrays_come_back_as_they_were(tmp_path):
    rng = np.random.default_rng(1)
    kinds = ["b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8"]
    arrays = {f"kind {kind}": rng.integers(0, 2, size=(2, 3)).astype(kind) for kind in kinds}
    arrays |= {
        "scalar": np.array(3.5),
        "empty": np.zeros((4, 0, 2)),
        "transposed": rng.normal(size=(3, 4)).T,
        "strided": rng.normal(size=20)[::3],
        "not finite": np.array([np.nan, -np.nan, np.inf, -0.0, 5e-324]),
        "β" * MAX_NAME: np.zeros(1),
    }
    about = {"text": "β\ud800", "list": [1, None, True, {"a": 1.5}], "large": 2**70}
    write_arrays(tmp_path / "snapshot", arrays, about)
    file = DoubleBufferedFile(tmp_path / "slots")
    for name in ("snapshot", "slots"):
        if name == "slots":
            write_slot(file, arrays, about)
        same(read_arrays(tmp_path / name), (arrays, about))
        same(read_arrays(str(tmp_path / name)), (arrays, about))
    np.testing.assert_array_equal(read_arrays(tmp_path / "snapshot")[0]["transposed"], arrays["transposed"])


def test_arrays_of_the_other_byte_order_keep_their_values(tmp_path):
    given = np.arange(5.0).astype(">f8")
    write_arrays(tmp_path / "s", {"a": given}, {})
    found = read_arrays(tmp_path / "s")[0]["a"]
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found, given)


def test_the_layout_is_the_documented_one(tmp_path):
    rng = np.random.default_rng(2)
    state = sample_state(rng, 4)
    write_arrays(tmp_path / "s", *state)
    arrays, about = read_plainly((tmp_path / "s").read_bytes())
    assert about == state[1]
    for name, array in arrays.items():
        np.testing.assert_array_equal(array, state[0][name])


def test_only_the_owner_may_read_it(tmp_path):
    path = tmp_path / "s"
    path.write_bytes(b"old")
    path.chmod(0o644)
    before = os.umask(0)
    try:
        write_arrays(path, *sample_state(np.random.default_rng(0), 1))
        partial = tmp_path / "slots.partial"
        partial.touch(0o666)  # left by an earlier crash
        write_slot(DoubleBufferedFile(tmp_path / "slots"), *sample_state(np.random.default_rng(0), 1))
    finally:
        os.umask(before)
    for name in ("s", "slots"):
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600
    assert sorted(each.name for each in tmp_path.iterdir()) == ["s", "slots"]


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_write_that_fails_leaves_the_old_file(call, tmp_path, monkeypatch):
    path, first = tmp_path / "s", sample_state(np.random.default_rng(0), 1)
    write_arrays(path, *first)

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(*(("os.fsync", full) if call == "fsync" else ("pathlib.Path.replace", full)))
    with pytest.raises(InvalidInput, match=r"^path: got s: No space left on device\. Choose a folder that can be wri"):
        write_arrays(path, *sample_state(np.random.default_rng(1), 2))
    monkeypatch.undo()
    same(read_arrays(path), first)
    assert [each.name for each in tmp_path.iterdir()] == ["s"]


@pytest.mark.parametrize(
    ("arrays", "about", "words"),
    [
        ({"a": np.array([object()])}, {}, "array 'a' has the type '|O'"),
        ({"a": np.array([1j])}, {}, "array 'a' has the type '<c16'"),
        ({"a": np.array(["x"])}, {}, "array 'a' has the type '<U1'"),
        ({"": np.zeros(1)}, {}, "an array has the name ''"),
        ({"a" * 201: np.zeros(1)}, {}, "an array has the name 'aaaa"),
        ({"a\n": np.zeros(1)}, {}, r"an array has the name 'a\n'"),
        ({3: np.zeros(1)}, {}, "an array has the name 3"),
        ({"a": np.zeros((1,) * 9)}, {}, "array 'a' has the shape list [1, 1, 1, 1, 1, 1, 1, 1, 1]"),
        ({}, {"a": np.nan}, "Out of range float values are not JSON compliant"),
        ({}, {"a": {1, 2}}, "Object of type set is not JSON serializable"),
        ({}, 3, "its header is no JSON object"),
    ],
)
def test_what_could_not_be_read_again_is_not_written(arrays, about, words, tmp_path):
    with pytest.raises(InvalidInput) as caught:
        write_arrays(tmp_path / "s", arrays, about)
    assert str(caught.value).startswith(f"state: got a state that cannot be saved ({words}")
    assert str(caught.value).endswith("Save arrays of numbers.")
    with pytest.raises(InvalidInput):
        write_slot(DoubleBufferedFile(tmp_path / "s"), arrays, about)
    assert list(tmp_path.iterdir()) == []


GOOD = {"version": VERSION, "arrays": [["a", "<f8", [2]]], "about": {}}
BYTES = np.arange(2.0).tobytes()


def header_of(**changes):
    return json.dumps({**GOOD, **changes}).encode()


def listing(*entries):
    return header_of(arrays=list(entries))


@pytest.mark.parametrize(
    ("header", "content", "words"),
    [
        (listing(["a", "<f8", [3]]), BYTES, "array 'a' is longer than the rest of the file"),
        (listing(["a", "<f8", [1]]), BYTES, "it has 8 bytes after the last array"),
        (listing(["a", "<f8", [2**27]]), BYTES, "array 'a' is too large"),
        (listing(["a", "<f8", [2**24]]), BYTES, "array 'a' is longer than the rest of the file"),
        (listing(["a", "<f8", [0, 2**62, 2**62]]), b"", "array 'a' is too large"),
        (listing(["a", "<f8", [-1]]), BYTES, "array 'a' has the shape list [-1]"),
        (listing(["a", "<f8", [2.0]]), BYTES, "array 'a' has the shape list [2.0]"),
        (listing(["a", "<f8", [True]]), BYTES[:8], "array 'a' has the shape list [True]"),
        (listing(["a", "<f8", "2"]), BYTES, "array 'a' has the shape str '2'"),
        (listing(["a", "<f8", [1] * 9]), BYTES[:8], "array 'a' has the shape list [1, 1"),
        (listing(["a", "|O", [2]]), BYTES, "array 'a' has the type '|O'"),
        (listing(["a", ["<f8"], [2]]), BYTES, "array 'a' has the type ['<f8']"),
        (listing(["a", "|b1", [16]]), b"\2" * 16, "array 'a' has entries that are neither true nor false"),
        (listing(["a", "<f8", [1]], ["a", "<f8", [1]]), BYTES, "its header lists the array 'a' twice"),
        (listing(["a" * 201, "<f8", [2]]), BYTES, "an array has the name 'aaa"),
        (listing([None, "<f8", [2]]), BYTES, "an array has the name None"),
        (listing(["a", "<f8"]), BYTES, "its header lists an array without name, type and shape"),
        (listing("abc"), BYTES, "its header lists an array without name, type and shape"),
        (header_of(arrays={}), BYTES, "its header has other parts than version, arrays and about"),
        (header_of(more=1), BYTES, "its header has other parts than version, arrays and about"),
        (header_of(about=[]), BYTES, "its header is no JSON object"),
        (b"[]", b"", "its header is no JSON object"),
        (b"{", b"", "its header is not valid: Expecting property name"),
        (b"\xff", b"", "its header is not valid: 'utf-8' codec can't decode"),
        (b'{"version": NaN}', b"", "its header is not valid: NaN is not JSON"),
        (b'{"a": 1, "a": 2}', b"", "its header is not valid: a name occurs twice in an object"),
        (b"[" * 100_000, b"", "its header is nested too deeply"),
        (header_of(about={"a": eval("[" * 40 + "]" * 40)}), BYTES, "its header is nested too deeply"),
        (b'{"version": ' + b"9" * 5000 + b"}", b"", "its header is not valid: Exceeds the limit"),
        (b" " * (8 * MEGABYTE + 1), b"", "its header has 8388609 bytes, more than 8388608"),
    ],
)
def test_edited_headers_with_right_checksums(header, content, words, tmp_path):
    for data in (frame(header, content), slots((1, header, content))):
        (tmp_path / "s").write_bytes(data)
        message = message_of(tmp_path / "s")
        assert message.startswith(f"path: got s, which cannot be read ({words}")
        assert message.endswith("It is damaged or no saved state: use an earlier copy.")


@pytest.mark.parametrize("version", [2, 4, "3", None, 3.5])
def test_other_versions(version, tmp_path):
    (tmp_path / "s").write_bytes(frame(header_of(version=version), BYTES))
    assert message_of(tmp_path / "s") == f"path: got s of version {version!r}. This release reads version 3."


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "it does not begin as a saved state does"),
        (b"PK\3\4" + bytes(100), "it does not begin as a saved state does"),
        (b"nashstat" + bytes(31), "it is cut short"),
        (frame(header_of(), BYTES) + b"\0", "it has 115 bytes, and 114 by its own account"),
        (frame(header_of(), BYTES, lengths=(2**63, 2**63)), "it has 114 bytes, and 18446744073709551656 by its own"),
        (frame(header_of(), BYTES)[:-1] + b"\0", "its checksum is wrong"),
        (b"nashslot" + bytes(5), "it is cut short"),
        (b"nashslot" + bytes(12), "its first bytes have a wrong checksum"),
        (slots((1, header_of(), BYTES))[:60], "neither of its two slots is whole"),
        (
            slots((1, header_of(), BYTES), (2, header_of(), BYTES), room=129) + bytes(30),
            "it has bytes after its second",
        ),
        (slots((1, header_of(), BYTES), lengths=(2**63, 2**63)), "neither of its two slots is whole"),
    ],
)
def test_damaged_frames(data, words, tmp_path):
    (tmp_path / "s").write_bytes(data)
    assert message_of(tmp_path / "s").startswith(f"path: got s, which cannot be read ({words}")


def test_what_is_not_a_file(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for name in ("missing", "pipe", "."):
        assert message_of(tmp_path / name).endswith("Pass a file that `save` wrote.")


def test_larger_files_than_allowed_are_not_read(tmp_path):
    path = tmp_path / "s"
    write_arrays(path, {"a": np.zeros(1000)}, {})
    size = path.stat().st_size
    message = f"path: got s of {size} bytes, more than max_bytes = {size - 1}. Pass another file, or a larger max_bytes"
    assert message_of(path, max_bytes=size - 1).startswith(message)
    assert len(read_arrays(path, max_bytes=size)[0]["a"]) == 1000
    os.truncate(path, 2**40)  # a sparse file of a terabyte
    assert peak_of(lambda: message_of(path)) < MEGABYTE
    assert message_of(path).startswith("path: got s of 1099511627776 bytes")


def peak_of(call):
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_memory_is_bounded_by_the_file(tmp_path):
    path = tmp_path / "s"
    for header in (
        header_of(arrays=[["a", "<f8", [2**25]]]),  # 256 MiB, were it there
        header_of(arrays=[[f"a{i}", "<f8", [0]] for i in range(10_000)], about={}),
        b'{"version": 3, "arrays": [' + b"[]," * (MEGABYTE // 3) + b'[]], "about": {}}',
        b'{"version": 3, "arrays": [], "about": {"a": [' + b"{}," * (MEGABYTE // 3) + b"{}]}}",
        b"[" * MEGABYTE,
        b'{"version": 3, "arrays": [], "about": {"a": [' + b'"\\u1234",' * (MEGABYTE // 9) + b'""]}}',
    ):
        path.write_bytes(frame(header, BYTES))
        assert path.stat().st_size < 2 * MEGABYTE
        assert peak_of(lambda: message_of(path)) < 60 * MEGABYTE
    write_arrays(path, {"a": np.zeros(2**20)}, {})
    assert peak_of(lambda: read_arrays(path)) < 2.1 * path.stat().st_size


def exactly(state):
    arrays, about = state
    return [(name, array.dtype, array.shape, array.tobytes()) for name, array in arrays.items()], json.dumps(about)


def fuzz(folder, seed, count):
    """How many damaged files were refused, and how many were read.

    Those are read as they were written or, if their header was edited and their checksum made right, as it says.
    """
    rng = np.random.default_rng(seed)
    files = sound_files(folder, rng)
    written = [read_plainly(data) for data in files]
    path, refused, read = folder / "fuzz.state", 0, 0
    tracemalloc.start()
    try:
        for i in range(count):
            which = int(rng.integers(len(files)))
            accident = i % 2 == 0
            kinds = ACCIDENTS if accident else EDITS
            data = kinds[i // 2 % len(kinds)](files[which], rng)
            path.write_bytes(data)
            tracemalloc.reset_peak()
            before = tracemalloc.get_traced_memory()[0]
            try:
                found = read_arrays(path)
            except InvalidInput as error:
                found, message = None, str(error)
            if found is None:
                assert message.startswith("path: got fuzz.state")
                refused += 1
            else:
                same(found, read_plainly(data))
                if accident:  # a damaged slot leaves the one before
                    assert exactly(found) in map(exactly, written[max(which - 1, 1) : which + 1] or written[:1])
                read += 1
            assert tracemalloc.get_traced_memory()[1] - before < MEGABYTE
    finally:
        tracemalloc.stop()
    return refused, read


def test_damaged_files_are_refused_or_read_exactly(tmp_path):
    refused, read = fuzz(tmp_path, 1, 1_500)
    assert refused > 900
    assert read > 50


@pytest.mark.slow
def test_many_damaged_files_are_refused_or_read_exactly(tmp_path):
    refused, read = fuzz(tmp_path, 2, 20_000)
    assert refused > 12_000
    assert read > 700
