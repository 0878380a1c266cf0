"""Sweeps: which settings are run, that each is run once, and that ranking never sees the scored rest."""

import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import nashcast as nc
from nashcast.datasets.lagged import WARMUP
from nashcast.records.results import Results
from nashcast.runs.single_run import run
from nashcast.runs.sweep import load_plan, run_here, run_of, score
from nashcast.runs.sweep_grid import choices, parse_sweep, split_at
from nashcast.runs.sweep_table import gameless_runs, rank, row_of, table

FILE = """
name = "small"
seed = 3
[stream]
name = "concept-y2"
steps = 60
[paper]
lookback = 2
[[agents]]
count = 2
encoder = "random_features"
features = 3
[[agents]]
encoder = "linear"
[sweep]
seeds = [1, 2]
tune_until = 0.5
[grid]
"agents.ridge" = [0.5, 5]
"paper.lookback" = [false, 2]
"paper.every" = [1, 2]
"""


JOINT = """
seed = 3
[stream]
name = "concept-y2"
steps = 60
[[agents]]
encoder = "random_lags"
[[agents]]
encoder = "trend"
[sweep]
seeds = [1, 2]
tune_until = 0.5
[grid]
"agents[0].hidden" = [4, 8]
game = [true, false]
"""


def plan_of(tmp_path, text=FILE, **options):
    (tmp_path / "grid.toml").write_text(text)
    return load_plan(tmp_path / "grid.toml", **options)


def all_runs(plan):
    return [each for config in plan.configs for each in plan.runs(config)]


def lines_in(folder):
    return [line for path in sorted(folder.glob("results-*.jsonl")) for line in path.read_text().splitlines()]


def ranked(plan, folder):
    results = Results(folder)
    run_here(plan, all_runs(plan), results)
    return rank(plan, results.done())


def test_a_grid_is_every_combination_and_settings_that_come_to_the_same_are_one(tmp_path):
    plan = plan_of(tmp_path)
    assert len(plan.choices) == 2 * 3  # with no game, every second game is no other setting
    assert len({each.key for each in all_runs(plan)}) == 12
    assert {
        (c.agents[0].decoder["ridge"], c.agents[1].decoder["ridge"], c.paper.game and c.paper.game.every)
        for c in plan.configs
    } == {(r, r, every) for r in (0.5, 5.0) for every in (None, 1, 2)}


def test_one_table_of_agents_can_be_varied_alone_and_dotted_keys_need_no_quotes(tmp_path):
    plan = plan_of(tmp_path, FILE.split("[grid]")[0] + '[grid]\n"agents[1].ridge" = [2, 3]\nagents.window = [4]\n')
    assert [[a.decoder["ridge"] for a in c.agents] for c in plan.configs] == [[1.0, 2.0], [1.0, 3.0]]
    assert all(a.decoder["window"] == 4 for c in plan.configs for a in c.agents)


def random_sweep(samples, grid):
    return parse_sweep({"sweep": {"kind": "random", "samples": samples}, "grid": grid}, "f", 3)


def test_random_settings_are_in_range_reproducible_and_longer_sweeps_begin_with_shorter_ones():
    grid = {
        "agents.ridge": {"low": 0.01, "high": 100, "log": True},
        "agents.window": {"low": 2, "high": 4, "whole": True},
        "agents.decay": {"low": 0, "high": 1},
        "paper.lookback": [False, 2, 3],
    }
    drawn = list(choices(random_sweep(300, grid), 3))
    assert len(drawn) == 300
    assert drawn[:20] == list(choices(random_sweep(20, grid), 3))
    assert drawn[:20] != list(choices(random_sweep(20, grid), 4))
    ridge = np.array([c["agents.ridge"] for c in drawn])
    assert 0.01 <= ridge.min() < 0.1 < 10 < ridge.max() <= 100
    assert 0.3 < np.mean(ridge < 1) < 0.7  # even in the logarithm
    assert {c["agents.window"] for c in drawn} == {2, 3, 4}
    assert all(isinstance(c["agents.window"], int) for c in drawn)
    assert {c["paper.lookback"] for c in drawn} == {False, 2, 3}
    assert 0.4 < np.mean([c["agents.decay"] for c in drawn]) < 0.6


