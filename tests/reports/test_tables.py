"""Values read the same in the terminal and in Markdown; tables fit, stay aligned, and stay tables."""

import pytest

from nashcast.records.study import Column, Table
from nashcast.reports.formats import cell, flat, legend, size
from nashcast.reports.markdown import markdown_page, markdown_table
from nashcast.reports.terminal import text_table
from support.studies import EVIL, TABLE, example, hostile

INF, NAN = float("inf"), float("nan")
CELLS = [
    (4.49e-5, "error", "4.49e-5"),
    (0.123456, "error", "1.23e-1"),
    (1.0, "error", "1.00e0"),
    (999_999, "error", "1.00e6"),
    (1e6, "error", "diverges"),
    (INF, "error", "diverges"),
    (NAN, "error", "diverges"),
    (0.0, "error", "0"),
    (None, "error", "–"),
    (9.996e-4, "error", "1.00e-3"),
    (3e-120, "error", "3.00e-120"),
    (0.98, "ratio", "0.980"),
    (-0.0213, "ratio", "-0.0213"),
    (172.4, "ratio", "172"),
    (12345.6, "ratio", "12,346"),
    (1e7, "ratio", "diverges"),
    (-1e7, "ratio", "diverges"),
    (NAN, "ratio", "–"),
    (0, "ratio", "0.00"),
    (999.6, "ratio", "1,000"),
    (5, "int", "5"),
    (2024, "int", "2024"),
    (43_200, "int", "43,200"),
    (3.0, "int", "3"),
    (NAN, "int", "–"),
    (4.2e-5, "seconds", "42 µs"),
    (1.25, "seconds", "1.25 s"),
    (754, "seconds", "12 min 34 s"),
    (0, "seconds", "0 s"),
    (7322, "seconds", "2 h 2 min"),
    (3599.9, "seconds", "60 min 0 s"),
    ("✓", "mark", "✓"),
    ("", "mark", ""),
    (True, "text", "yes"),
    ("two\nlines\x1b[2J", "text", "two lines [2J"),
    ("not run", "error", "not run"),
]


@pytest.mark.parametrize(("value", "kind", "text"), CELLS)
def test_a_value_reads_as_its_kind_says(value, kind, text):
    assert cell(value, kind) == text


def test_terminal_columns_are_aligned_numbers_to_the_right():
    lines = text_table(TABLE).splitlines()
    assert lines[0] == "Errors of five agents"
    end = lines[1].index("MSE") + 3
    for line, shown in zip(lines[3:7], ("4.49e-5", "diverges", "4.58e-5", "7.90e-3"), strict=True):
        assert line[:end].endswith(" " + shown)
    assert [line.split("  ")[0] for line in lines[3:7]] == [row["method"] for row in TABLE.rows]
    assert lines[-1] == "✓: better than persistence; –: no value; diverges: not finite, or a million and more"


def test_terminal_tables_fit_120_letters_when_they_can():
    words = "a description of a setting that goes on for quite a while "
    columns = [
        Column("a", "first"),
        Column("b", "second"),
        *(Column(f"n{i}", f"a long heading {i}", "error") for i in range(6)),
    ]
    rows = [{"a": words * 2, "b": words, **{f"n{i}": 10.0**-i for i in range(6)}}, {"a": "short"}]
    text = text_table(Table("t", columns, rows))
    assert max(map(len, text.splitlines())) <= 120
    for number in ("1.00e0", "1.00e-5"):
        assert number in text
    assert " ".join(text.split()).count("quite") == 3
    rows = [{"a": 1} | {f"n{i}": 1.0 for i in range(40)}]
    impossible = Table("t", [Column(f"n{i}", f"heading{i}", "error") for i in range(40)], rows)
    assert text_table(impossible).count("1.00e0") == 40


def test_tables_are_accepted_as_records_hold_them():
    about = {"title": "t", "columns": [{"key": "a", "label": "A", "kind": "int"}], "rows": [{"a": 3}]}
    assert text_table(about).splitlines() == ["t", "A", "─", "3"]
    assert markdown_table(about).splitlines() == ["| A |", "| ---: |", "| 3 |"]


def test_an_empty_table_still_has_its_head():
    table = Table("t", [Column("a", "A"), Column("b", "B", "error")], [])
    assert text_table(table).splitlines() == ["t", "A  B", "─  ─"]
    assert len(markdown_table(table).splitlines()) == 2


def test_only_marks_that_occur_are_explained():
    assert list(legend(TABLE)) == ["✓", "–", "diverges"]
    assert legend(Table("t", [Column("a", "a", "error")], [{"a": 1.0}])) == {}


def test_a_markdown_table_has_as_many_cells_in_every_row_whatever_they_hold():
    table = Table("t", [Column("a", "a|b"), Column("b", "b")], [{"a": "x|y\n| z |", "b": "`c` *d* <b>"}])
    lines = markdown_table(table).splitlines()[:3]
    for line in lines:
        assert line.replace(r"\|", "").count("|") == 3
    assert r"\`c\` \*d\* &lt;b&gt;" in lines[2]


def test_the_markdown_page_has_every_part():
    page = markdown_page(example(), "figures")
    parts = (
        "# Five agents on one stream",
        "- The game wins.",
        "## Errors of five agents",
        "| with game | 5 | 4.49e-5 | 0.980 | 1.25 s | ✓ |",
        "![Forecasts](figures/forecasts.png)",
        "What came.",
        "```\nnashcast reproduce example --seeds 1,2\n```",
        "- Seeds: 1, 2",
        "- Made: 2025-11-15 20:14 UTC",
        "- Took: 12.5 s",
        "nashcast 0.1, numpy 2.4",
        "| game.lookback | 3 |",
    )
    places = [page.index(part) for part in parts]
    assert places == sorted(places)
    assert "![" not in markdown_page(example(), None)


def test_markdown_lets_no_markup_through():
    page = markdown_page(hostile(), "figures").replace(f"```\n{EVIL}\n```", "")
    assert "<" not in page
    assert "````\na ``` b\n````" in markdown_page(example(command="a ``` b"), None)


def test_settings_are_flattened_and_sizes_readable():
    settings = {
        "a": {"b": {"c": 1}, "d": [1, None]},
        "e": {},
        "f": 0.1 + 0.2,
        "g": False,
        "h": [{"i": 1, "j": {"k": 2}}],
    }
    assert flat(settings) == [
        ("a.b.c", "1"), ("a.d", "1, –"), ("e", "{}"), ("f", "0.3"), ("g", "no"), ("h[0]", "i 1, j.k 2"),
    ]  # fmt: skip
    assert [size(n) for n in (12, 4_321, 4_910_000)] == ["12 bytes", "4.32 kB", "4.91 MB"]
