"""The contracts of every encoder's features: shapes, purity, causality, states and missing inputs."""

from __future__ import annotations

import copy

import numpy as np

from nashcast import seeds
from nashcast import validation as check
from nashcast.checks.contract import Contract, is_whole, near, same, wrong_numbers
from nashcast.checks.encoder_case import (
    FIRST_STEP,
    EncoderCase,
    copied,
    is_plain,
    read_only,
    restored,
    sees_inputs_alone,
    step,
    walk,
)
from nashcast.encoders.base import BuiltEncoder, Noise


def _builds(case: EncoderCase) -> str | None:
    built = case.build()
    for name in ("features", "past_inputs", "past_targets"):
        value = getattr(built, name, None)
        if not is_whole(value):
            return f"{name} is {check.describe(value)}, not a whole number ≥ 0"
    for name in ("relative", "accepts_missing"):
        if not isinstance(getattr(built, name), bool):
            return f"{name} is {check.describe(getattr(built, name))}, not True or False"
    return None


def _series(case: EncoderCase, built: BuiltEncoder) -> np.ndarray | None:
    """The whole series encoded at once from the first state, if the encoder supports it."""
    if not sees_inputs_alone(built):
        return None
    return built.encode_series(case.inputs.copy(), built.start(), case.key, FIRST_STEP)[0]


def _shapes(case: EncoderCase) -> str | None:
    built = case.build()
    shape = (case.y_dim, built.features)
    for t, Z in enumerate(walk(built, case.contexts(built)).features):
        if type(Z) is not np.ndarray or Z.shape != shape:
            return f"encode gave {check.describe(Z)} at step {t}, not (y_dim, features) = {check.shape_text(shape)}"
    wanted, series = (len(case.inputs), *shape), _series(case, built)
    if sees_inputs_alone(built) and (type(series) is not np.ndarray or series.shape != wanted):
        got = check.describe(series)
        return f"encode_series gave {got}, not (steps, y_dim, features) = {check.shape_text(wanted)}"
    return None


def _numbers(case: EncoderCase) -> str | None:
    built = case.build()
    for t, Z in enumerate(walk(built, case.contexts(built)).features):
        if wrong := wrong_numbers(f"what encode gave at step {t}", Z):
            return wrong
    series = _series(case, built)
    return None if series is None else wrong_numbers("what encode_series gave", series)


def _plain_state(case: EncoderCase) -> str | None:
    built = case.build()
    for t, state in enumerate(walk(built, case.contexts(built)).states):
        if not is_plain(state):
            return f"the state before step {t} is {check.describe(state)}"
    return None


def _purity(case: EncoderCase) -> str | None:
    built = case.build()
    contexts, given = case.contexts(built), copy.deepcopy(built.start())
    shown = copied(contexts)
    features, states = walk(built, contexts)
    if not _untouched(contexts, shown):
        return "advance or encode changed the context it was given"
    features, before = [Z.copy() for Z in features], copy.deepcopy(states)
    if not same(given, before[0]):
        return "advance or encode changed the state it was given"
    # Backwards, so that any hidden state of the encoder differs from the first pass.
    for t in reversed(range(len(contexts))):
        Z, state = step(built, contexts[t], states[t])
        if not (_untouched(contexts, shown) and all(map(same, states, before))):
            return f"advance or encode changed the context or a state at step {t}"
        if not same(Z, features[t]):
            return f"the same context gave other features the second time, at step {t}"
        if not same(state, before[t + 1]):
            return f"the same context gave another state the second time, at step {t}"
    walk(built, read_only(contexts))  # raises if the encoder writes to its context
    return _pure_series(case, built) or _pure_moments(case, built, np.stack(features))


def _untouched(contexts, shown) -> bool:
    return all(same(tuple(now), tuple(then)) for now, then in zip(copied(contexts), shown, strict=True))


def _pure_series(case: EncoderCase, built: BuiltEncoder) -> str | None:
    if not sees_inputs_alone(built):
        return None
    X, start = case.inputs.copy(), built.start()
    before = copy.deepcopy(start)
    once = copy.deepcopy(built.encode_series(X, start, case.key, FIRST_STEP))
    if not (same(X, case.inputs) and same(start, before)):
        return "encode_series changed its inputs or the state it was given"
    if not same(once, built.encode_series(X, start, case.key, FIRST_STEP)):
        return "encode_series gave a different result the second time"
    return None