def test_a_random_sweep_of_few_combinations_takes_each_once():
    drawn = list(choices(random_sweep(100, {"agents.ridge": [1, 2], "agents.window": [3, 4]}), 0))
    assert len(drawn) == 4


BAD = [
    ("seeds = [1, 2]", "seeds = []", "sweep.seeds: got []. Pass a list of different whole numbers ≥ 0."),
    ("seeds = [1, 2]", "seeds = [1, 1]", "sweep.seeds: got [1, 1]. Pass a list of different"),
    ("seeds = [1, 2]", "sedes = [1]", "sweep.sedes: got a key that is not known. Did you mean 'seeds'?"),
    (
        "tune_until = 0.5",
        "tune_until = 1.5",
        "sweep.tune_until: got 1.5. Pass a share of the stream between 0 and 1, or",
    ),
    ("tune_until = 0.5", "tune_until = 60", "sweep.tune_until: got 60. The stream has 60 steps: leave at least one"),
    ("tune_until = 0.5", "", "sweep.tune_until: got nothing. Say which part of the stream is for tuning"),
    ("tune_until = 0.5", 'kind = "gird"', "sweep.kind: got 'gird'. Pass one of grid, random."),
    ("tune_until = 0.5", 'kind = "random"', "sweep.samples: got nothing. Say how many settings to draw"),
    ("tune_until = 0.5", "samples = 3", "sweep.samples: got 3 in a grid. Leave it out"),
    ("[0.5, 5]", "[]", "grid.agents.ridge: got []. Pass a list of at least one value."),
    ("[0.5, 5]", "[0, 5]", "agents[0].ridge: got 0. Pass a number > 0."),
    ("[0.5, 5]", "{low = 1, high = 2}", "grid.agents.ridge: got a range in a grid. Pass a list of values"),
    ('"agents.ridge"', '"agents.rigde"', "agents[0].rigde: got a key that is not known. Did you mean 'ridge'?"),
    ('"agents.ridge"', "seed", "grid.seed: got a key that cannot be varied. Vary seeds by sweep.seeds."),
    ("lookback = 2", "lookbak = 2", "paper.lookbak: got a key that is not known."),
]


@pytest.mark.parametrize(("old", "new", "words"), BAD)
def test_what_cannot_be_swept_is_refused_by_name(tmp_path, old, new, words):
    assert old in FILE
    with pytest.raises(nc.InvalidInput) as caught:
        plan_of(tmp_path, FILE.replace(old, new, 1))
    assert str(caught.value).startswith(f"{tmp_path / 'grid.toml'}: {words}")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"low": 1, "high": 1}, "grid.a: got low = 1, high = 1. Pass low < high."),
        ({"low": 0, "high": 1, "log": True}, "grid.a.low: got 0 with log = true. Pass a number > 0."),
        ({"low": 0.5, "high": 1, "whole": True}, "grid.a: got low = 0.5, high = 1 with whole = true."),
        ({"low": 1}, "grid.a.high: got nothing."),
        ({"low": 1, "high": 2, "lgo": True}, "grid.a.lgo: got a key that is not known. Did you mean 'low' or 'log'?"),
    ],
)
def test_bad_ranges_are_refused(given, words):
    with pytest.raises(nc.InvalidInput) as caught:
        random_sweep(3, {"a": given})
    assert str(caught.value).startswith(f"f: {words}")


def test_the_stream_is_split_by_share_or_by_steps():
    assert split_at(0.25, 200, "f") == 50
    assert split_at(120.0, 200, "f") == 120
    assert split_at(1.0, 200, "f") == 1
    assert split_at(None, 200, "f") is None


