"""Table 1 and the validation slices: printed, ours, as published, persistence, anchored without game, best baseline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np

from nashcast.evaluation.peers.baselines import baselines, mse
from nashcast.paper.parallel_runs import Options, Outcome, Task, mean, outcomes, spread
from nashcast.paper.pretrained import available
from nashcast.paper.runs import ANCHORED, OURS, PUBLISHED, run, stream_of
from nashcast.paper.settings import LABELS, Setting, expected, row
from nashcast.records.study import Column, Figure, Line, Panel, Table

# The published order of samples in echo-state games is not reproduced: their errors are compared over many seeds.
ECHO_SEEDS = tuple(range(2024, 2044))
HOLDS, LOSES, BASELINE = "✓", "✗", "▲"
MARKS = {
    HOLDS: "our runs bear out the paper's claim: the game is better than none",
    LOSES: "they do not",
    BASELINE: "a simple baseline, or agents anchored without a game, beats both",
}
# Figures show only the last SHOWN steps of series of at most SHORT steps.
SHORT, SHOWN = 200, 60
# The paper's picture of each family's forecasts; that of its ratios is the next one.
PAPER_FIGURES = {"transformer": 1, "rfn": 3, "esn": 5}
ROW_KEYS = (
    "model", "agents", "dataset", "game", "printed", "ours", "as_published", "persistence", "anchored",
    "best_baseline", "seconds",
)  # fmt: skip


def bold(model: str, dataset: str, agents: int, game: bool) -> Setting:
    """The paper's bold setting; a validation slice has that of its series."""
    return replace(row(model, dataset, agents, game).setting(), dataset=dataset)


def seeds_of(model: str, options: Options) -> Sequence[int]:
    """One seed for transformers, which are not random."""
    return options.seeds[:1] if model == "transformer" else options.seeds


def published_seeds(setting: Setting, options: Options) -> Sequence[int]:
    """The given seeds, and for echo states with the game many more."""
    seeds = seeds_of(setting.model, options)
    return tuple(dict.fromkeys((*seeds, *ECHO_SEEDS))) if setting.model == "esn" and setting.game else seeds


def has_encoders(model: str, dataset: str, agents: int, causal: bool = False) -> bool:
    return model != "transformer" or available(dataset, agents, causal=causal)


def table_rows(name: str, options: Options) -> list[dict]:
    """One row for each line of the printed table and each of game and no game; see ROW_KEYS, and some more keys."""
    wanted = [
        (line, game, bold(line["model"], line["dataset"], line["agents"], game))
        for line in expected()[name]
        for game in (True, False)
        if line["model"] in options.models
    ]  # fmt: skip
    tasks = []
    for line, _, setting in wanted:
        if not has_encoders(*(line[key] for key in ("model", "dataset", "agents"))):
            continue
        for seed in seeds_of(setting.model, options):
            tasks += [Task(setting, seed, OURS), Task(setting, seed, ANCHORED)]
        if options.as_published:
            tasks += [Task(setting, seed, PUBLISHED) for seed in published_seeds(setting, options)]
    found = outcomes(tasks, options, name)
    return [_row(line, game, setting, options, found) for line, game, setting in wanted]


def _row(line: dict, game: bool, setting: Setting, options: Options, found: dict[Task, Outcome]) -> dict:
    model, dataset, agents = line["model"], line["dataset"], line["agents"]
    seeds = seeds_of(model, options)
    best_name, errors = baseline_errors(setting)
    result = {
        "model": model, "agents": agents, "dataset": dataset, "game": game,
        "printed": line["game" if game else "no_game"], "ours": None, "as_published": None,
        "persistence": errors["persistence"], "anchored": None, "best_baseline": errors[best_name],
        "best_baseline_name": best_name, "seconds": None, "settings": setting.described(), "seeds": list(seeds),
    }  # fmt: skip
    if not has_encoders(model, dataset, agents):
        return result
    result |= {
        "ours": mean(found, setting, seeds),
        "ours_spread": spread(found, setting, seeds),
        "anchored": mean(found, setting, seeds, ANCHORED),
        "seconds": sum(found[Task(setting, seed)].seconds for seed in seeds),
        "fallbacks": sum(found[Task(setting, seed)].fallbacks for seed in seeds),
    }
    if options.as_published:
        result["as_published"] = mean(found, setting, seeds, PUBLISHED)
        many = published_seeds(setting, options)
        if len(many) > len(seeds):
            result["as_published_many"] = {
                "seeds": list(many), "mean": mean(found, setting, many, PUBLISHED),
                "spread": spread(found, setting, many, PUBLISHED),
            }  # fmt: skip
    return result


