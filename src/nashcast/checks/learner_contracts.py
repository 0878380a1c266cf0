"""The contracts of encoders that learn by themselves, and of quantiles that a forecaster gives."""

from __future__ import annotations

import copy

import numpy as np

from nashcast import validation as check
from nashcast.checks.contract import Contract, is_whole, same, wrong_numbers
from nashcast.checks.encoder_case import EncoderCase, walk
from nashcast.encoders.base import BuiltForecaster, BuiltLearner, Quantiles

_HORIZONS = (1, 3)


def _quantiles(case: EncoderCase) -> str | None:
    built = case.build()
    if not isinstance(built, BuiltForecaster):
        return None
    contexts = case.contexts(built)
    states = walk(built, contexts).states
    for t, context in enumerate(contexts):
        for horizon in _HORIZONS:
            seen = context._replace(state=states[t + 1])
            found = built.forecast_set(seen, horizon)
            if not same(found.forecasts, built.forecast(seen, horizon)):
                return f"forecast_set gave other forecasts than forecast at step {t}"
            if found.quantiles is not None and tuple(found.quantiles.levels) != tuple(built.levels):
                return f"its quantiles are of the levels {found.quantiles.levels}, but it declared {built.levels}"
            if found.quantiles is not None and (wrong := _wrong_quantiles(found.quantiles, horizon, case.y_dim)):
                return f"{wrong} at step {t}"
    return None


def _wrong_quantiles(quantiles: Quantiles, horizon: int, y_dim: int) -> str | None:
    levels, values = quantiles
    if list(levels) != sorted(set(levels)) or not all(0.0 < level < 1.0 for level in levels):
        return f"the levels are {levels}, not different numbers between 0 and 1 in ascending order"
    wanted = (horizon, y_dim, len(levels))
    if type(values) is not np.ndarray or values.shape != wanted:
        return f"the quantiles are {check.describe(values)}, not (horizon, y_dim, levels) = {check.shape_text(wanted)}"
    if wrong := wrong_numbers("the quantiles of the next target", values[0]):
        return wrong
    if (np.diff(values, axis=-1) < 0.0).any():
        return "a quantile is below one of a lower level"
    return None


def _rows_of_learners(case: EncoderCase) -> str | None:
    built = case.build()
    if not isinstance(built, BuiltLearner):
        return None
    if not is_whole(built.row_size):
        return f"row_size is {check.describe(built.row_size)}, not a whole number ≥ 0"
    for t, context in enumerate(case.contexts(built)):
        row = np.asarray(built.row(context))
        if row.shape != (built.row_size,):
            return f"row gave shape {row.shape} at step {t}, not (row_size,) = ({built.row_size},)"
        if not same(row, built.row(context)):
            return f"the same context gave another row the second time, at step {t}"
    return None


def _forecasts_learn_nothing(case: EncoderCase) -> str | None:
    """Requests for forecasts in between do not change what a learner learns."""
    results = []
    for asked in (1, 3):
        built = case.build()
        if not isinstance(built, BuiltLearner):
            return None
        forecasts = []
        for context, target in zip(case.contexts(built), case.targets[1:], strict=True):
            row = built.row(context).copy()
            forecast = [built.forecast_row(row.copy(), 3).copy() for _ in range(asked)]
            forecasts.append(forecast[-1])
            built.learn_row(row, target.copy())
        results.append(np.stack(forecasts))
    return None if same(*results) else "a learner that was asked for more forecasts learnt something else"


def _builds_apart(case: EncoderCase) -> str | None:
    """Learners of two federations share no state."""
    one, other = case.encoder.build(case.x_dim, case.y_dim), case.encoder.build(case.x_dim, case.y_dim)
    if not isinstance(one, BuiltLearner) or not isinstance(other, BuiltLearner):
        return None
    case.teach(one, len(case.inputs))
    row = one.row(case.contexts(one)[-1])
    before = one.forecast_row(row.copy(), 1).copy()
    case.teach(other, len(case.inputs))
    if same(before, one.forecast_row(row.copy(), 1)) and same(before, other.forecast_row(row.copy(), 1)):
        return None
    return "teaching one learner changed another of the same description: they share what they learnt"


def _saved_learners(case: EncoderCase) -> str | None:
    built, resumed = case.build(), case.encoder.build(case.x_dim, case.y_dim)
    if not isinstance(built, BuiltLearner) or not isinstance(resumed, BuiltLearner):
        return None
    saved = built.save_state()
    if saved is None:
        return None  # it is replayed
    for name, value in saved.items():
        if not isinstance(name, str) or type(value) is not np.ndarray or value.dtype.kind not in "biuf":
            return f"save_state gave {check.describe(value)} under {name!r}, not an array of numbers"
    resumed.restore_state(copy.deepcopy(saved))
    half = len(case.inputs) // 2
    for t, (context, target) in enumerate(zip(case.contexts(built), case.targets[1:], strict=True)):
        if t < half:
            continue
        row = built.row(context).copy()
        if not same(built.forecast_row(row.copy(), 1), resumed.forecast_row(row.copy(), 1)):
            return f"restored after {half} lessons, the learner forecast something else at step {t}"
        for one in (built, resumed):
            one.learn_row(row.copy(), target.copy())
    return None


LEARNER_CONTRACTS = [
    Contract(
        "quantiles",
        "quantiles are (horizon, y_dim, levels), of the levels declared, finite for the next target, and ascending",
        "Sort them along the last axis, and give the same forecasts in forecast and forecast_set.",
        _quantiles,
    ),
    Contract(
        "learner rows",
        "row of a learner gives row_size numbers, the same for the same context",
        "Make the row from the context only, with row_size numbers from the first step on.",
        _rows_of_learners,
    ),
    Contract(
        "learning apart",
        "forecasting teaches a learner nothing",
        "Learn in learn_row only.",
        _forecasts_learn_nothing,
    ),
    Contract(
        "own copy",
        "each build of a learner learns by itself",
        "Make or copy the model in build.",
        _builds_apart,
    ),
    Contract(
        "saved learner",
        "save_state gives None or arrays, from which restore_state continues to the bit",
        "Save everything that learning changes, or return None so that the lessons are replayed.",
        _saved_learners,
    ),
]