def test_after_the_fact_must_be_asked_for_and_only_then(tmp_path):
    with pytest.raises(nc.InvalidInput, match=r"--post-hoc: got sweep.tune_until with it. Leave out one"):
        plan_of(tmp_path, post_hoc=True)
    plan = plan_of(tmp_path, FILE.replace("tune_until = 0.5", ""), post_hoc=True)
    ranking = ranked(plan, tmp_path / "out")
    shown = table(plan, ranking, ranking.rows[0])
    assert ranking.parts == ("all",)
    assert "tuned after the fact" in shown["title"]


def test_errors_are_those_of_the_run_itself_on_each_part(tmp_path):
    plan = plan_of(tmp_path)
    config = plan.runs(plan.configs[1])[1].config
    result, outcome = score(config, plan.scored(config)), run(config)
    squares = (outcome.arrays["forecasts"] - outcome.arrays["targets"]) ** 2
    assert config.seed == 2
    assert result["tuning"] == squares[:30].mean()
    assert result["rest"] == squares[30:].mean()


def test_the_ranking_is_by_the_mean_over_seeds_with_baselines_beside_it(tmp_path):
    plan = plan_of(tmp_path)
    ranking = ranked(plan, tmp_path / "out")
    means = [row.errors["tuning"][0] for row in ranking.rows]
    assert means == sorted(means)
    best = ranking.rows[0]
    done = Results(tmp_path / "out").done()
    errors = [done[each.key]["tuning"] for each in plan.runs(best.config)]
    assert best.errors["tuning"] == (np.mean(errors), max(errors))
    run_here(plan, gameless_runs(plan, best), Results(tmp_path / "out"))
    anchored = row_of(plan, best.choice, gameless_runs(plan, best)[0].config, Results(tmp_path / "out").done())
    shown = table(plan, ranking, anchored, 2)
    assert [row["rank"] for row in shown["rows"]] == ["1", "2", "1, anchored, no game", "persistence"]
    stream = plan.scored(best.config).stream
    last = np.concatenate([stream.start[None], stream.targets[:-1]])
    assert shown["rows"][-1]["rest"] == np.mean((stream.targets[30:] - last[30:]) ** 2)
    assert shown["rows"][0]["skill"] == 1 - shown["rows"][0]["rest"] / shown["rows"][-1]["rest"]


def test_joint_federations_are_swept_in_processes_with_the_same_numbers(tmp_path):
    plan, results = plan_of(tmp_path, JOINT), Results(tmp_path / "out")
    run_here(plan, all_runs(plan), results, jobs=2)
    done = results.done()
    assert len(plan.choices) == 4
    assert len(done) == 8
    config = plan.runs(plan.configs[1])[1].config
    assert (config.game, config.seed) == (False, 2)
    again = score(config, plan.scored(config))
    assert {part: done[run_of(config).key][part] for part in ("tuning", "rest")} == {
        part: again[part] for part in ("tuning", "rest")
    }
    ranking = rank(plan, done)
    best = ranking.rows[0]
    assert gameless_runs(plan, best)[0].config.game is False
    shown = table(plan, ranking, best, 4)
    assert shown["rows"][-2]["rank"] == "1, no game"
    assert shown["rows"][-2]["game"] is None


def test_runs_that_diverge_come_last_and_are_counted(tmp_path):
    plan = plan_of(tmp_path)
    done = {each.key: {"tuning": 1.0 + k, "rest": 1.0} for k, each in enumerate(all_runs(plan))}
    first, second = plan.runs(plan.configs[0]), plan.runs(plan.configs[1])
    done[first[0].key] = {"tuning": float("inf"), "rest": 1.0}
    done[second[1].key] = {"tuning": float("nan"), "rest": float("inf")}
    ranking = rank(plan, done)
    assert all(row.choice in plan.choices[:2] for row in ranking.rows[-2:])
    assert (ranking.diverged, ranking.runs) == (2, 12)