@lru_cache(maxsize=32)
def _baselines_of(dataset: str, random_features: bool) -> tuple[str, dict[str, float]]:
    stream = stream_of(Setting("rfn" if random_features else "esn", dataset, 2, 0.0, 1.0, 1))
    errors = {name: mse(forecasts, stream.targets) for name, forecasts in baselines(stream).items()}
    return min(errors, key=lambda name: errors[name]), errors


def baseline_errors(setting: Setting) -> tuple[str, dict[str, float]]:
    """The name of the best simple baseline on this setting's series, and the errors of all."""
    return _baselines_of(setting.dataset, setting.model == "rfn")


def wide_table(title: str, rows: list[dict], as_published: bool) -> Table:
    """Game and no game side by side, as the paper prints them."""
    columns = [
        Column("model", "model"), Column("agents", "agents", "int"), Column("dataset", "dataset"),
        Column("mark", "claim", "mark"),
        Column("printed_game", "printed, game", "error"), Column("printed_none", "printed, none", "error"),
        Column("ours_game", "ours, game", "error"), Column("ours_none", "ours, none", "error"),
    ]  # fmt: skip
    if as_published:
        columns += [
            Column("published_game", "as published, game", "error"),
            Column("published_none", "as published, none", "error"),
        ]
    columns += [
        Column("persistence", "persistence", "error"), Column("anchored", "anchored, no game", "error"),
        Column("best_baseline", "best baseline", "error"), Column("best_baseline_name", "which"),
    ]  # fmt: skip
    pairs = [(rows[i], rows[i + 1]) for i in range(0, len(rows), 2)]
    return Table(title, columns, [_wide(*pair) for pair in pairs], MARKS)


def _wide(game: dict, none: dict) -> dict:
    anchored = None if game["anchored"] is None else min(game["anchored"], none["anchored"])
    wide = {key: game[key] for key in ("agents", "dataset", "persistence", "best_baseline", "best_baseline_name")}
    wide |= {"model": LABELS[game["model"]], "anchored": anchored, "mark": ""}
    for name, key in (("printed", "printed"), ("ours", "ours"), ("published", "as_published")):
        wide |= {f"{name}_game": game[key], f"{name}_none": none[key]}
    if anchored is not None:
        simplest = min(anchored, game["best_baseline"])
        wide["mark"] = HOLDS if game["ours"] < none["ours"] else LOSES
        wide["mark"] += BASELINE if simplest < min(game["ours"], none["ours"]) else ""
    return wide


def settings_of(rows: list[dict]) -> dict:
    """The settings behind each row, for the record."""
    shown = {}
    for each in rows:
        kind = "game" if each["game"] else "none"
        numbers = {name: value for name, value in each["settings"].items() if isinstance(value, int | float)}
        name = f"{LABELS[each['model']]}, {each['agents']} agents, {each['dataset']}, {kind}"
        shown[name] = ", ".join(f"{key} {value:g}" for key, value in numbers.items() if key not in ("agents", "causal"))
    return shown


