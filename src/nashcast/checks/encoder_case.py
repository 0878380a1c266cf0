"""Test case of an encoder: a short stream, and the contexts that a federation would pass at every step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from nashcast.agents.history import History
from nashcast.agents.units.plain_state import restored_state, to_arrays
from nashcast.encoders.base import BuiltEncoder, BuiltLearner, Context, Encoder, Noise, RowEncoder, State

STEPS = 24  # of the stream: enough for encoders that compare the present with the past
FIRST_STEP = 5  # the first step's number: not 0, so that an encoder that ignores it is noticed
SEASON = 4  # given, so that encoders of a season have one from the first step on


class EncoderCase(NamedTuple):
    """A test case of an encoder."""

    encoder: Encoder
    x_dim: int
    y_dim: int
    inputs: np.ndarray  # (steps, x_dim)
    targets: np.ndarray  # (steps + 1, y_dim): the first known one, and the one each step is to forecast
    key: int
    seed: int
    objects: Sequence[Mapping[str, Any]] = ()  # texts and pictures of every step, if the encoder takes any

    def build(self) -> BuiltEncoder:
        """Give a learner half of the labels: an untrained learner need not forecast."""
        built = self.encoder.build(self.x_dim, self.y_dim)
        if isinstance(built, BuiltLearner):
            self.teach(built, len(self.inputs) // 2)
        return built

    def teach(self, built: BuiltLearner, steps: int) -> None:
        """Give the first labels in turn."""
        for context, target in zip(self.contexts(built)[:steps], self.targets[1:], strict=False):
            built.learn_row(built.row(context).copy(), target.copy())

    def contexts(self, built: BuiltEncoder) -> list[Context]:
        """The context of every step, without a state.

        Arrays are writable views of memory that also holds later steps, so that an encoder that writes to them or
        reads beyond them is detected.
        """
        X, Y = self.inputs.copy(), self.targets
        history = History(self.x_dim, Y[0].copy(), SEASON, FIRST_STEP)
        wants, found = (built.past_inputs, built.past_targets), []
        for t, x in enumerate(X):
            history.revise_scales()
            history.put_input(x)
            rows = history.rows_between(history.now, history.now + 1)
            seen = history.inputs[history.now] if isinstance(built, RowEncoder) else x
            context = history.context(rows, seen, None, wants, Noise(self.key, FIRST_STEP + t))
            if self.objects:
                context = context._replace(objects=self.objects[t])
            for array in _arrays(context):
                array.flags.writeable = True
            found.append(context)
            history.append(Y[t + 1], True)
        return found

    def history(self) -> History:
        """The history after the last step."""
        history = History(self.x_dim, self.targets[0].copy(), SEASON, FIRST_STEP)
        for x, y in zip(self.inputs, self.targets[1:], strict=True):
            history.put_input(x)
            history.append(y, True)
        history.revise_scales()
        return history


class Walked(NamedTuple):
    """The features and states of every step, encoded in turn."""

    features: list[np.ndarray]
    states: list[State]  # before the first step, and after every step


def step(built: BuiltEncoder, context: Context, state: State) -> tuple[np.ndarray, State]:
    """Features of one step and the state after it."""
    after = built.advance(context._replace(state=state))
    return built.encode(context._replace(state=after)), after


def walk(built: BuiltEncoder, contexts: list[Context]) -> Walked:
    features, states = [], [built.start()]
    for context in contexts:
        Z, state = step(built, context, states[-1])
        features.append(Z)
        states.append(state)
    return Walked(features, states)


def sees_inputs_alone(built: BuiltEncoder) -> bool:
    """Whether it declares that the present input and its state are all it uses, so that it can encode a series."""
    past = built.past_inputs or built.past_targets or built.objects or isinstance(built, BuiltLearner)
    return not isinstance(built, RowEncoder) and not past


def copied(contexts: list[Context]) -> list[list[np.ndarray]]:
    """A copy of each context's contents."""
    return [[array.copy() for array in _arrays(context)] for context in contexts]


def read_only(contexts: list[Context]) -> list[Context]:
    """The same contexts with read-only arrays, as a federation passes them."""
    found = []
    for context in contexts:
        views = [array.view() for array in _arrays(context)]
        for view in views:
            view.flags.writeable = False
        x, inputs, targets, times = views
        found.append(context._replace(x=x, inputs=inputs, targets=targets, times=times))
    return found


def _arrays(context: Context) -> list[np.ndarray]:
    return [context.x, context.inputs, context.targets, context.times]


def is_plain(state: State) -> bool:
    """Whether a state can be saved: None, a number, an array of numbers, or a tuple of those."""
    if isinstance(state, tuple):
        return all(is_plain(part) for part in state)
    if type(state) is np.ndarray:
        return state.dtype.kind in "biuf"
    return state is None or isinstance(state, int | float | np.integer | np.floating)


def restored(start: State, state: State) -> State:
    """The state as read back from a file: plain values, and plain tuples."""
    saved = to_arrays("", state)
    return restored_state(start, saved)
