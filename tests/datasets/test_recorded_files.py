"""Recorded files: where they are looked for, what is believed of them, and how a copy is added."""

import hashlib
import shutil

import pytest

import nashcast as nc
from nashcast.datasets import add, air_quality, bank_of_canada, ett, fetch
from nashcast.datasets.files.known_files import BANK_OF_CANADA, ETT, KNOWN, KnownFile, known_file
from nashcast.datasets.files.library import checksum, data_folder, locate, read_known

CONTENT = "date,a,b\n2024-01-01,1,2\n2024-01-02,3,4\n2024-01-03,5,6\n"
TOY = KnownFile(
    "toy", "toy.csv", "", hashlib.sha256(CONTENT.encode()).hexdigest(), len(CONTENT), "date", ("a", "b"), "", ""
)


@pytest.fixture
def toy(tmp_path):
    (tmp_path / "toy.csv").write_text(CONTENT)
    return tmp_path / "toy.csv"


def refused(call):
    with pytest.raises(nc.InvalidInput) as caught:
        call()
    return str(caught.value)


def test_the_data_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path / "me"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "shared"))
    assert data_folder() == tmp_path / "shared" / "nashcast"
    for unusable in ("", "relative/folder"):
        monkeypatch.setenv("XDG_DATA_HOME", unusable)
        assert data_folder() == tmp_path / "me" / ".local" / "share" / "nashcast"
    monkeypatch.setenv("NASHCAST_DATA", "~/data")
    assert data_folder() == tmp_path / "me" / "data"
    assert data_folder(tmp_path / "given") == tmp_path / "given"
    monkeypatch.setenv("NASHCAST_DATA", "")
    assert data_folder() == tmp_path / "me" / ".local" / "share" / "nashcast"


def test_a_user_without_a_home(monkeypatch):
    monkeypatch.delenv("XDG_DATA_HOME")
    monkeypatch.setattr("pathlib.Path.home", lambda: (_ for _ in ()).throw(RuntimeError))
    words = "NASHCAST_DATA: got nothing, and this user has no home folder. Set NASHCAST_DATA to a folder"
    assert refused(data_folder).startswith(words)


def test_a_file_is_found_by_path_by_folder_and_in_the_data_folder(toy, monkeypatch):
    assert locate(TOY, toy) == locate(TOY, toy.parent) == locate(TOY, str(toy)) == toy
    monkeypatch.setenv("NASHCAST_DATA", str(toy.parent))
    assert locate(TOY) == toy


def test_a_missing_file_says_how_to_get_it(tmp_path):
    where = tmp_path / "home" / "nashcast" / "ETTh1.csv"
    assert refused(ett) == (
        f"ett: got no file {where}. Fetch it: nashcast data fetch ett. Or add a copy: nashcast data add ETTh1.csv. "
        "Or set NASHCAST_DATA to the folder it is in."
    )
    message = refused(lambda: bank_of_canada(path=tmp_path / "nowhere.csv"))
    assert message.startswith(f"boc: got no file {tmp_path / 'nowhere.csv'}. Fetch it: nashcast data fetch boc.")
    assert f"no file {tmp_path / 'ETTh1.csv'}" in refused(lambda: ett(path=tmp_path))


def test_a_right_file_is_read(toy):
    sheet = read_known(TOY, toy)
    assert sheet.numbers.tolist() == [[1, 2], [3, 4], [5, 6]]
    assert sheet.dates == ["2024-01-01", "2024-01-02", "2024-01-03"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda text: text[:30], f"truncated (30 of {len(CONTENT)} bytes)"),
        (lambda text: text.replace("5", "7"), "altered"),
        (lambda text: text + "2024-01-04,7,8\n", "altered"),
    ],
)
def test_a_wrong_checksum_is_refused(change, words, toy):
    content = change(CONTENT)
    toy.write_text(content)
    assert refused(lambda: read_known(TOY, toy)) == (
        f"{toy}: got a file that is {words}: sha256 {hashlib.sha256(content.encode()).hexdigest()}, not {TOY.sha256}. "
        "Fetch it again: nashcast data fetch toy. "
        f"If you want this version: nashcast data add --any-version --as toy {toy}."
    )


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (CONTENT.replace("a,b", "a,c"), "no column 'b'. The columns are 'date', 'a', 'c'."),
        (CONTENT.replace("date", "day"), "no column 'date'. The columns are 'day', 'a', 'b'."),
        (CONTENT.replace("2024-01-03", "2024-01-02"), "line 4, column 'date': got '2024-01-02' again"),
        (CONTENT.replace("2024-01-03", "2023-01-02"), "line 4, column 'date': got '2023-01-02' after '2024-01-02'"),
        (CONTENT.replace("2024-01-03", "soon"), "line 4, column 'date': got 'soon'"),
        (CONTENT.replace("5", ""), "line 4, column 'a': got an empty cell. In all 1 cell is empty: fill them."),
        (CONTENT.replace("5", "x"), "line 4, column 'a': got 'x'"),
        (CONTENT[:-2], "line 4, column 'b': got an empty cell"),
        (CONTENT[:-3], "line 4: got 2 cells. The first line names 3 columns."),
    ],
)
def test_any_version_must_still_have_valid_columns_and_dates(content, words, toy, tmp_path):
    toy.write_text(content)
    for call in (
        lambda: read_known(TOY, toy, any_version=True),
        lambda: add(toy, TOY, tmp_path / "data", any_version=True),
    ):
        assert words in refused(call)
    assert not (tmp_path / "data").exists()


