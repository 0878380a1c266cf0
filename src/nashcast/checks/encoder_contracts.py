"""The contracts of what an encoder encodes: shapes, purity, causality, batches, states and missing inputs."""

from __future__ import annotations

import copy
from typing import NamedTuple

import numpy as np

from nashcast import seeds
from nashcast import validation as check
from nashcast.agents.plain_state import from_arrays, to_arrays
from nashcast.checks.contract import Contract, is_whole, near, same, wrong_numbers
from nashcast.encoders.base import BuiltEncoder, Encoder, Noise, State

FIRST_STEP = 5  # the first step's number: not 0, so that an encoder that ignores it is noticed


class EncoderCase(NamedTuple):
    """What an encoder is checked with."""

    encoder: Encoder
    x_dim: int
    y_dim: int
    inputs: np.ndarray
    key: int
    seed: int

    def build(self) -> BuiltEncoder:
        return self.encoder.build(self.x_dim, self.y_dim)


def is_plain(state: State) -> bool:
    """Whether a state can be saved: None, a number, an array of numbers, or a tuple of those."""
    if isinstance(state, tuple):
        return all(is_plain(part) for part in state)
    if type(state) is np.ndarray:
        return state.dtype.kind in "biuf"
    return state is None or isinstance(state, int | float | np.integer | np.floating)


def restored(state: State) -> State:
    """The state as it comes back from a file: plain values, whatever class a tuple had."""
    return from_arrays("state", to_arrays("state", state))


def walk(built: BuiltEncoder, inputs: np.ndarray, key: int) -> tuple[list[np.ndarray], list[State]]:
    """Features of every step and the states around them, one `encode` at a time. Rows are views on purpose:
    an encoder that reaches through them is caught.
    """
    features, states = [], [built.start()]
    for t, x in enumerate(inputs):
        Z, state = built.encode(x, states[-1], Noise(key, FIRST_STEP + t))
        features.append(Z)
        states.append(state)
    return features, states


def _builds(case: EncoderCase) -> str | None:
    built = case.build()
    features = getattr(built, "features", None)
    if not is_whole(features):
        return f"features is {check.describe(features)}, not a whole number ≥ 0"
    for name in ("relative", "accepts_missing"):
        if not isinstance(getattr(built, name), bool):
            return f"{name} is {check.describe(getattr(built, name))}, not True or False"
    return None


def _shapes(case: EncoderCase) -> str | None:
    built, X = case.build(), case.inputs.copy()
    shape = (case.y_dim, built.features)
    features, _ = walk(built, X, case.key)
    for t, Z in enumerate(features):
        if type(Z) is not np.ndarray or Z.shape != shape:
            return f"encode gave {check.describe(Z)} at step {t}, not (y_dim, features) = {check.shape_text(shape)}"
    series, _ = built.encode_series(X, built.start(), case.key, FIRST_STEP)
    if type(series) is not np.ndarray or series.shape != (len(X), *shape):
        wanted = check.shape_text((len(X), *shape))
        return f"encode_series gave {check.describe(series)}, not (steps, y_dim, features) = {wanted}"
    return None


def _numbers(case: EncoderCase) -> str | None:
    built, X = case.build(), case.inputs.copy()
    for t, Z in enumerate(walk(built, X, case.key)[0]):
        if wrong := wrong_numbers(f"what encode gave at step {t}", Z):
            return wrong
    return wrong_numbers("what encode_series gave", built.encode_series(X, built.start(), case.key, FIRST_STEP)[0])


def _plain_state(case: EncoderCase) -> str | None:
    _, states = walk(case.build(), case.inputs.copy(), case.key)
    for t, state in enumerate(states):
        if not is_plain(state):
            return f"the state before step {t} is {check.describe(state)}"
    return None


def _purity(case: EncoderCase) -> str | None:
    built, X = case.build(), case.inputs.copy()
    given = copy.deepcopy(built.start())
    features, states = walk(built, X, case.key)
    if not np.array_equal(X, case.inputs):
        return "encode changed x"
    features, before = [Z.copy() for Z in features], copy.deepcopy(states)
    if not same(given, before[0]):
        return "encode changed the state it was given"
    # Backwards: whatever the encoder keeps to itself is then not what it was.
    for t in reversed(range(len(X))):
        Z, state = built.encode(X[t], states[t], Noise(case.key, FIRST_STEP + t))
        if not (np.array_equal(X, case.inputs) and all(same(*pair) for pair in zip(states, before, strict=True))):
            return f"encode changed x or a state at step {t}"
        if not same(Z, features[t]):
            return f"the same x, state and noise gave other features the second time, at step {t}"
        if not same(state, before[t + 1]):
            return f"the same x, state and noise gave another state the second time, at step {t}"
    once = copy.deepcopy(built.encode_series(X, states[0], case.key, FIRST_STEP))
    if not (np.array_equal(X, case.inputs) and same(states[0], before[0])):
        return "encode_series changed its inputs or the state it was given"
    if not same(once, built.encode_series(X, states[0], case.key, FIRST_STEP)):
        return "encode_series gave something else the second time"
    Z, noise = np.stack(features), Noise(case.key, 0)
    expected = copy.deepcopy(built.moments(X, Z, noise))
    if not (np.array_equal(X, case.inputs) and np.array_equal(Z, np.stack(features))):
        return "moments changed its inputs or features"
    if not same(expected, built.moments(X, Z, noise)):
        return "moments gave something else the second time"
    return None


