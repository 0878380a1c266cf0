"""The contracts of two kinds of encoders: those of standardised rows, and those that forecast."""

from __future__ import annotations

import numpy as np

from nashcast import validation as check
from nashcast.checks.contract import Contract, is_whole, near, wrong_array
from nashcast.checks.encoder_case import EncoderCase, walk
from nashcast.encoders.base import BuiltForecaster, RowEncoder

_HORIZONS = (1, 3)


def _rows(case: EncoderCase) -> str | None:
    built = case.build()
    if not isinstance(built, RowEncoder):
        return None
    contexts = case.contexts(built)
    features, states = walk(built, contexts)
    for t, context in enumerate(contexts):
        assert context.rows is not None
        Z, state = built.encode_rows(context.rows, states[t])
        if not (near(Z[0], features[t]) and near(state, states[t + 1])):
            return f"encode_rows of the row of step {t} alone is not what advance and encode gave"
    history = case.history()
    first, last = history.now - len(contexts), history.now
    half = (first + last) // 2
    one_by_one, states = [], [built.start()]
    for row in range(first, last):
        Z, state = built.encode_rows(history.rows_between(row, row + 1), states[-1])
        one_by_one.append(Z[0])
        states.append(state)
    for begin, end in ((first, last), (first, half), (half, last)):
        Z, state = built.encode_rows(history.rows_between(begin, end), states[begin - first])
        expected = np.stack(one_by_one[begin - first : end - first])
        if Z.shape != expected.shape:
            return f"encode_rows gave {check.describe(Z)}, not shape {check.shape_text(expected.shape)}"
        if not near(Z, expected):
            return f"encode_rows of {end - begin} rows is off from one by one by {np.abs(Z - expected).max():.2g}"
        if not near(state, states[end - first]):
            return f"encode_rows of {end - begin} rows ends in another state than one by one"
    return None


def _forecasts(case: EncoderCase) -> str | None:
    built = case.build()
    if not isinstance(built, BuiltForecaster):
        return None
    if not is_whole(built.forecasts) or built.forecasts < 1:
        return f"forecasts is {check.describe(built.forecasts)}, not a whole number ≥ 1"
    contexts = case.contexts(built)
    features, states = walk(built, contexts)
    for t, context in enumerate(contexts):
        for horizon in _HORIZONS:
            shape = (built.forecasts, horizon, case.y_dim)
            forecast = built.forecast(context._replace(state=states[t + 1]), horizon)
            if type(forecast) is not np.ndarray or forecast.shape != shape:
                wanted = check.shape_text(shape)
                return (
                    f"forecast gave {check.describe(forecast)} at step {t}, not (forecasts, horizon, y_dim) = {wanted}"
                )
            if wrong := wrong_array(
                f"the forecast of the next target at step {t}", forecast[:, 0], forecast[:, 0].shape
            ):
                return wrong
            if horizon == 1 and not near(forecast[:, 0].T, features[t]):
                return f"encode gave something else than the forecast of the next target at step {t}"
            if np.isinf(forecast).any():
                return f"a forecast at step {t} is infinite"
    return None


FAMILY_CONTRACTS = [
    Contract(
        "rows",
        "encode_rows of a RowEncoder gives for many rows what it gives one by one, as advance and encode do",
        "Compute each row from its own values and the state; thread the state through the rows in order.",
        _rows,
    ),
    Contract(
        "forecasts",
        "forecast gives (forecasts, horizon, y_dim), finite for the next target, else finite or NaN",
        "Return an array of this shape in the target's own units, with NaN for steps without a forecast.",
        _forecasts,
    ),
]
