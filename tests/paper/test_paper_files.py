"""The paper's settings and printed numbers as files, against the paper itself."""

import re
from pathlib import Path

import pytest

from nashcast.paper.settings import expected, rows

PAPER = Path(__file__).parents[2].parent / "shared" / "paper" / "paper.tex"
NAMES = {"Periodic": "periodic", "Logistic": "logistic", "Concept": "concept", "BoC": "boc", "ETT": "ett"}


@pytest.fixture(scope="module")
def paper():
    if not PAPER.is_file():
        pytest.skip("the paper is not here: no paper.tex in a folder shared/paper beside the checkout")
    return PAPER.read_text()


def table_after(paper, label):
    begin = paper.index(f"label{{tab:{label}}}")
    return paper[begin : paper.index("end{tabular}", begin)]


@pytest.mark.parametrize("model", ["transformer", "rfn", "esn"])
def test_grids_and_bold_values(paper, model):
    """Read off the table's lines one number at a time, in order, without its braces and commands."""
    lines = [
        line for line in table_after(paper, f"{model}_hyperparams").splitlines() if "True" in line or "False" in line
    ]
    assert len(lines) == 20
    for line, row in zip(lines, rows(model), strict=True):
        assert row.game == ("True" in line)
        named = re.search(r"\{\*\}\{(\w+)\}", line)
        assert named is None or NAMES[named[1]] == row.dataset
        cells = line.split("&")[2:]
        for cell, (name, values) in zip(cells, row.grid.items(), strict=False):
            assert [float(number) for number in re.findall(r"\d+\.?\d*", cell)] == values, (row, name)
            bold = [float(number) for number in re.findall(r"mathbf\{(\d+\.?\d*)\}", cell)]
            if len(values) > 1 and bold:
                assert bold == [row.bold[name], *row.also_bold.get(name, [])]
            elif len(values) > 1:
                assert name in row.unmarked


def printed_numbers(text):
    found = re.findall(r"([\d.]+)\s*\\mathrm\{e\}\{?\\text\{([+-])\}\}?(\d+)", text)
    return [float(f"{digits}e{sign}{power}") for digits, sign, power in found]


@pytest.mark.parametrize(("label", "name"), [("summary_results", "table1"), ("validation_studies", "validation")])
def test_tables_of_errors(paper, label, name):
    ours = [line[key] for line in expected()[name] for key in ("game", "no_game")]
    assert printed_numbers(table_after(paper, label)) == ours
    assert len(ours) == {"table1": 60, "validation": 16}[name]


def test_table_of_run_times(paper):
    before = paper[: paper.index("label{tab:runtime}")]
    table = before[before.rindex("begin{tabular}") :]
    ours = [line[key] for line in expected()["runtime"] for key in ("game", "game_step", "no_game", "no_game_step")]
    assert printed_numbers(table) == ours


def test_numbers_in_the_text(paper):
    looked = r"\{2, 3, 4, 5, 6, 7, 8, 9, 10, 15, 25\}"
    assert looked in paper
    assert expected()["lookback"]["values"] == [int(n) for n in re.findall(r"\d+", looked)]
    tuned = expected()["frequency"]["tuned"]
    assert tuned["game"] in printed_numbers(paper)
    assert str(tuned["seconds"]) in paper
    assert str(int(expected()["relu_growth"]["largest"])) in paper
    assert str(int(expected()["relu_growth"]["mean_largest"])) in paper