SERIES = """
name = "own series"
[stream]
name = "file"
path = "series.csv"
target = "y"
lags = 3
[paper]
[[agents]]
count = 2
encoder = "random_features"
features = 4
[sweep]
tune_until = 40
[grid]
"agents.ridge" = [0.3, 3, 30]
"agents.decay" = [0, 0.5]
"""


def test_the_ranking_sees_nothing_of_the_scored_rest(tmp_path):
    row = np.arange(WARMUP + 100)
    values = np.cumsum(np.random.default_rng(0).standard_normal(len(row)))
    rankings = []
    for name, change in (("as it is", 0.0), ("another end", 5.0)):
        (tmp_path / name).mkdir()
        other = np.where(row > WARMUP + 50, values + change * row, values)
        (tmp_path / name / "series.csv").write_text("y\n" + "\n".join(map(repr, other.tolist())) + "\n")
        plan = plan_of(tmp_path / name, SERIES)
        assert plan.scored(plan.base).split == 40
        rankings.append((ranked(plan, tmp_path / name / "out"), plan.scored(plan.base).stream))
    (one, before), (other, after) = rankings
    same = (before.targets == after.targets).all(axis=1)
    assert same[:40].all()
    assert not same.all()
    assert [row.choice for row in one.rows] == [row.choice for row in other.rows]
    assert [row.errors["tuning"] for row in one.rows] == [row.errors["tuning"] for row in other.rows]
    assert [row.errors["rest"] for row in one.rows] != [row.errors["rest"] for row in other.rows]


def test_finished_runs_are_never_repeated(tmp_path):
    plan, results = plan_of(tmp_path), Results(tmp_path / "out")
    some = all_runs(plan)[:5]
    run_here(plan, some, results, jobs=2)
    seen = []
    run_here(plan, all_runs(plan), results, jobs=3, progress=lambda done, total: seen.append((done, total)))
    run_here(plan, all_runs(plan), results)
    assert len(lines_in(tmp_path / "out")) == len(results.done()) == 12
    assert seen[-1] == (12, 12)


def test_a_run_that_fails_stops_the_sweep_and_names_its_settings(tmp_path):
    plan = plan_of(tmp_path, JOINT.split("[grid]")[0] + '[grid]\n"agents[1].inputs" = [[0], [9]]')
    with pytest.raises(nc.NashcastError, match=r"got place 9\. .* The run that failed: .*'inputs': \[9\]"):
        run_here(plan, all_runs(plan), Results(tmp_path / "out"), jobs=1)
    assert len(lines_in(tmp_path / "out")) == 2  # what was finished is kept


def test_what_results_depend_on_is_their_identity(tmp_path):
    Results(tmp_path / "out").belong_to(plan_of(tmp_path).identity())
    Results(tmp_path / "out").belong_to(plan_of(tmp_path, FILE.replace('"small"', '"another name"')).identity())
    for old, new, word in [
        ("features = 3", "features = 4", r"federation.agents\[0\].features was 3, is 4"),
        ("steps = 60", "steps = 61", "federation.stream.steps"),
        ("[0.5, 5]", "[0.5, 6]", r"sweep.grid.agents.ridge\[1\] was 5, is 6"),
        ("seeds = [1, 2]", "seeds = [1, 3]", r"sweep.seeds\[1\]"),
        ("tune_until = 0.5", "tune_until = 0.4", "sweep.tune_until"),
    ]:
        with pytest.raises(nc.InvalidInput, match=f"results of other settings.*{word}"):
            Results(tmp_path / "out").belong_to(plan_of(tmp_path, FILE.replace(old, new)).identity())


def test_the_contents_of_files_are_settings_too(tmp_path):
    (tmp_path / "box.py").write_text("def f(x):\n    return x[:1]\n")
    text = FILE.replace('encoder = "linear"', 'encoder = "forecaster"\nfunction = "box:f"')
    before = plan_of(tmp_path, text).identity()
    assert before["files"].keys() == {"box:f"}
    (tmp_path / "box.py").write_text("def f(x):\n    return 2 * x[:1]\n")
    assert plan_of(tmp_path, text).identity() != before


