"""The package as a stranger meets it: its public names, its seeds, its command, its README."""

import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import nashcast
from nashcast import seeds
from nashcast.cli.main import main
from support.extras import skip_if
from support.page_examples import printed

ROOT = Path(__file__).parents[1]

PUBLIC = [
    "Agent",
    "Certificate",
    "Client",
    "Equilibrium",
    "Federation",
    "Intervals",
    "InvalidInput",
    "JointGame",
    "LookbackGame",
    "NashcastError",
    "Replay",
    "SingularGame",
    "Window",
    "aggregation_rule",
    "certify",
    "default_agents",
    "default_federation",
    "encoders",
    "mixture_weights",
    "paper_federation",
    "respond",
    "rich_agent",
    "solve_game",
]


def test_the_public_names_are_these_and_documented():
    assert nashcast.__all__ == PUBLIC
    for name in PUBLIC:
        assert getattr(nashcast, name).__doc__
    reference = "".join(page.read_text() for page in (ROOT / "docs" / "reference").glob("*.md"))
    for name in [*PUBLIC, *nashcast.encoders.__all__]:
        assert f"`{name}" in reference, f"{name} is missing from docs/reference"


def test_no_folder_has_more_than_a_dozen_modules():
    folders = [path.parent for path in (ROOT / "src").rglob("*.py")]
    counts = {
        folder: sum(path.suffix == ".py" and path.stem != "__init__" for path in folder.iterdir())
        for folder in set(folders)
    }
    assert {str(folder.relative_to(ROOT)): count for folder, count in counts.items() if count > 12} == {}


def test_seeds_depend_on_the_name_and_nothing_else():
    first = seeds.generator(2024, "encoder", 3).standard_normal(4)
    seeds.generator(2024, "encoder", 4).standard_normal(100)
    np.testing.assert_array_equal(seeds.generator(2024, "encoder", 3).standard_normal(4), first)
    others = [("encoder", 4), ("encoder", "3"), ("encoder",), ("encode", "r", 3), ()]
    for name in others:
        assert not np.array_equal(seeds.generator(2024, *name).standard_normal(4), first)
    assert not np.array_equal(seeds.generator(2025, "encoder", 3).standard_normal(4), first)


@pytest.mark.parametrize("arguments", [(-1,), (1.5,), (True,), (1, -2), (1, None), (1, 0.5)])
def test_bad_seeds_are_refused(arguments):
    with pytest.raises(nashcast.InvalidInput, match="got"):
        seeds.generator(*arguments)


def test_the_demo_prints_both_streams_the_days_ahead_and_whom_to_trust(capsys):
    assert main(["demo", "--steps", "120", "--horizon", "3"]) == 0
    page = capsys.readouterr().out
    for words in (
        "four owners (simulated), 120 steps", "owner 4 alone", "ECB USD of the day, 120 steps", "AUD alone",
        "mixture, no game", "federation, together", "all inputs pooled", "80 % bounds", "Whom to trust", "joint game",
    ):  # fmt: skip
        assert words in page


