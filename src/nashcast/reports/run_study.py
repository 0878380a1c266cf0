"""One run as a study: errors of the federation, persistence and each agent; forecasts; mixture weights."""

from __future__ import annotations

import numpy as np

from nashcast.errors import InvalidInput
from nashcast.records.folder import Record
from nashcast.records.study import Column, Figure, Line, Panel, Study, Table, check_study
from nashcast.reports.formats import DIVERGES, error, ratio

FEDERATION, PERSISTENCE, TARGET = "federation", "persistence", "target"
# Maximum lines in a panel, and targets with their own panels.
MOST_AGENTS, MOST_TARGETS = 8, 6
_CLOSE_UP = 150
_AXES = {"start": 1, "targets": 2, "forecasts": 2, "weights": 2, "agents": 3}


def study_of_run(record: Record) -> Study:
    """The study of a record of kind "run"."""
    about = record.about
    start, targets, forecasts, weights, own = _arrays(record)
    names = [str(name) for name in about.get("agents") or []]
    if len(names) != weights.shape[1]:
        names = [f"agent {i + 1}" for i in range(weights.shape[1])]
    if len(set(names)) < len(names):
        names = [f"{name} {i + 1}" for i, name in enumerate(names)]
    last = np.concatenate([start[None], targets[:-1]])
    with np.errstate(over="ignore", invalid="ignore"):
        errors = {FEDERATION: _squared(forecasts, targets), PERSISTENCE: _squared(last, targets)}
        errors |= {_own(name): _squared(own[:, i], targets) for i, name in enumerate(names)}
        mse = {name: float(np.mean(values)) for name, values in errors.items()}
    # Of many agents, show those with the largest weights.
    heavy = np.argsort(-np.nan_to_num(np.abs(weights)).mean(axis=0), kind="stable")[:MOST_AGENTS]
    shown = [names[i] for i in sorted(heavy)]
    steps, arrays = len(targets), {}
    arrays |= {f"weight of {name}": weights[:, i] for i, name in enumerate(names) if name in shown}
    figures = [
        _forecasts(arrays, targets, forecasts, last),
        _errors(arrays, errors, [FEDERATION, *map(_own, shown)], steps),
        Figure(
            "weights",
            "Mixture weights",
            "The weight of each agent's forecast in the federation's; weights may be negative.",
            [Panel("", "step", "weight", [Line(_own(name), f"weight of {name}") for name in shown])],
        ),
    ]
    settings = dict(about.get("settings") or {})
    study = Study(
        name=str(about.get("name") or "run"),
        title=str(about.get("title") or about.get("name") or "A run"),
        command=str(about.get("command") or ""),
        seeds=[about["seed"]] if about.get("seed") is not None else [],
        settings=settings,
        seconds=(about.get("summary") or {}).get("seconds"),
        notes=[*map(str, about.get("notes") or []), *_notes(mse, steps, len(names))],
        tables=[_table(mse, _baselines(about), names, weights)],
        figures=figures,
        arrays=arrays,
        created=str(about.get("created", "")),
        versions=dict(about.get("versions") or {}),
    )
    check_study(study)
    return study


def _arrays(record: Record) -> list[np.ndarray]:
    for name, rank in _AXES.items():
        found = record.arrays.get(name)
        if found is None or found.ndim != rank:
            got = f"a run without {name}" if found is None else f"a run with {name} of shape {found.shape}"
            raise InvalidInput("record", got, "It is damaged: run the command that wrote it again.")
    start, targets, forecasts, weights, own = (record.arrays[name].astype(float) for name in _AXES)
    (steps, y_dim), agents = targets.shape, weights.shape[1]
    wanted = {"start": (y_dim,), "forecasts": (steps, y_dim), "weights": (steps, agents)}
    wanted["agents"] = (steps, agents, y_dim)
    for name, shape in wanted.items():
        if record.arrays[name].shape != shape or not steps:
            got = f"a run with {name} of shape {record.arrays[name].shape} for targets of shape {targets.shape}"
            raise InvalidInput("record", got, "It is damaged: run the command that wrote it again.")
    return [start, targets, forecasts, weights, own]


def _own(name: str) -> str:
    return f"{name}, own" if name in (FEDERATION, PERSISTENCE, TARGET) else name


def _squared(forecasts: np.ndarray, targets: np.ndarray) -> np.ndarray:
    return np.mean((forecasts - targets) ** 2, axis=1)


def _baselines(about: dict) -> dict[str, float]:
    """Errors of the same agents in other settings, such as anchored without a game, if the run measured them."""
    found = (about.get("summary") or {}).get("baselines")
    pairs = found.items() if isinstance(found, dict) else ()
    return {f"{FEDERATION}, {name}": float(value) for name, value in pairs if isinstance(value, int | float)}


