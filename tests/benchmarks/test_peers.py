"""benchmarks/peers.py: records and pages of a small run, and what the quick run leaves alone."""

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest

from nashcast.datasets.recorded.fresh_series import FRESH
from nashcast.evaluation.methods import all_methods, chosen_methods
from nashcast.evaluation.statistics.comparison import comparison


@pytest.fixture(scope="module")
def script():
    path = Path(__file__).parents[2] / "benchmarks" / "peers.py"
    spec = importlib.util.spec_from_file_location("benchmarks_peers", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def record_of(name, seed=0):
    """A record with errors made by hand."""
    rng, rows = np.random.default_rng(seed), []
    families = {"federation": "ours", "federation without its game": "ours", "persistence": "baselines"}
    families |= {"K": "river", "E": "statsforecast", "N": "sktime"}
    steps = {f"{name}-{i}": 900 for i in range(6)}
    for stream in steps:
        for method, family in families.items():
            row = {"stream": stream, "method": method, "family": family, "mse_after_warmup": float(rng.random())}
            rows.append(row | {"mse": 1.0, "dm_p": None, "us_per_step": 5.0, "choices": "", "why": ""})
    about = {"set": name, "version": "1", "created": "2026-01-01", "seeds": [1], "seconds": 1.0, "steps": steps}
    return about | {"not_run": {}, "left_out": ["ARIMA"], "comparison": comparison(rows, steps), "rows": rows}


def test_the_summary_has_at_most_ten_lines_and_names_the_hardest_peers(script):
    records = {name: record_of(name, seed) for seed, name in enumerate(script.WORDS)}
    lines = script.summary(records).splitlines()
    assert len(lines) <= 10
    assert len({line.count(" | ") for line in lines}) == 1
    for column, record in enumerate(records.values(), start=1):
        worst = record["comparison"]["worst_to_best_peer"]
        assert f"{worst['ratio']:.2f} ({worst['stream']}, {worst['peer']})" in lines[-1].split(" | ")[column]
        river = next(line for line in record["comparison"]["peers"] if line["method"] == "K")
        row = next(line for line in lines if line.startswith("| river"))
        assert row.split(" | ")[column].startswith(
            f"{river['ratio']:.3f} ({river['low']:.3f} to {river['high']:.3f}), K"
        )


def test_pages_come_from_the_records_that_are_there(script, tmp_path):
    place = script.Place(tmp_path / "records", tmp_path / "pages", tmp_path / "results")
    place.records.mkdir()
    (place.records / script.RECORDS["declared"]).write_text(json.dumps(record_of("declared")))
    assert {path.name for path in script.write_pages(place)} == {"evaluation-summary.md", "peers.md"}
    (place.records / script.RECORDS["fresh"]).write_text(json.dumps(record_of("fresh")))
    assert {path.name for path in script.write_pages(place)} == {
        "evaluation-summary.md",
        "peers.md",
        "fresh-streams.md",
    }
    page = (place.pages / "fresh-streams.md").read_text()
    assert page.index("## The rule") < page.index("## The streams") < page.index("## Results")
    assert page.count("## Results") == 1
    assert "With its game the error is smaller on" in page
    assert "Peers that were not part of this run: ARIMA." in page


def test_the_quick_run_leaves_fresh_streams_alone(script):
    chosen = script.arguments(["--quick"])
    assert chosen.sets == ["declared", "held-out"]
    for name, wanted in script.QUICK_STREAMS.items():
        assert sorted(each.label for each in script.streams_of(name, True)) == sorted(wanted)
    with pytest.raises(SystemExit):
        script.arguments(["--quick", "--sets", "fresh"])
    families = {method.family for method in chosen_methods(script.QUICK_METHODS, all_methods()).values()}
    assert families == {"ours", *script.FAMILY_WORDS}  # the same shape
    assert script.FAMILY_WORDS.keys() == set(script.PEERS)


def test_what_is_infinite_is_kept_as_a_failure(script):
    row = record_of("a")["rows"][0] | {"mse_after_warmup": np.inf}
    assert script.plain(row)["mse_after_warmup"] is None
    assert script.plain(row)["why"] == "diverges"
    json.dumps(script.plain(row), allow_nan=False)


@pytest.mark.slow
def test_a_small_run(script, monkeypatch, tmp_path):
    monkeypatch.setattr(script, "QUICK_STREAMS", {"declared": ("logistic", "periodic"), "held-out": ()})
    monkeypatch.setattr(script, "QUICK_METHODS", ("RLS lags",))
    place = script.Place(tmp_path / "records", tmp_path / "pages", tmp_path / "results")
    monkeypatch.setattr(script, "QUICK", place)
    script.main(["--quick", "--sets", "declared", "--jobs", "1"])
    record = json.loads((place.records / "peers-declared.json").read_text())
    assert {row["method"] for row in record["rows"]} == {"federation", "persistence", "RLS lags"}
    assert record["comparison"]["streams"] == 2
    assert "RLS lags" in (place.pages / "peers.md").read_text()


def test_the_pages_in_docs_are_those_of_the_records(script, tmp_path):
    for path in script.write_pages(script.KEPT._replace(pages=tmp_path)):
        assert path.read_text() == (script.KEPT.pages / path.name).read_text(), path.name


def test_every_fresh_stream_is_on_its_page(script):
    page = (script.KEPT.pages / "fresh-streams.md").read_text()
    for name, each in FRESH.items():
        row = f"| `{name}` | {each.summary} | {each.steps:,} | {each.source} | {each.package} {each.version} |"
        assert row in page