LONG = FILE.replace("steps = 60", "steps = 400").replace("[0.5, 5]", str([round(0.1 * k, 1) for k in range(1, 21)]))


@pytest.mark.slow
def test_a_sweep_that_was_killed_goes_on_and_loses_and_repeats_nothing(tmp_path):
    plan, folder = plan_of(tmp_path, LONG), tmp_path / "out"
    command = [
        sys.executable,
        "-m",
        "nashcast",
        "sweep",
        str(tmp_path / "grid.toml"),
        "--output",
        str(folder),
        "--json",
    ]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while process.poll() is None and len(lines_in(folder)) < 10:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    killed = lines_in(folder)
    total = len(all_runs(plan))
    assert 10 <= len(killed) < total
    finished = subprocess.run(command, capture_output=True, text=True, check=True)
    lines = lines_in(folder)
    keys = [json.loads(line)["key"] for line in lines]
    assert set(killed) <= set(lines)
    assert len(keys) == len(set(keys))
    anchored = len(keys) - total
    assert anchored in (0, 2)  # of the winner, for each seed
    assert {each.key for each in all_runs(plan)} <= set(keys)
    assert json.loads(finished.stdout)["runs"] == total
    # A run that was made before the kill and one from after it are the runs they say they are.
    by_key = {each.key: each.config for each in all_runs(plan)}
    for line in (lines[0], lines[-3]):
        entry = json.loads(line)
        again = score(by_key[entry["key"]], plan.scored(plan.base))
        assert (again["tuning"], again["rest"]) == (entry["result"]["tuning"], entry["result"]["rest"])


class Cluster:
    """A real scheduler and two workers of one thread each, on this machine."""

    def __init__(self, folder):
        self.folder, self.processes = folder, []
        self.start(
            "scheduler", "--host", "127.0.0.1", "--port", "0", "--scheduler-file", str(folder / "scheduler.json")
        )
        while not (folder / "scheduler.json").exists():
            assert self.processes[0].poll() is None
            time.sleep(0.05)
        self.address = json.loads((folder / "scheduler.json").read_text())["address"]
        for _ in range(2):
            self.start("worker", self.address, "--nthreads", "1", "--no-nanny", "--local-directory", str(folder))
        while not all("Registered to" in (folder / f"log-{i}").read_text() for i in (1, 2)):
            assert all(process.poll() is None for process in self.processes)
            time.sleep(0.05)

    def start(self, *arguments):
        dask = Path(sys.executable).parent / "dask"
        log = (self.folder / f"log-{len(self.processes)}").open("w")
        with log:
            process = subprocess.Popen([dask, *arguments, "--no-dashboard"], stdout=log, stderr=log)
        self.processes.append(process)

    def stop(self):
        for process in reversed(self.processes):
            process.kill()
            process.wait()


@pytest.fixture
def cluster(tmp_path):
    (tmp_path / "dask").mkdir()
    running = Cluster(tmp_path / "dask")
    yield running
    running.stop()


