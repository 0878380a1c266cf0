"""Results of the published code: settings behind the printed numbers, echo states over many seeds, transformers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from nashcast.paper.parallel_runs import Options, Task, mean, outcomes
from nashcast.paper.pretrained import EPOCHS, provenance, scored_from
from nashcast.paper.runs import OURS, PUBLISHED, run, stream_of
from nashcast.paper.settings import LABELS, Setting, expected, printed_line, row
from nashcast.paper.studies.table import bold, has_encoders, seeds_of
from nashcast.records.study import Column, Table

# Half a unit of the last of six printed digits, plus rounding.
SAME_DIGITS = 6e-6
SHORT_ROUNDS = 1000
RECORDED = ("boc", "ett")


def searched_table(rows: list[dict], options: Options) -> Table:
    """Rows whose bold setting does not give the printed number: searches the grid for one that does.

    Echo states and transformers with the game are left out: their samples and weights are not published.
    On recorded series each setting is also tried with half of the published length.
    """
    columns = [
        Column("model", "model"), Column("agents", "agents", "int"), Column("dataset", "dataset"),
        Column("game", "game"), Column("printed", "printed", "error"), Column("bold", "bold setting gives", "error"),
        Column("found", "a setting that gives it"), Column("error", "its error", "error"),
        Column("tried", "settings tried", "int"),
    ]  # fmt: skip
    can = [each for each in rows if each["model"] == "rfn" or (each["model"] == "esn" and not each["game"])]
    missed = [
        each
        for each in can
        if each["as_published"] is not None and abs(each["as_published"] / each["printed"] - 1) > SAME_DIGITS
    ]
    return Table("Printed, but not by the bold setting", columns, [_searched(each, options) for each in missed])


def _searched(missed: dict, options: Options) -> dict:
    model, dataset, agents, game, printed = (missed[key] for key in ("model", "dataset", "agents", "game", "printed"))
    grid = [replace(each, dataset=dataset) for each in row(model, dataset, agents, game).settings()]
    if dataset.startswith(RECORDED):
        grid += [replace(each, rounds=SHORT_ROUNDS) for each in grid]
    seeds = seeds_of(model, options)
    tasks = [Task(each, seed, PUBLISHED) for each in grid for seed in seeds]
    found = outcomes(tasks, options, f"search {model} {dataset} {agents}")
    closest = min(grid, key=lambda each: abs(mean(found, each, seeds, PUBLISHED) / printed - 1))
    error = mean(found, closest, seeds, PUBLISHED)
    matches = abs(error / printed - 1) <= SAME_DIGITS
    return {
        "model": LABELS[model], "agents": agents, "dataset": dataset, "game": "yes" if game else "no",
        "printed": printed, "bold": missed["as_published"], "error": error, "tried": len(grid),
        "found": described(closest, bold(model, dataset, agents, game)) if matches else "none; the closest is shown",
    }  # fmt: skip


def described(setting: Setting, beside: Setting | None = None) -> str:
    """The setting in one line; with another setting given, only the differences."""
    names = ("decay", "ridge", "noise", "features", "window", "lookback", "every", "rounds")
    shown = setting.described()
    other = {} if beside is None else beside.described()
    parts = [
        f"{name} {shown[name]:g}"
        for name in names
        if shown[name] is not None and (beside is None or shown[name] != other[name])
    ]
    return ", ".join(parts) or "the same"


def echo_table(rows: list[dict]) -> Table:
    """Echo states with the published game over many seeds, since its samples cannot be drawn again in its order."""
    columns = [
        Column("agents", "agents", "int"), Column("dataset", "dataset"), Column("printed", "printed", "error"),
        Column("mean", "mean", "error"), Column("least", "least", "error"), Column("most", "most", "error"),
        Column("seeds", "seeds", "int"), Column("within", "printed lies within"),
    ]  # fmt: skip
    lines = []
    for each in rows:
        if (many := each.get("as_published_many")) is None:
            continue
        least, most = many["spread"]
        within = least <= each["printed"] <= most
        lines.append(
            {"agents": each["agents"], "dataset": each["dataset"], "printed": each["printed"], "mean": many["mean"],
             "least": least, "most": most, "seeds": len(many["seeds"]), "within": "yes" if within else "no"}
        )  # fmt: skip
    return Table("Echo states with the published game, over many seeds", columns, lines)


def tanh_line(options: Options) -> str:
    """The activation of the printed echo states."""
    setting = bold("esn", "ett", 2, False)
    tanh = replace(setting, activation="tanh")
    seeds = seeds_of("esn", options)
    tasks = [Task(each, seed, PUBLISHED) for each in (setting, tanh) for seed in seeds]
    found = outcomes(tasks, options, "activations")
    hard, soft = (mean(found, each, seeds, PUBLISHED) for each in (setting, tanh))
    printed = printed_line("table1", "esn", "ett", 2)["no_game"]
    shown = f"{soft:.3g}" if np.isfinite(soft) and soft < 1e6 else "diverges"
    return f"Echo states on ETT, 2 agents, no game: hard sigmoid {hard:.5e} (printed {printed:.5e}), tanh {shown}."


def transformer_table(options: Options) -> Table | None:
    """Transformers pre-trained as the authors did and causally, both scored on data unseen by the latter."""
    lines = []
    for line in expected()["table1"]:
        dataset, agents = line["dataset"], line["agents"]
        if line["model"] != "transformer" or not all(
            has_encoders("transformer", dataset, agents, c) for c in (False, True)
        ):
            continue
        result = {"agents": agents, "dataset": dataset, "printed": line["game"]}
        seed = seeds_of("transformer", options)[0]
        for causal, name in ((False, "authors"), (True, "causal")):
            first = scored_from(dataset, causal=True)
            for game in (True, False):
                setting = replace(bold("transformer", dataset, agents, game), causal=causal)
                stream, forecasts = stream_of(setting), run(setting, seed, OURS).forecasts
                last = stream.persistence
                naive = np.mean((last[first:] - stream.targets[first:]) ** 2)
                # Relative to persistence, since the two are not in the same unit on ETT.
                error = np.mean((forecasts[first:] - stream.targets[first:]) ** 2) / naive
                result[f"{name}_{'game' if game else 'none'}"] = float(error)
        lines.append(result)
    if not lines:
        return None
    columns = [
        Column("agents", "agents", "int"), Column("dataset", "dataset"),
        Column("authors_game", "as the authors, game", "ratio"),
        Column("authors_none", "as the authors, none", "ratio"),
        Column("causal_game", "causal, game", "ratio"), Column("causal_none", "causal, none", "ratio"),
    ]  # fmt: skip
    return Table("Transformers on the last three quarters, error ÷ persistence", columns, lines)


def training_notes() -> list[str]:
    """The training data of the available transformers."""
    notes = []
    for line in expected()["table1"]:
        if line["model"] != "transformer" or line["agents"] != 5:
            continue
        for causal in (False, True):
            if has_encoders("transformer", line["dataset"], 5, causal):
                about = provenance(line["dataset"], 0, causal=causal)
                seen = "before the scored part only" if causal else "the scored period included"
                notes.append(
                    f"{line['dataset']}, {about['way']}: {about['sequences']} sequences of {about['length']} steps "
                    f"out of {about['rows']} rows ({seen}), {about['epochs']} epochs (400 in the paper)."
                )
    return notes or [f"No transformer is trained yet: `nashcast reproduce pretrain` does it, {EPOCHS} epochs each."]
