"""The inputs and outputs of an ONNX graph: which carry the data, which a recurrent state, which are constant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from nashcast import validation as check
from nashcast.errors import InvalidInput

TYPES = {
    "tensor(float)": np.float32, "tensor(double)": np.float64, "tensor(float16)": np.float16,
    "tensor(int64)": np.int64, "tensor(int32)": np.int32, "tensor(int16)": np.int16, "tensor(int8)": np.int8,
    "tensor(uint64)": np.uint64, "tensor(uint32)": np.uint32, "tensor(uint16)": np.uint16, "tensor(uint8)": np.uint8,
    "tensor(bool)": np.bool_,
}  # fmt: skip
# How the output of a recurrent state is named after its input.
_SUFFIXES = ("N", "n", "_n", "_out", "_new", "_next", "Out", "Next", "_output")


class Slot(NamedTuple):
    """One input of the graph.   lengths: a number for each axis, None where any length is valid."""

    name: str
    dtype: Any
    lengths: tuple[int | None, ...]

    def __str__(self) -> str:
        shape = check.shape_text(tuple("any" if n is None else n for n in self.lengths))
        return f"{self.name!r} ({np.dtype(self.dtype)}, {'one number' if not self.lengths else 'shape ' + shape})"


class Plan(NamedTuple):
    """data: inputs made of x, with the places of x that each takes.   states: input and output of each state."""

    data: list[tuple[Slot, np.ndarray]]
    states: list[tuple[Slot, str]]
    constants: dict[str, np.ndarray]
    output: str


class Declared(NamedTuple):
    """The user's declarations about a graph; see `OnnxModel`."""

    inputs: Mapping[str, Sequence[int]]
    constants: Mapping[str, Any]
    shapes: Mapping[str, Sequence[int]]
    states: Mapping[str, str] | None
    output: str | None


def planned(session: Any, declared: Declared, x_dim: int | None) -> Plan:
    """x_dim: numbers in x; None if a function prepares the data. Raises InvalidInput, which names what is missing."""
    slots = {one.name: _slot(one, declared.shapes) for one in session.get_inputs()}
    outputs = {one.name: one for one in session.get_outputs()}
    for kind in ("inputs", "constants", "shapes"):
        _check_known(kind, getattr(declared, kind), list(slots))
    states = _found_states(slots, outputs, declared) if declared.states is None else dict(declared.states)
    _check_known("states", states, list(slots))
    for name in states.values():
        _check_known("states", [name], list(outputs))
    constants = {name: _constant(slots[name], value) for name, value in declared.constants.items()}
    left = [slot for name, slot in slots.items() if name not in constants and name not in states]
    data = _data(left, declared, x_dim)
    output = _output(outputs, set(states.values()), declared.output)
    return Plan(data, [(slots[name], back) for name, back in states.items()], constants, output)


def zeros(slot: Slot) -> np.ndarray:
    """The first state; lengths that are not fixed are 1."""
    return np.zeros([1 if n is None else n for n in slot.lengths], dtype=slot.dtype)


def shaped(slot: Slot, values: np.ndarray) -> np.ndarray:
    """Numbers in the shape of an input: a first axis of any length is 1, another one takes the remaining length."""
    lengths = [1 if n is None and axis == 0 and len(slot.lengths) > 1 else n for axis, n in enumerate(slot.lengths)]
    fixed = prod(n for n in lengths if n is not None)
    if lengths.count(None) == 1 and fixed and values.size % fixed == 0:
        lengths[lengths.index(None)] = values.size // fixed
    elif None in lengths:
        example = tuple(1 if axis == 0 else n or "…" for axis, n in enumerate(slot.lengths))
        remedy = f"Its lengths are not fixed: pass shapes={{{slot.name!r}: {check.shape_text(example)}}}."
        raise InvalidInput("path", f"the input {slot} for {values.size} numbers", remedy)
    elif prod(n for n in lengths if n is not None) != values.size:
        wanted = prod(n for n in lengths if n is not None)
        got = f"a network with the input {slot}, which takes {wanted} numbers"
        raise InvalidInput(
            "path", got, f"Inputs have x_dim = {values.size} numbers: pass as many, or export it for those."
        )
    return values.reshape([n for n in lengths if n is not None]).astype(slot.dtype)


