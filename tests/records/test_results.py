"""Results of many runs: nothing lost, nothing twice, whoever writes and whatever is killed."""

import json
import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import nashcast as nc
from nashcast.records.results import WHOSE, Results, settings_key


def lines_in(folder):
    return [line for path in sorted(folder.glob("results-*.jsonl")) for line in path.read_text().splitlines()]


def test_added_results_are_read_back_from_all_writers(tmp_path):
    results = Results(tmp_path / "new" / "folder")
    assert results.done() == {}
    with results.writer() as one, results.writer() as other:
        one.add("a", {"mse": 0.1, "worst": float("inf"), "why": "ä"})
        other.add("b", [1, np.float64(2.5), np.arange(2)])
        assert results.done() == Results(results.folder).done()
        one.add("c", None)
    assert Results(results.folder).done() == {
        "a": {"mse": 0.1, "worst": float("inf"), "why": "ä"}, "b": [1, 2.5, [0, 1]], "c": None,
    }  # fmt: skip
    assert results.done() == Results(results.folder).done()


def test_of_a_key_added_twice_the_first_counts_and_a_writer_without_results_leaves_no_file(tmp_path):
    results = Results(tmp_path)
    with results.writer() as writer:
        writer.add("a", 1)
        writer.add("a", 2)
    assert results.done() == {"a": 1}
    with results.writer():
        pass
    assert len(list(tmp_path.iterdir())) == 1
    with pytest.raises(nc.NashcastError, match="closed"):
        writer.add("b", 1)


@pytest.mark.parametrize("end", [b'{"key": "c", "resu', b'{"key"', b"\x00\x00\x00", b'"text"\n', b'{"key": "c"}\n'])
def test_a_last_line_that_was_never_finished_is_left_out(tmp_path, end):
    results = Results(tmp_path)
    with results.writer() as writer:
        writer.add("a", 1)
    with writer.path.open("ab") as file:
        file.write(end)
    assert Results(tmp_path).done() == {"a": 1}


def test_a_line_seen_half_written_is_read_once_it_is_whole(tmp_path):
    results = Results(tmp_path)
    path = tmp_path / "results-elsewhere-1-aa.jsonl"
    path.write_bytes(b'{"key":"a","result":1}\n{"key":"b","res')
    assert results.done() == {"a": 1}
    with path.open("ab") as file:
        file.write(b'ult":2}\n')
    assert results.done() == {"a": 1, "b": 2}


def test_damage_in_the_middle_is_no_unfinished_line_and_is_told(tmp_path):
    (tmp_path / "results-x-1-aa.jsonl").write_text('{"key":"a","result":1}\n{"key":\n{"key":"b","result":2}\n')
    with pytest.raises(nc.InvalidInput, match=r"results-x-1-aa.jsonl, unreadable at line 2 .* remove it"):
        Results(tmp_path).done()


def test_threads_share_one_writer(tmp_path):
    results = Results(tmp_path)
    with results.writer() as writer:

        def add(thread):
            for k in range(200):
                writer.add(f"{thread}-{k}", {"values": [thread] * 50})

        threads = [threading.Thread(target=add, args=(i,)) for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(lines_in(tmp_path)) == len(results.done()) == 1600


def test_a_full_disk_is_told_and_says_where(tmp_path):
    with Results(tmp_path).writer() as writer:
        full = os.open("/dev/full", os.O_WRONLY)
        os.dup2(full, writer._file)
        os.close(full)
        with pytest.raises(nc.NashcastError, match=f"cannot write results to {tmp_path}: No space left"):
            writer.add("a", 1)


FILLING = """
import resource, sys
import numpy as np
from nashcast import NashcastError
from nashcast.records.folder import read_record, write_record
from nashcast.records.results import Results

folder = sys.argv[1]
write_record(folder, "run", {"name": "old"}, {"a": np.arange(3)})
hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
try:
    write_record(folder, "run", {"name": "new"}, {"a": np.random.default_rng(0).standard_normal(1000)})
    print("written")
except NashcastError as error:
    print(error)
print(read_record(folder).about["name"])
added = 0
with Results(folder).writer() as writer:
    try:
        for added in range(100):
            writer.add(str(added), "x" * 30)
    except NashcastError as error:
        print(error)
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    writer.add("after", 1)
print(added, len(Results(folder).done()))
"""


def test_a_line_cut_short_by_a_full_disk_is_taken_back_and_a_record_stays_as_it_was(tmp_path):
    run = subprocess.run([sys.executable, "-c", FILLING, str(tmp_path)], capture_output=True, text=True, check=True)
    record, name, results, counts = run.stdout.splitlines()
    assert record.startswith(f"cannot write a record to {tmp_path}: File too large")
    assert name == "old"
    assert results.startswith(f"cannot write results to {tmp_path}: File too large")
    added, read = map(int, counts.split())
    assert 5 < added == read - 1 < 30
    assert len(lines_in(tmp_path)) == read
    assert not list(tmp_path.glob(".writing*"))


@pytest.mark.parametrize("place", ["/proc/nothing", "/dev/null/below"])
def test_a_folder_that_cannot_be_made_is_told(place):
    with pytest.raises(nc.NashcastError, match="cannot write results to"):
        Results(place).writer()
    with pytest.raises(nc.NashcastError, match="cannot write results to"):
        Results(place).belong_to({"a": 1})


def test_results_belong_to_one_sweep(tmp_path):
    Results(tmp_path).belong_to({"grid": {"ridge": [1, 2.0]}, "seed": 3})
    Results(tmp_path).belong_to({"seed": 3.0, "grid": {"ridge": (1.0, 2)}})
    with pytest.raises(
        nc.InvalidInput, match=r"results of other settings \(grid.ridge\[1\] was 2, is 3\). Pass another"
    ):
        Results(tmp_path).belong_to({"grid": {"ridge": [1, 3]}, "seed": 3})
    assert [path.name for path in tmp_path.iterdir()] == [WHOSE]
    (tmp_path / WHOSE).write_text("{")
    with pytest.raises(nc.InvalidInput, match="everything was None"):
        Results(tmp_path).belong_to({"seed": 3})


def test_of_several_that_begin_at_once_one_owns_the_folder(tmp_path):
    outcomes = []

    def begin(i):
        try:
            Results(tmp_path).belong_to({"owner": i})
            outcomes.append(i)
        except nc.InvalidInput:
            outcomes.append(None)

    threads = [threading.Thread(target=begin, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    owners = [i for i in outcomes if i is not None]
    assert len(outcomes) == 8
    assert owners == [json.loads((tmp_path / WHOSE).read_text())["owner"]]


def test_keys_depend_on_the_settings_alone():
    key = settings_key({"a": 1, "b": [0.1, True, None, "x"]})
    assert (
        key
        == settings_key({"b": (0.1, True, None, "x"), "a": 1.0})
        == settings_key({"b": [0.1, True, None, "x"], "a": np.int64(1)})
    )
    assert len(key) == 24
    others = [{"a": 1}, {"a": 2, "b": [0.1, True, None, "x"]}, {"a": 1, "b": [0.1, 1, None, "x"]}, {"a": "1"}, [], 1]
    assert len({key, *map(settings_key, others)}) == 1 + len(others)
    for bad in ({"a": float("nan")}, {"a": object()}):
        with pytest.raises(nc.InvalidInput, match="settings: got a value that JSON cannot represent"):
            settings_key(bad)