def _pure_moments(case: EncoderCase, built: BuiltEncoder, features: np.ndarray) -> str | None:
    X, Z, noise = case.inputs.copy(), features.copy(), Noise(case.key, 0)
    expected = copy.deepcopy(built.moments(X, Z, noise))
    if not (same(X, case.inputs) and same(Z, features)):
        return "moments changed its inputs or features"
    if not same(expected, built.moments(X, Z, noise)):
        return "moments gave a different result the second time"
    return None


def _determinism(case: EncoderCase) -> str | None:
    one, other = (walk(built, case.contexts(built)).features for built in (case.build(), case.build()))
    for t, pair in enumerate(zip(one, other, strict=True)):
        if not same(*pair):
            return f"two builds of the same description gave different features at step {t}"
    return None


def _causality(case: EncoderCase) -> str | None:
    built, steps = case.build(), len(case.inputs)
    rng = seeds.generator(case.seed, "checks", "other inputs")
    features = np.stack(walk(built, case.contexts(built)).features)
    series = _series(case, built)
    for s in range(1, steps):
        X, Y = case.inputs.copy(), case.targets.copy()
        # Scaled permutations of the given rows, since the encoder may need inputs of this kind.
        X[s:] = X[rng.permutation(steps)[: steps - s]] * rng.uniform(0.5, 2.0, (steps - s, 1))
        Y[s:] = Y[rng.permutation(steps + 1)[: steps + 1 - s]] * rng.uniform(0.5, 2.0, (steps + 1 - s, 1))
        other = case._replace(inputs=X, targets=Y)
        got = np.stack(walk(built, other.contexts(built)).features)
        if not near(got[:s], features[:s]):
            return f"through encode, inputs and targets changed from step {s} on changed features before it"
        if series is not None and not near(_series(other, built)[:s], series[:s]):  # pyright: ignore[reportOptionalSubscript]
            return f"through encode_series, inputs changed from step {s} on changed features before it"
    return None


def _batched(case: EncoderCase) -> str | None:
    built, X = case.build(), case.inputs.copy()
    if not sees_inputs_alone(built):
        return None
    features, states = walk(built, case.contexts(built))
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
    built = case.build()
    contexts = case.contexts(built)
    features, states = walk(built, contexts)
    # A new build, as in a new process: memory outside the state is lost.
    resumed, half = case.build(), len(contexts) // 2
    state = restored(resumed.start(), states[half])
    for t in range(half, len(contexts)):
        Z, state = step(resumed, contexts[t], restored(resumed.start(), state))
        if not near(Z, features[t]):
            return f"continued from a saved state of step {half}, the features of step {t} differ"
    return None


def _missing(case: EncoderCase) -> str | None:
    built = case.build()
    if not built.accepts_missing:
        return None
    holes = {(j,) for j in range(case.x_dim)} | {tuple(range(case.x_dim))}
    for hole in sorted(holes):
        for at in (0, len(case.inputs) // 2):
            X = case.inputs.copy()
            X[at, list(hole)] = np.nan
            holed = case._replace(inputs=X)
            features = [np.stack(walk(built, holed.contexts(built)).features), _series(holed, built)]
            for Z in features:
                if Z is not None and not np.isfinite(Z).all():
                    t = int(np.argwhere(~np.isfinite(Z))[0][0])
                    return f"accepts_missing is True, but x with NaN at step {at} gave features not finite at step {t}"
    return None


ENCODING_CONTRACTS = [
    Contract(
        "builds",
        "build(x_dim, y_dim) works and declares features, past_inputs and past_targets, whole numbers ≥ 0",
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
        "Return such a state from start and advance; keep dictionaries and objects out of it.",
        _plain_state,
    ),
    Contract(
        "purity",
        "the same context gives the same result, and nothing in it is changed",
        "Keep all changes in the state, draw only from the noise given, and copy arrays before writing to them.",
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
        "features at a step do not depend on later inputs or targets",
        "Use nothing but the context; in encode_series, no mean or scale of the whole series.",
        _causality,
    ),
    Contract(
        "batched",
        "encode_series gives what encode gives one by one, features and last state",
        "Correct encode_series, or remove it; declare past_inputs and past_targets if encode uses them.",
        _batched,
    ),
    Contract(
        "resuming",
        "continuing from a saved state gives the same features",
        "Keep all memory in the state, of one kind and shape from the start on, and read it by position.",
        _resuming,
    ),
    Contract(
        "missing inputs",
        "if accepts_missing, features are finite where x has NaN",
        "Replace NaN before using it, or leave accepts_missing False and the encoder sits such steps out.",
        _missing,
    ),
]