def _slot(one: Any, shapes: Mapping[str, Sequence[int]]) -> Slot:
    if one.type not in TYPES:
        remedy = "Export it for numbers, or leave text to another model in front of it."
        raise InvalidInput("path", f"a network with the input {one.name!r} of {one.type}", remedy)
    lengths = tuple(n if isinstance(n, int) and n > 0 else None for n in one.shape)
    if one.name in shapes:
        given = tuple(check.integer(f"shapes[{one.name!r}]", n, min=1) for n in shapes[one.name])
        fits = len(given) == len(lengths) and all(n in (None, m) for n, m in zip(lengths, given, strict=True))
        if not fits:
            wanted = check.shape_text(tuple("any" if n is None else n for n in lengths))
            raise InvalidInput("shapes", f"{given} for {one.name!r}", f"The network takes {wanted}.")
        lengths = given
    return Slot(one.name, TYPES[one.type], lengths)


def _found_states(slots: Mapping[str, Slot], outputs: Mapping[str, Any], declared: Declared) -> dict[str, str]:
    """Inputs that recur as outputs, with a related name, the same type and as many axes."""
    found = {}
    for name, slot in slots.items():
        if name in declared.inputs or name in declared.constants or len(slots) == 1:
            continue
        names = [name + suffix for suffix in _SUFFIXES]
        names += [name.replace("_in", "_out"), name.replace("past", "present"), f"new_{name}", f"next_{name}"]
        for back in names:
            one = outputs.get(back)
            if one is not None and TYPES.get(one.type) == slot.dtype and len(one.shape) == len(slot.lengths):
                found[name] = back
                break
    return found


def _data(left: list[Slot], declared: Declared, x_dim: int | None) -> list[tuple[Slot, np.ndarray]]:
    """Which numbers of x each input takes. One input takes all of x; for several this must be declared."""
    if x_dim is None:
        return [(slot, np.empty(0, dtype=np.int64)) for slot in left]
    given = [slot for slot in left if slot.name in declared.inputs]
    rest = [slot for slot in left if slot.name not in declared.inputs]
    if not given and (large := [slot for slot in rest if slot.lengths]) and len(large) == 1:
        given, rest = large, [slot for slot in rest if slot is not large[0]]
        places = {given[0].name: range(x_dim)}
    else:
        places = declared.inputs
    if rest:
        missing = ", ".join(map(str, rest))
        names = ", ".join(f"{slot.name!r}: …" for slot in rest)
        remedy = f"Pass constants={{{names}}} for fixed values, inputs={{{names}}} for places of x, or prepare=."
        raise InvalidInput("path", f"a network whose input {missing} is missing", remedy)
    found = []
    for slot in given:
        own = [check.integer(f"inputs[{slot.name!r}]", place, min=0) for place in places[slot.name]]
        if own and max(own) >= x_dim:
            raise InvalidInput("inputs", f"place {max(own)} for {slot.name!r}", f"x has x_dim = {x_dim} numbers.")
        found.append((slot, np.array(own, dtype=np.int64)))
    return found


def _constant(slot: Slot, value: Any) -> np.ndarray:
    array = np.asarray(value).astype(slot.dtype)
    lengths = tuple(1 if n is None else n for n in slot.lengths)
    return array.reshape(lengths) if array.size == prod(lengths) else array


def _output(outputs: Mapping[str, Any], states: set[str], wanted: str | None) -> str:
    """The one asked for; else the first of real numbers, else the first of numbers."""
    if wanted is not None:
        _check_known("output", [wanted], list(outputs))
        return wanted
    for kinds in ("f", "iub"):
        for name, one in outputs.items():
            if name not in states and one.type in TYPES and np.dtype(TYPES[one.type]).kind in kinds:
                return name
    raise InvalidInput("path", "a network without an output of numbers", "Export it with one.")


def _check_known(argument: str, names: Any, known: list[str]) -> None:
    for name in names:
        if name not in known:
            raise InvalidInput(argument, repr(name), f"The network has {', '.join(map(repr, known))}.")
