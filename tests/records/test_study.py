"""A study survives the disk, and one that a report could not render is refused with the place and the remedy."""

import json

import numpy as np
import pytest

from nashcast import InvalidInput
from nashcast.records.folder import write_record
from nashcast.records.study import Column, Figure, Line, Panel, Study, Table, plain, read, write

TABLE = Table(
    "Errors", [Column("who", "who"), Column("mse", "MSE", "error")], [{"who": "a", "mse": 1e-3}, {"mse": None}]
)
ARRAYS = {"step": np.arange(4.0), "error": np.array([1.0, 0.5, np.inf, np.nan])}


def figure(line=None, **change):
    line = line or Line("federation", "error", "step", "line+points")
    return Figure(
        **{"name": "errors", "title": "t", "caption": "c", "panels": [Panel("p", "x", "y", [line])], **change}
    )


def study(**change):
    given = {
        "name": "s",
        "title": "A study",
        "command": "nashcast reproduce s",
        "seeds": [1, 2],
        "settings": {"game": {"every": 1}},
        "seconds": 1.5,
        "notes": ["n"],
        "tables": [TABLE],
        "figures": [figure()],
        "arrays": ARRAYS,
    }
    return Study(**{**given, **change})


def test_a_study_comes_back_as_it_was(tmp_path):
    written = study(tables=[Table("t", [Column("m", "m", "mark")], [{"m": "*"}], {"*": "best"}), TABLE])
    back = read(write(tmp_path / "a", written))
    for name in ("name", "title", "command", "seeds", "settings", "seconds", "notes", "tables", "figures"):
        assert getattr(back, name) == getattr(written, name), name
    np.testing.assert_array_equal(back.arrays["error"], ARRAYS["error"])
    assert back.created.startswith("20")
    assert back.versions["nashcast"]


def test_numpy_numbers_and_tuples_are_written_as_json_knows_them(tmp_path):
    rows = [{"who": np.str_("a"), "mse": np.float64(0.25)}]
    settings = {"grid": (np.int64(1), 2), "ridge": np.array([0.5, 1.0]), 3: None, "on": np.True_}
    back = read(write(tmp_path, study(tables=[Table("t", TABLE.columns, rows)], settings=settings, seeds=range(2))))
    assert back.tables[0].rows == [{"who": "a", "mse": 0.25}]
    assert back.settings == {"grid": [1, 2], "ridge": [0.5, 1.0], "3": None, "on": True}
    assert back.seeds == [0, 1]
    assert plain({"a": {1}, "b": complex(0, 1)}) == {"a": [1], "b": "1j"}


BAD = [
    ({"figures": [figure(Line("f", "lost"))]}, "no array 'lost'", "error, step"),
    ({"figures": [figure(Line("f", "error", "lost"))]}, "no array 'lost'", "error, step"),
    ({"figures": [figure(Line("f", "error", style="dots"))]}, "style 'dots'", "points"),
    ({"figures": [figure(name="../out")]}, "the name '../out'", "letters"),
    ({"figures": [figure(name=".hidden")]}, "the name '.hidden'", "letters"),
    ({"figures": [figure(), figure()]}, "the same name twice", "differently"),
    ({"figures": [figure(columns=0)]}, "columns: got 0", "≥ 1"),
    ({"figures": [figure(panels=[])]}, "no panels", "at least one"),
    ({"arrays": {**ARRAYS, "error": np.ones((2, 2))}}, "shape (2, 2)", "(points,)"),
    ({"arrays": {**ARRAYS, "error": np.array(["a", "b"])}}, "type <U1", "real numbers"),
    ({"arrays": {**ARRAYS, "error": np.ones(3)}}, "'error' of shape (3,) over 'step' of shape (4,)", "as many x as y"),
    ({"tables": [Table("t", [Column("a", "a", "percent")], [])]}, "kind 'percent'", "ratio"),
    ({"tables": [Table("t", [Column("a", "a"), Column("a", "b")], [])]}, "keys ['a', 'a']", "its own key"),
    ({"tables": [Table("t", [], [])]}, "keys []", "at least one column"),
]


@pytest.mark.parametrize(("change", "got", "remedy"), BAD)
def test_what_a_report_could_not_render_is_refused_before_it_is_written(tmp_path, change, got, remedy):
    with pytest.raises(InvalidInput) as caught:
        write(tmp_path / "s", study(**change))
    assert got in str(caught.value)
    assert remedy in str(caught.value)
    assert not (tmp_path / "s").exists()


def test_a_record_edited_by_hand_is_checked_again(tmp_path):
    write(tmp_path, study())
    path = tmp_path / "record.json"
    about = json.loads(path.read_text())
    about["figures"][0]["panels"][0]["lines"][0]["y"] = "lost"
    path.write_text(json.dumps(about))
    with pytest.raises(InvalidInput, match="no array 'lost'"):
        read(tmp_path)
    del about["tables"][0]["rows"]
    path.write_text(json.dumps(about))
    with pytest.raises(InvalidInput, match=r"record: got tables or figures that cannot be read \(KeyError: 'rows'\)"):
        read(tmp_path)


def test_another_kind_of_record_is_no_study(tmp_path):
    write_record(tmp_path, "run", {"name": "r"}, {})
    with pytest.raises(InvalidInput, match=r"of kind 'run'\. Pass a record of kind 'study'"):
        read(tmp_path)


def test_keys_of_a_later_version_are_left_aside(tmp_path):
    write(tmp_path, study())
    path = tmp_path / "record.json"
    about = json.loads(path.read_text())
    about["figures"][0]["panels"][0]["colour"] = "blue"
    about["tables"][0]["columns"][0]["width"] = 3
    path.write_text(json.dumps(about))
    assert read(tmp_path).figures == [figure()]