def test_a_copy_is_added_whole(toy, tmp_path):
    known, path = add(toy, TOY, tmp_path / "new" / "data")
    assert (known, path) == (TOY, tmp_path / "new" / "data" / "toy.csv")
    assert path.read_text() == CONTENT
    assert [each.name for each in path.parent.iterdir()] == ["toy.csv"]
    assert add(path, TOY, path.parent) == (known, path)  # onto itself
    assert path.read_text() == CONTENT


def test_an_altered_copy_is_refused_unless_any_version_will_do(toy, tmp_path, monkeypatch):
    monkeypatch.setenv("NASHCAST_DATA", str(tmp_path / "data"))
    toy.write_text(CONTENT + "2024-01-04,7,8\n")
    found = checksum(toy)
    assert refused(lambda: add(toy, TOY)) == (
        f"{toy}: got a file that is altered: sha256 {found}, not {TOY.sha256}. "
        "Pass --any-version to accept a file whose columns and dates are valid."
    )
    assert not (tmp_path / "data").exists()
    _, path = add(toy, TOY, any_version=True)
    assert len(read_known(TOY).numbers) == 4  # accepted once, it is read without asking again
    path.write_text(CONTENT + "2024-01-04,7,9\n")
    assert "altered" in refused(lambda: read_known(TOY))  # but only as it was accepted
    toy.write_text(CONTENT)
    add(toy, TOY)
    assert sorted(each.name for each in (tmp_path / "data").iterdir()) == ["toy.csv"]
    assert len(read_known(TOY).numbers) == 3


def test_adding_what_is_not_there_or_not_known(toy, tmp_path):
    words = f"file: got {tmp_path / 'no.csv'}, which is no file. Pass the path of a file."
    assert refused(lambda: add(tmp_path / "no.csv")) == words
    assert refused(lambda: add(tmp_path)).startswith(f"file: got {tmp_path}, which is no file.")
    assert refused(lambda: add(toy)) == (
        f"file: got {toy}, which is none of the recorded files. "
        "Say which it is: --as boc or --as ett or --as air-quality. "
        f"A file of your own needs no adding: nashcast data show file --set path={toy}."
    )
    with pytest.raises(nc.NashcastError, match=r"cannot write .*toy\.csv/toy\.csv: File exists"):
        add(toy, TOY, toy)


def test_names_of_files():
    assert known_file("ett") is known_file("ett-validation") is known_file("ETTh1.csv") is ETT
    assert known_file("boc") is BANK_OF_CANADA
    assert refused(lambda: fetch("etth1.csv")) == (
        "name: got 'etth1.csv'. Did you mean 'ETTh1.csv'? "
        "The recorded files are boc (bank_of_canada_exchange_rates.csv), ett (ETTh1.csv), "
        "air-quality (AirQualityUCI.csv)."
    )


def test_the_recorded_files_are_the_published_ones(recorded):
    for known in KNOWN:
        assert checksum(recorded / known.file) == known.sha256
        assert (recorded / known.file).stat().st_size == known.size
        assert (known.url or known.page).startswith("https://")
        assert not known.url or known.url.endswith(known.file)


def test_a_file_without_an_address_says_where_it_is_to_be_had(tmp_path):
    where = "Download it from https://archive.ics.uci.edu/dataset/360/air+quality"
    assert refused(lambda: fetch("air-quality")) == (
        f"name: got 'air-quality', a file without an address of its own. {where}, then add it: nashcast data add "
        "AirQualityUCI.csv. Or pass the --url of a copy."
    )
    assert refused(lambda: air_quality(path=tmp_path)).startswith(
        f"air-quality: got no file {tmp_path / 'AirQualityUCI.csv'}. {where}. Or add a copy:"
    )


def test_a_recorded_file_is_known_by_its_contents(recorded, tmp_path, monkeypatch):
    monkeypatch.setenv("NASHCAST_DATA", str(tmp_path / "data"))
    shutil.copyfile(recorded / "bank_of_canada_exchange_rates.csv", tmp_path / "download (1)")
    known, path = add(tmp_path / "download (1)")
    assert known is BANK_OF_CANADA
    assert path == tmp_path / "data" / "bank_of_canada_exchange_rates.csv"
    assert bank_of_canada(10).targets.shape == (10, 1)
    assert fetch("boc") == path  # it is here: nothing is downloaded


def test_a_truncated_recorded_file_is_refused(recorded, tmp_path):
    content = (recorded / "ETTh1.csv").read_bytes()
    (tmp_path / "ETTh1.csv").write_bytes(content[:1_000_000])
    assert "truncated (1,000,000 of 2,589,657 bytes)" in refused(lambda: ett(path=tmp_path))
    assert "truncated (1,000,000 of 2,589,657 bytes)" in refused(lambda: add(tmp_path / "ETTh1.csv"))