def test_the_demo_as_json_ends_better_than_persistence_and_every_owner(capsys):
    assert main(["demo", "--json", "--steps", "250", "--horizon", "2"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [stream["stream"] for stream in found["streams"]] == ["four owners (simulated)", "ECB USD of the day"]
    for stream in found["streams"]:
        errors, owners = stream["errors"], stream["owners"]
        assert len(errors) == len(owners) + 4
        together = errors["federation, together"]
        assert together < errors["persistence"]
        assert all(together < errors[f"{name} alone"] for name in owners)
        assert together < errors["mixture, no game"]
        assert [each["name"] for each in stream["trust"]] == ["baselines", *owners, "joint game"]
    ahead = found["ahead"]
    assert len(ahead["forecast"]) == 2
    assert all(
        low < middle < high for low, middle, high in zip(ahead["low"], ahead["forecast"], ahead["high"], strict=True)
    )
    assert 0.8 < ahead["last"] < 1.6  # dollars for a euro


@pytest.mark.slow
def test_the_replay_benchmark_prints_the_promised_rows(capsys):
    assert main(["bench", "replay", "--json", "--sweep", "2"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert len(rows) == 4
    assert all(row.keys() == {"case", "steps", "runs", "seconds", "us_per_step"} for row in rows)
    assert all(row["seconds"] > 0 for row in rows)


@pytest.mark.slow
def test_the_benchmark_prints_the_promised_rows(capsys):
    assert main(["bench", "game", "--json", "--largest", "10000", "--seconds", "0.01"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    promised = {"agents", "lookback", "features", "y_dim", "noisy"}
    promised |= {"seconds_per_game", "dense_seconds", "floor_ratio", "peak_mb"}
    assert all(promised <= row.keys() for row in rows)
    sizes = {(row["agents"], row["lookback"], row["features"]) for row in rows}
    assert {(n, t, d) for n in (2, 5) for t in range(1, 6) for d in (1, 3, 6, 12)} < sizes
    assert {1000, 10_000} < {row["agents"] for row in rows}
    small = [row for row in rows if row["agents"] <= 20]
    assert all(row["dense_seconds"] > row["seconds_per_game"] > 0 for row in small)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["fly"], "unknown command 'fly'"),
        (["bench"], "WHAT"),
        (["bench", "game", "--largest", "10"], "pass at least 10000"),
        (["bench", "game", "--largest", "many"], "invalid"),
        (["bench", "game", "--seconds", "0"], "between 0 and 60"),
        (["demo", "--steps", "soon"], "invalid int value"),
    ],
)
def test_misuse_exits_with_2_and_says_why(arguments, words, capsys):
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert stopped.value.code == 2
    assert words in capsys.readouterr().err


@pytest.mark.parametrize(("option", "value"), [("--steps", "0"), ("--steps", "100000"), ("--seed", "-1")])
def test_failure_exits_with_1_and_says_why(option, value, capsys):
    assert main(["demo", option, value]) == 1
    assert f"{option.strip('-')}: got" in capsys.readouterr().err


def test_help_names_every_command(capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["--help"])
    assert stopped.value.code == 0
    page = capsys.readouterr().out
    for command in (
        "demo",
        "data",
        "run",
        "sweep",
        "evaluate",
        "report",
        "reproduce",
        "serve",
        "journal",
        "hub",
        "agent",
        "enroll",
        "certs",
        "bench",
        "broker",
        "completion",
    ):
        assert re.search(rf"\n    {command}\b", page)


def test_python_dash_m_is_the_command():
    run = subprocess.run([sys.executable, "-m", "nashcast", "--version"], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == f"nashcast {nashcast.__version__}"


def test_the_readmes_example_prints_what_it_says(capsys):
    out, page, names = printed(ROOT / "README.md", capsys)
    assert f"```\n{out}```" in page
    assert out.startswith("error ÷ persistence's: 0.1")
    assert names["ahead"].shape == names["low"].shape == (24,)


def test_the_default_federations_example_prints_what_it_says(capsys):
    skip_if("" if importlib.util.find_spec("statsmodels") else "needs statsmodels")
    out, page, _ = printed(ROOT / "docs" / "how-to" / "default-federation.md", capsys)
    assert f"```\n{out}```" in page
    own, *members = (float(line[20:25]) for line in out.splitlines()[:-1])
    assert own < min(members)


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text().splitlines()) <= 120


def script(name):
    spec = importlib.util.spec_from_file_location(f"benchmarks_{name}", ROOT / "benchmarks" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


MEASURED = ROOT / "docs" / "reference" / "measured.md"


def test_the_readmes_table_is_that_of_the_last_run():
    together = script("together")
    record, readme = json.loads(together.KEPT.read_text()), (ROOT / "README.md").read_text()
    assert together.readme_with(record, readme) == readme
    for stream in together.STREAMS:
        errors = record[stream]["errors"]
        assert errors["together"] < min(errors[name] for name in ("persistence", "owner", "ml-poly", "mixture"))
    assert together.PICTURE.is_file()


def test_the_measured_figures_are_those_of_the_last_benchmark():
    figures = script("measured")
    game, paper = figures.records()
    page = MEASURED.read_text()
    assert figures.page_with(game, paper, page, figures.evaluations()) == page
    assert figures.block(game) in page
    assert figures.paper_block(paper) in page


def test_the_figures_of_agents_elsewhere_are_those_of_the_last_benchmark():
    remote = script("remote")
    record, page = json.loads(remote.KEPT.read_text()), MEASURED.read_text()
    assert remote.measured_with(record, page) == page
    assert remote.block(record) in page
    assert remote.page(record) == remote.PAGE.read_text()
    assert {row["agents"] for row in record["speed"]} == {2, 5, 20, 50}
    assert {row["steps"] for row in record["equality"]} == {2000}


def test_the_page_on_the_federation_is_that_of_the_last_run():
    federation = script("federation")
    if not federation.KEPT.is_file():
        assert not federation.PAGE.is_file()
        return
    record = json.loads(federation.KEPT.read_text())
    assert federation.PAGE.read_text() == federation.page(record)
    assert federation.notes(record["rows"]) == record["notes"]


def test_the_page_on_the_paper_is_that_of_the_last_reproduction():
    from nashcast.paper.studies.catalogue import STUDIES

    reproduction = script("reproduction")
    studies = json.loads(reproduction.KEPT.read_text())
    assert list(studies) == list(STUDIES)
    assert reproduction.PAGE.read_text() == reproduction.page(studies)


def test_the_pages_on_peers_are_those_of_0_1():
    evaluation = script("evaluation")
    both = []
    for each, streams in ((evaluation.DECLARED, 16), (evaluation.HELD_OUT, 19)):
        found = json.loads(each.kept.read_text())
        assert each.page.read_text() == evaluation.page(each, found)
        assert found["seeds"] == list(range(2024, 2047))
        assert len(found["tables"][0]["rows"]) == streams
        both.append(found)
    assert script("measured").peers_block(*both) in MEASURED.read_text()


def test_every_command_is_documented():
    readme = (ROOT / "README.md").read_text()
    for command in (
        "make demo",
        "make test",
        "make bench",
        "nashcast bench game",
        "nashcast bench replay",
        "nashcast demo",
        "nashcast data",
        "nashcast run",
        "nashcast sweep",
        "nashcast report",
        "nashcast reproduce",
        "make remote",
        "nashcast bench remote",
        "nashcast demo --federated",
        "nashcast demo --live",
        "nashcast serve",
        "nashcast hub",
        "nashcast agent",
        "nashcast evaluate",
    ):
        assert command in readme


def test_links_between_the_documents_lead_somewhere():
    for page in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]:
        for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text()):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.name} links to {target}"