def _table(mse: dict[str, float], baselines: dict[str, float], names: list[str], weights: np.ndarray) -> Table:
    columns = [
        Column("forecast", "forecast"),
        Column("mse", "MSE", "error"),
        Column("ratio", "÷ persistence", "ratio"),
        Column("skill", "skill", "ratio"),
        Column("mean_weight", "mean weight", "ratio"),
        Column("last_weight", "last weight", "ratio"),
    ]
    base, rows = mse[PERSISTENCE], []
    alone = {f"{name}, alone": mse[_own(name)] for name in names}
    for name, value in ({FEDERATION: mse[FEDERATION]} | baselines | {PERSISTENCE: base} | alone).items():
        share = value / base if base > 0 else None
        rows.append({"forecast": name, "mse": value, "ratio": share, "skill": None if share is None else 1 - share})
    for row, of_agent in zip(rows[-len(names) :], weights.T, strict=True):
        row |= {"mean_weight": float(of_agent.mean()), "last_weight": float(of_agent[-1])}
    return Table("Mean squared errors", columns, rows)


def _notes(mse: dict[str, float], steps: int, agents: int) -> list[str]:
    ours, base = mse[FEDERATION], mse[PERSISTENCE]
    share = f", {ratio(ours / base)} times that of persistence ({error(base)})" if base > 0 else ""
    text = f"the federation's mean squared error is {error(ours)}{share}"
    if error(ours) == DIVERGES:
        text = f"the federation diverges; the mean squared error of persistence is {error(base)}"
    notes = [
        f"Over {steps:,} steps {text}.",
        "Persistence repeats the last target. Skill is 1 − MSE ÷ its MSE: above 0 is better than persistence.",
        "An agent alone is its own forecast within the federation, before mixing.",
    ]
    if agents > MOST_AGENTS:
        notes.append(f"The figures show the {MOST_AGENTS} of {agents} agents with the largest weights.")
    return notes


def _forecasts(arrays: dict, targets: np.ndarray, forecasts: np.ndarray, last: np.ndarray) -> Figure:
    steps, y_dim = targets.shape
    close, panels = steps > 2 * _CLOSE_UP, []
    for j in range(min(y_dim, MOST_TARGETS)):
        end = f" {j + 1}" if y_dim > 1 else ""
        for part, first in (("", 0), ("end of ", steps - _CLOSE_UP))[: 2 if close else 1]:
            lines = []
            arrays[f"{part}step"] = np.arange(first, steps, dtype=float)
            for label, values in ((FEDERATION, forecasts), (PERSISTENCE, last), (TARGET, targets)):
                if label == PERSISTENCE and not part and close:
                    continue
                arrays[f"{part}{label}{end}"] = values[first:, j]
                lines.append(Line(label, f"{part}{label}{end}", f"{part}step"))
            title = f"last {_CLOSE_UP} steps" if part else "all steps" if close else ""
            title = ", ".join(each for each in (f"target{end}" if end else "", title) if each)
            panels.append(Panel(title, "step", "target", lines))
    left_out = f" The first {MOST_TARGETS} of {y_dim} targets." if y_dim > MOST_TARGETS else ""
    caption = f"The federation's forecasts and the targets.{left_out}"
    return Figure("forecasts", "Forecasts and targets", caption, panels, columns=2 if len(panels) > 1 else 1)


def _errors(arrays: dict, errors: dict[str, np.ndarray], shown: list[str], steps: int) -> Figure:
    width = max(min(10, steps), steps // 40)
    arrays["window end"] = np.arange(width - 1, steps, dtype=float)
    base = _running(errors[PERSISTENCE], width)
    ratios, sums = [], []
    with np.errstate(all="ignore"):
        for name in shown:
            arrays[f"error ratio of {name}"] = _running(errors[name], width) / base
            ratios.append(Line(name, f"error ratio of {name}", "window end"))
        for name in [*shown, PERSISTENCE]:
            arrays[f"error sum of {name}"] = np.cumsum(errors[name])
            sums.append(Line(name, f"error sum of {name}"))
    panels = [
        Panel(
            f"relative to persistence, mean of {width} steps", "step", "squared error ÷ persistence", ratios,
            log_y=True, reference=1.0,
        ),
        Panel("added up from the start", "step", "sum of squared errors", sums, log_y=True),
    ]  # fmt: skip
    caption = "Relative to persistence, below 1 is better than it. Added up: all squared errors up to each step."
    return Figure("errors", "Squared errors", caption, panels, columns=2)


def _running(values: np.ndarray, width: int) -> np.ndarray:
    """Means of `width` neighbours, window by window: running sums would carry a huge value to the end."""
    return np.lib.stride_tricks.sliding_window_view(values, width).mean(axis=1)
