"""One step of the default federation: `forecast_step` looks ahead and learns nothing, `learn_step` takes in what came.

The compiled parts are called one by one: compiled as one, they would take a minute.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from nashcast.adaptive.decoding import fill_forecasts
from nashcast.adaptive.features import advance_echo, fill_features, read_inputs
from nashcast.adaptive.learning import append_row, bring_up_to_date
from nashcast.adaptive.memory import FALLBACKS, ROWS, Memory
from nashcast.adaptive.mixing import learn_mixture, mix
from nashcast.adaptive.plan import LEARNERS, MOST_INPUTS, Plan


def forecast_step(plan: Plan, memory: Memory, x: np.ndarray, outside: np.ndarray, here: np.ndarray) -> None:
    """Forecast the next target from x; all it writes is overwritten by the next forecast.

    x: (x_dim,), NaN where an input is missing: it is taken as it last was.
    outside: the outside agents' forecasts, (agents, y_dim); here: which of them have one.
    """
    _look(plan, memory, x)
    fill_forecasts(plan, memory)
    mix(plan, memory, outside, here)


def learn_step(plan: Plan, memory: Memory, target: np.ndarray, known: bool) -> None:
    """What was forecast is revealed. If it is not known, the forecast stands in for it and teaches nothing."""
    if known:
        learn_mixture(plan, memory, target)
    memory.last_weights[:] = memory.weights
    memory.cuts[:] += memory.held
    memory.counts[FALLBACKS : FALLBACKS + 3] += memory.happened
    again = append_row(plan, memory, target if known else memory.forecast.copy(), known)
    bring_up_to_date(plan, memory, again, known)


@njit(cache=True)
def _look(plan, memory, x):
    """The present row's features for every learner and target."""
    row = memory.counts[ROWS] - 1
    for j in range(len(x)):
        known = abs(x[j]) < np.inf
        memory.inputs[row, j] = x[j] if known else (memory.inputs[row - 1, j] if row > 0 else 0.0)
    q = min(len(x), MOST_INPUTS)
    values, changes = np.zeros(q), np.zeros(q)
    read_inputs(plan, memory, row, values, changes)
    advance_echo(plan, memory, row, values, memory.echo, memory.next_echo)
    for learner in range(LEARNERS):
        for k in range(memory.targets.shape[1]):
            out = memory.features[learner, k]
            fill_features(plan, memory, learner + 1, row, k, values, changes, memory.next_echo, out)
