"""The paper's table of run times, measured again, and the cost of the game."""

from __future__ import annotations

import time

from nashcast.paper import runs
from nashcast.paper.parallel_runs import Options
from nashcast.paper.published.draws import draw
from nashcast.paper.runs import OURS, run, stream_of
from nashcast.paper.settings import LABELS, expected
from nashcast.paper.studies.table import bold, has_encoders, seeds_of
from nashcast.records.study import Column, Study, Table

ROUNDS = 3


def runtime(options: Options) -> Study:
    """Five agents, a game at every step: seconds of whole runs on one core, the encoding of the series included."""
    rows = []
    lines = [line for line in expected()["runtime"] if line["model"] in options.models]
    lines = [line for line in lines if has_encoders(line["model"], line["dataset"], 5)]
    for done, line in enumerate(lines):
        options.tell("runtime", done, len(lines))
        model, dataset = line["model"], line["dataset"]
        for game in (True, False):
            setting = bold(model, dataset, 5, game)
            steps, printed = len(stream_of(setting).inputs), line["game" if game else "no_game"]
            seconds = min(_seconds(setting, seeds_of(model, options)[0]) for _ in range(ROUNDS + 1))
            rows.append(
                {"model": LABELS[model], "dataset": dataset, "game": "yes" if game else "no", "printed": printed,
                 "printed_step": line["game_step" if game else "no_game_step"], "ours": seconds,
                 "ours_step": seconds / steps, "ratio": printed / seconds}
            )  # fmt: skip
    columns = [
        Column("model", "model"), Column("dataset", "dataset"), Column("game", "game"),
        Column("printed", "printed", "seconds"), Column("printed_step", "printed, a step", "seconds"),
        Column("ours", "ours", "seconds"), Column("ours_step", "ours, a step", "seconds"),
        Column("ratio", "printed ÷ ours", "ratio"),
    ]  # fmt: skip
    notes = [
        f"The best of {ROUNDS} runs after compilation, one core of this machine; the paper does not name its own.",
        "Echo state on BoC is printed as 0.1 s a step, which contradicts the printed total: that is 10 s a step.",
    ]
    return Study(
        "runtime", "Run times with five agents", "", seeds=list(options.seeds)[:1], notes=notes,
        tables=[Table("Seconds of a whole run", columns, rows)],
    )  # fmt: skip


def _seconds(setting, seed: int) -> float:
    # The series is encoded again, since encoding is part of a run.
    runs._encoded.cache_clear()
    draw.cache_clear()
    begun = time.perf_counter()
    run(setting, seed, OURS)
    return time.perf_counter() - begun