@pytest.mark.slow
def test_a_cluster_gives_the_same_results_though_a_worker_is_killed_half_way(tmp_path, cluster):
    plan, folder = plan_of(tmp_path, LONG), tmp_path / "out"
    command = [
        sys.executable,
        "-m",
        "nashcast",
        "sweep",
        str(tmp_path / "grid.toml"),
        "--output",
        str(folder),
        "--json",
    ]
    process = subprocess.Popen([*command, "--cluster", cluster.address], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    killed = cluster.processes[1]
    while process.poll() is None and not any(path.stat().st_size for path in folder.glob(f"results-*-{killed.pid}-*")):
        time.sleep(0.01)
    killed.kill()
    before = len(lines_in(folder))
    output, errors = process.communicate()
    assert process.returncode == 0, errors.decode()
    total = len(all_runs(plan))
    assert 1 <= before < total
    keys = [json.loads(line)["key"] for line in lines_in(folder)]
    assert len(keys) == len(set(keys))
    assert {each.key for each in all_runs(plan)} <= set(keys)
    assert {int(path.name.split("-")[2]) for path in folder.glob("results-*")} >= {p.pid for p in cluster.processes[1:]}
    there = Results(folder).done()
    for each in all_runs(plan)[::17]:
        here = score(each.config, plan.scored(plan.base))
        assert (there[each.key]["tuning"], there[each.key]["rest"]) == (here["tuning"], here["rest"])
    best = rank(plan, there).rows[0]
    assert json.loads(output)["rows"][0]["tuning"] == best.errors["tuning"][0]


def test_a_task_whose_results_folder_is_not_shared_only_returns_them(tmp_path):
    from nashcast.runs.sweep_cluster import _tasks, work

    plan = plan_of(tmp_path)
    task = _tasks(plan, all_runs(plan), Results(tmp_path / "elsewhere"))[0]
    answers = work(task)
    assert not (tmp_path / "elsewhere").exists()
    assert answers.keys() == {each.key for each in plan.runs(plan.configs[0])}
    Results(tmp_path / "elsewhere").belong_to(plan.identity())
    assert work(task).keys() == answers.keys() == Results(tmp_path / "elsewhere").done().keys()
    work(task)
    assert len(lines_in(tmp_path / "elsewhere")) == 2
    assert "other data on a worker" in work({**task, "digest": "another"})["error"]
    assert "Pass a number > 0" in work({**task, "settings": {**task["settings"], "paper": {"ridge": 0}}})["error"]


def test_the_pages_code_runs(tmp_path, monkeypatch, capsys):
    docs = Path(__file__).parents[2] / "docs"
    (tmp_path / "examples").mkdir()
    (tmp_path / "examples" / "sweep.toml").write_text((docs.parent / "examples" / "sweep.toml").read_text())
    monkeypatch.chdir(tmp_path)
    for page in (docs / "how-to" / "sweep.md", docs / "reference" / "records.md"):
        for block in re.findall(r"```python\n(.*?)```", page.read_text(), flags=re.S):
            exec(compile(block, page.name, "exec"), {"__name__": "__main__"})
    assert len(capsys.readouterr().out.splitlines()) == 3
    federation = FILE.split("[sweep]")[0], JOINT.split("[sweep]")[0]
    for block in re.findall(r"```toml\n(.*?)```", (docs / "how-to" / "sweep.md").read_text(), flags=re.S):
        text = federation["agents.ridge" not in block].replace("steps = 60", "steps = 1200") + block
        assert len(plan_of(tmp_path, text).configs) > 10


def test_keys_leave_out_the_name_and_nothing_else(tmp_path):
    plan = plan_of(tmp_path)
    from dataclasses import replace

    key = run_of(plan.base).key
    assert run_of(replace(plan.base, name="another")).key == key
    paper = replace(plan.base.paper, ridge=2.0)
    for change in ({"seed": 9}, {"paper": paper}, {"steps": 10}, {"agents": plan.base.agents[:1]}):
        assert run_of(replace(plan.base, **change)).key != key
    joint = plan_of(tmp_path, JOINT).base
    for change in ({"horizon": 2}, {"season": 7}, {"mixing": "boa"}, {"game": False}, {"agents": ()}):
        assert run_of(replace(joint, **change)).key != run_of(joint).key


def test_missing_distributed_says_its_own_pip_line(tmp_path, monkeypatch):
    from nashcast.runs.sweep_cluster import run_on_cluster

    monkeypatch.setitem(sys.modules, "distributed", None)
    plan = plan_of(tmp_path)
    with pytest.raises(
        nc.InvalidInput, match=r"--cluster: got no package distributed. Install it: pip install 'nashcast\[cluster\]'"
    ):
        run_on_cluster(plan, all_runs(plan), Results(tmp_path / "out"), "tcp://127.0.0.1:1")