def _determinism(case: EncoderCase) -> str | None:
    X = case.inputs.copy()
    one, other = (walk(case.build(), X, case.key)[0] for _ in range(2))
    for t, pair in enumerate(zip(one, other, strict=True)):
        if not same(*pair):
            return f"two builds of the same description gave different features at step {t}"
    return None


def _causality(case: EncoderCase) -> str | None:
    built, X = case.build(), case.inputs.copy()
    rng = seeds.generator(case.seed, "checks", "other inputs")
    features = np.stack(walk(built, X, case.key)[0])
    series = built.encode_series(X, built.start(), case.key, FIRST_STEP)[0].copy()
    for s in range(1, len(X)):
        other = case.inputs.copy()
        # Made from the inputs given, where only such suit the encoder, yet none is what it was.
        other[s:] = other[rng.permutation(len(X))[: len(X) - s]] * rng.uniform(0.5, 2.0, (len(X) - s, 1))
        for name, got, wanted in (
            ("encode", np.stack(walk(built, other, case.key)[0]), features),
            ("encode_series", built.encode_series(other, built.start(), case.key, FIRST_STEP)[0], series),
        ):
            if not near(got[:s], wanted[:s]):
                return f"through {name}, inputs changed from step {s} on changed features before it"
    return None


def _batched(case: EncoderCase) -> str | None:
    built, X = case.build(), case.inputs.copy()
    features, states = walk(built, X, case.key)
    half = len(X) // 2
    for first, last in ((0, len(X)), (0, half), (half, len(X)), (half, half + 1)):
        got, state = built.encode_series(X[first:last], states[first], case.key, FIRST_STEP + first)
        if not near(got, np.stack(features[first:last])):
            worst = np.max(np.abs(got - np.stack(features[first:last])))
            return f"encode_series of steps {first} to {last - 1} is off from encode one by one by {worst:.2g}"
        if not near(state, states[last]):
            return f"encode_series of steps {first} to {last - 1} ends in another state than encode one by one"
    return None


def _resuming(case: EncoderCase) -> str | None:
    X = case.inputs.copy()
    features, states = walk(case.build(), X, case.key)
    # A new build, as in a new process: what was not in the state is gone.
    resumed, half = case.build(), len(X) // 2
    state = restored(states[half])
    for t in range(half, len(X)):
        Z, state = resumed.encode(X[t], restored(state), Noise(case.key, FIRST_STEP + t))
        if not near(Z, features[t]):
            return f"continued from a saved state of step {half}, the features of step {t} are others"
    return None


def _missing(case: EncoderCase) -> str | None:
    built = case.build()
    if not built.accepts_missing:
        return None
    for holes in (*((j,) for j in range(case.x_dim)), tuple(range(case.x_dim))):
        for step in (0, len(case.inputs) // 2):
            X = case.inputs.copy()
            X[step, list(holes)] = np.nan
            series = built.encode_series(X, built.start(), case.key, FIRST_STEP)[0]
            for Z in (np.stack(walk(built, X, case.key)[0]), series):
                bad = ~np.isfinite(Z)
                if bad.any():
                    t = int(np.argwhere(bad)[0][0])
                    return (
                        f"accepts_missing is True, but x with NaN at step {step} gave features not finite at step {t}"
                    )
    return None


ENCODING_CONTRACTS = [
    Contract(
        "builds",
        "build(x_dim, y_dim) works and declares features, a whole number ≥ 0",
        "Set self.features in the built encoder, and leave relative and accepts_missing True or False.",
        _builds,
    ),
    Contract(
        "shapes",
        "encode gives (y_dim, features), encode_series (steps, y_dim, features)",
        "Return NumPy arrays of the declared shape.",
        _shapes,
    ),
    Contract(
        "numbers",
        "features are float64 and finite",
        "Convert with np.asarray(Z, dtype=np.float64), and bound what can overflow or divide by 0.",
        _numbers,
    ),
    Contract(
        "plain state",
        "a state is None, a number, an array of numbers, or a tuple of those, so that it can be saved",
        "Return such a state from start and encode; keep dictionaries and objects out of it.",
        _plain_state,
    ),
    Contract(
        "purity",
        "the same arguments give the same result, and no argument is changed",
        "Keep what changes in the state, draw only from the noise given, and copy what is to be written to.",
        _purity,
    ),
    Contract(
        "determinism",
        "two builds of one description give the same features",
        "Draw weights from a seed in the description: nashcast.seeds.generator(self.seed, 'my encoder').",
        _determinism,
    ),
    Contract(
        "causality",
        "features at a step do not depend on later inputs",
        "Use nothing but x and the state; in encode_series, no mean or scale of the whole series.",
        _causality,
    ),
    Contract(
        "batched",
        "encode_series gives what encode gives one by one, features and last state",
        "Correct encode_series, or remove it: the one inherited calls encode.",
        _batched,
    ),
    Contract(
        "resuming",
        "continuing from a saved state gives the same features",
        "Keep all memory in the state, and read it by position: it comes back as plain values.",
        _resuming,
    ),
    Contract(
        "missing inputs",
        "if accepts_missing, features are finite where x has NaN",
        "Replace NaN before using it, or leave accepts_missing False and the encoder sits such steps out.",
        _missing,
    ),
]
