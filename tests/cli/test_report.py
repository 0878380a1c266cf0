"""`nashcast report`: what it writes, what it prints, and how it fails without leaving halves behind."""

import argparse
import json
import sys

import numpy as np
import pytest

from nashcast.cli import report
from nashcast.errors import InvalidInput, NashcastError
from nashcast.records.folder import write_record
from nashcast.records.study import Column, Figure, Line, Panel, Study, Table, write


@pytest.fixture
def record(tmp_path):
    figure = Figure("errors", "Errors", "c", [Panel("", "step", "y", [Line("a", "y")])])
    table = Table("t", [Column("mse", "MSE", "error")], [{"mse": 0.1}])
    study = Study("s", "A study", "nashcast reproduce s", tables=[table], figures=[figure], arrays={"y": np.ones(9)})
    return write(tmp_path / "record", study)


def run(*words):
    parser = argparse.ArgumentParser()
    report.add_to(parser.add_subparsers())
    chosen = parser.parse_args(["report", *map(str, words)])
    chosen.run(chosen)


def files(folder):
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


RECORD = {"record.json", "arrays.npz"}
ALL = {"report.html", "report.md", "figures/errors.png", "figures/errors.pdf"}


def test_everything_is_written_beside_the_record_and_listed_with_sizes(record, capsys):
    run(record)
    assert files(record) == RECORD | ALL
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("  ")[0] for line in lines] == [
        str(record / name) for name in ("report.html", "figures/errors.png", "figures/errors.pdf", "report.md")
    ]
    assert lines[0].endswith(" MB")
    assert "figures/errors.png" in (record / "report.md").read_text()
    before = (record / "report.md").read_bytes()
    run(record)
    assert (record / "report.md").read_bytes() == before


def test_elsewhere_in_chosen_formats_as_json(record, tmp_path, capsys):
    run(record, "--output", tmp_path / "new" / "place", "--format", "md,pdf", "--json")
    assert files(tmp_path / "new" / "place") == {"report.md", "figures/errors.pdf"}
    assert files(record) == RECORD
    listed = json.loads(capsys.readouterr().out)["files"]
    assert [entry["path"].rsplit("/", 1)[1] for entry in listed] == ["errors.pdf", "report.md"]
    for entry in listed:
        assert entry["bytes"] > 100
    assert "![" not in (tmp_path / "new" / "place" / "report.md").read_text()


def test_open_hands_the_page_to_the_browser(record, monkeypatch):
    opened = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    run(record, "--format", "html", "--open")
    assert opened == [(record / "report.html").as_uri()]
    with pytest.raises(InvalidInput, match=r"--open: got --format md\. Add html"):
        run(record, "--format", "md", "--open")


@pytest.mark.parametrize("text", ["svg", "html,svg", "", ","])
def test_unknown_formats_are_misuse(record, capsys, text):
    with pytest.raises(SystemExit) as caught:
        run(record, "--format", text)
    assert caught.value.code == 2
    assert "pass some of html,png,pdf,md" in capsys.readouterr().err


def test_what_is_no_record_or_damaged_is_said_to_be(record, tmp_path):
    with pytest.raises(InvalidInput, match=r"without record\.json\. Pass a folder that a nashcast command wrote"):
        run(tmp_path)
    with pytest.raises(InvalidInput, match=r"nowhere, without record\.json"):
        run(tmp_path / "nowhere")
    (record / "arrays.npz").write_bytes(b"PK broken")
    with pytest.raises(InvalidInput, match=r"cannot be read .* It is damaged"):
        run(record)
    assert files(record) == RECORD
    run_record = write_record(tmp_path / "run", "run", {"name": "r"}, {"start": np.zeros(1)})
    with pytest.raises(InvalidInput, match=r"a run without targets\. It is damaged"):
        run(run_record)
    assert files(run_record) == RECORD


def test_where_nothing_can_be_written_nothing_is_left(record, tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(NashcastError, match=r"cannot write .*report\.html: .*\. Pass --output with a folder"):
        run(record, "--output", tmp_path / "file")
    (tmp_path / "out" / "report.html").mkdir(parents=True)
    with pytest.raises(NashcastError, match=r"cannot write .*report\.html: Is a directory"):
        run(record, "--output", tmp_path / "out")
    assert files(tmp_path / "out") == set()


@pytest.mark.parametrize(("package", "what"), [("matplotlib", "figures"), ("plotly.offline", "page")])
def test_a_missing_package_leaves_no_half_of_a_report(record, monkeypatch, package, what):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(InvalidInput, match=rf"{what}: got no package .* pip install 'nashcast\[report\]'"):
        run(record)
    assert files(record) == RECORD