def summary(rows: list[dict]) -> list[str]:
    """Counts that summarise the table."""
    done = [(rows[i], rows[i + 1]) for i in range(0, len(rows), 2) if rows[i]["ours"] is not None]
    if not done:
        return []
    better = sum(game["ours"] < none["ours"] for game, none in done)
    beaten = sum(_wide(*pair)["mark"].endswith(BASELINE) for pair in done)
    anchored = sum(_wide(*pair)["anchored"] < game["ours"] for pair in done for game in pair[:1])
    naive = sum(game["persistence"] <= game["ours"] for game, _ in done)
    return [
        f"The exact game is better than greedy agents without one in {better} of {len(done)} lines.",
        f"Agents that start each step from the last observation, without a game, are better than it in {anchored}.",
        f"Persistence is at least as good as the game in {naive}.",
        f"A simple baseline, or anchoring, beats both columns in {beaten}.",
        f"Games that could not be solved, so that the greedy step stood: {sum(game['fallbacks'] for game, _ in done)}.",
    ]


def overlay_figures(options: Options, arrays: dict[str, np.ndarray], agents: int = 5) -> list[Figure]:
    """The paper's two pictures of each family: forecasts over the series, and ratios of squared errors."""
    figures = []
    for model in options.models:
        datasets = [
            line["dataset"] for line in expected()["table1"] if (line["model"], line["agents"]) == (model, agents)
        ]
        datasets = [dataset for dataset in datasets if has_encoders(model, dataset, agents)]
        overlays, ratios = [], []
        for done, dataset in enumerate(datasets):
            options.tell(f"pictures, {model}", done, len(datasets))
            game, none = (row(model, dataset, agents, each).setting() for each in (True, False))
            seed = seeds_of(model, options)[0]
            stream = stream_of(game)
            forecasts = {"game": run(game, seed).forecasts, "no game": run(none, seed).forecasts}
            last = stream.persistence
            for k in range(stream.targets.shape[1]):
                stem = f"{model}.{dataset}.{k}"
                title = f"{dataset}, target {k + 1}" if stream.targets.shape[1] > 1 else dataset
                # Short series oscillate from step to step: at full length they would be a black bar.
                # The concept shift is smooth, and its shift lies in the middle.
                cut = len(stream.targets) <= SHORT and dataset != "concept"
                first = max(len(stream.targets) - SHOWN, 0) if cut else 0
                arrays[f"{stem}.step"] = np.arange(first, len(stream.targets), dtype=float)
                arrays[f"{stem}.target"] = stream.targets[first:, k]
                lines = [Line("target", f"{stem}.target", f"{stem}.step")]
                for name, values in forecasts.items():
                    arrays[f"{stem}.{name}"] = values[first:, k]
                    lines.append(Line(name, f"{stem}.{name}", f"{stem}.step"))
                shown = f"{title}, last {SHOWN} steps" if cut else title
                overlays.append(Panel(shown, "step", "value", lines))
                error = {name: (values[:, k] - stream.targets[:, k]) ** 2 for name, values in forecasts.items()}
                # Where the game hits the target to rounding there is no ratio.
                hit = (1e-10 * np.abs(stream.targets[:, k]).max()) ** 2
                played = np.where(error["game"] > hit, error["game"], np.nan)
                arrays[f"{stem}.ratio"] = error["no game"] / played
                arrays[f"{stem}.naive"] = (last[:, k] - stream.targets[:, k]) ** 2 / played
                pair = [Line("no game ÷ game", f"{stem}.ratio", style="points")]
                pair.append(Line("persistence ÷ game", f"{stem}.naive", style="points"))
                ratios.append(Panel(title, "step", "ratio of squared errors", pair, log_y=True, reference=1.0))
        if overlays:
            label = LABELS[model]
            figures += [
                Figure(f"{model}-forecasts", f"{label}: forecasts of {agents} agents over the series",
                       "Forecasts with the exact game and without one, over the target. A line that leaves the "
                       f"picture diverges. The paper's Figure {PAPER_FIGURES[model]}.", overlays, 1),
                Figure(f"{model}-error-ratios", f"{label}: ratios of squared errors, {agents} agents",
                       "Above 1 the game's forecast of that step is the better one. "
                       f"The paper's Figure {PAPER_FIGURES[model] + 1}.", ratios, 1),
            ]  # fmt: skip
    return figures
