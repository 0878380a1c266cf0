"""A network saved in the ONNX format as an encoder, run on the processor by onnxruntime."""

from __future__ import annotations

from collections.abc import Callable as Function
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from nashcast import seeds
from nashcast import validation as check
from nashcast.encoders.adapters.onnx_graph import Declared, Plan, planned, shaped, zeros
from nashcast.encoders.base import BuiltEncoder, Context, State
from nashcast.encoders.black_box.features import BuiltFeatures, Projection
from nashcast.errors import InvalidInput, NashcastError
from nashcast.extras import needed


@dataclass(frozen=True, eq=False)
class OnnxModel:
    """An output of a network, flattened: y_dim·features numbers, or more, which a random projection reduces to that.

    path: the file.   features: how many the agent uses.   seed: for the projection, if the network gives more.
    inputs: for a network with several data inputs, the places of x that each takes, by name.
    constants: values of inputs that never change, for example {"sr": 16000}.
    shapes: shapes of inputs whose lengths are not fixed, for example {"x": (1, 3, 48, 192)}.
    states: the input and the output of each recurrent state, for example {"h": "hn"}; found by their names if None.
    output: the one to use; by default the first of real numbers that is not a state.
    prepare: a function that turns x, or the text or picture in `column`, into the data input, or into a dict of inputs.
    column: the one with texts or pictures; "" if the whole input is one.

    A network of one input (batch, x_dim) needs only a path and features.
    """

    path: str | PathLike[str]
    features: int
    seed: int | None = None
    inputs: Mapping[str, Sequence[int]] = field(default_factory=dict)
    constants: Mapping[str, Any] = field(default_factory=dict)
    shapes: Mapping[str, Sequence[int]] = field(default_factory=dict)
    states: Mapping[str, str] | None = None
    output: str | None = None
    prepare: Function[[Any], Any] | None = None
    column: str | None = None

    def __post_init__(self):
        if not isinstance(self.path, str | PathLike):
            raise InvalidInput("path", check.describe(self.path), "Pass the path of an ONNX file.")
        if not Path(self.path).is_file():
            raise InvalidInput("path", f"{str(self.path)!r}, which is no file", "Pass the path of an ONNX file.")
        check.integer("features", self.features, min=1)
        if self.seed is not None:
            seeds.key(self.seed)
        for name in ("inputs", "constants", "shapes", "states"):
            value = getattr(self, name)
            if not isinstance(value, Mapping) and not (name == "states" and value is None):
                raise InvalidInput(name, check.describe(value), "Pass a dict by the names of the network's inputs.")
        if self.prepare is not None and not callable(self.prepare):
            raise InvalidInput("prepare", check.describe(self.prepare), "Pass a function of x.")
        if self.column is not None and self.prepare is None:
            raise InvalidInput("prepare", "None", f"Pass a function of what is in the column {self.column!r}.")

    @property
    def objects(self) -> tuple[str, ...]:
        return () if self.column is None else (self.column,)

    def build(self, x_dim: int, y_dim: int) -> BuiltEncoder:
        session = _session(str(self.path))
        declared = Declared(self.inputs, self.constants, self.shapes, self.states, self.output)
        plan = planned(session, declared, None if self.prepare is not None else x_dim)
        network = _Network(str(self.path), session, plan)
        if self.prepare is None and network.batched:
            return BuiltFeatures("path", network.answers, self.features, self.seed, (x_dim, y_dim))
        return _BuiltNetwork(self, network, Projection("path", self.features, self.seed, y_dim), x_dim)


class _BuiltNetwork(BuiltEncoder):
    """One step at a time, with recurrent states if there are any. The state is these and the output."""

    def __init__(self, description: OnnxModel, network: _Network, projection: Projection, x_dim: int):
        self._network, self._projection, self._prepare = network, projection, description.prepare
        self.features, self.objects = description.features, description.objects
        self.accepts_missing = bool(self.objects)  # then it uses no numbers
        if self._prepare is None:
            # A network that cannot run on such inputs is refused here, not at every step.
            output, _ = network.step(np.zeros(x_dim), network.first_states())
            projection.of(output)

    def start(self) -> State:
        states = self._network.first_states()
        return (*states, np.zeros(0)) if states else None

    def advance(self, context: Context) -> State:
        if context.state is None:
            return None
        output, states = self._network.step(self._data(context), context.state[:-1])
        return (*states, output)

    def encode(self, context: Context) -> np.ndarray:
        output = self._network.step(self._data(context), ())[0] if context.state is None else context.state[-1]
        return self._projection.of(output)

    def _data(self, context: Context) -> Any:
        if self._prepare is None:
            return context.x
        if not self.objects:
            return self._prepare(context.x.copy())
        found = context.objects.get(self.objects[0])
        if found is None:
            raise NashcastError(f"its input has nothing in the column {self.objects[0]!r}")
        return self._prepare(found)


class _Network:
    def __init__(self, path: str, session: Any, plan: Plan):
        self._path, self._session, self._plan = path, session, plan
        slot = plan.data[0][0] if len(plan.data) == 1 else None
        # One input (any number of rows, numbers), and nothing else: many steps can be run at once.
        self.batched = slot is not None and not plan.states and len(slot.lengths) == 2 and slot.lengths[0] is None
        if self.batched and slot is not None and slot.lengths[1] not in (None, len(plan.data[0][1])):
            got = f"{path!r}, which takes {slot.lengths[1]} numbers"
            raise InvalidInput("path", got, f"Inputs have x_dim = {len(plan.data[0][1])} numbers: export it for those.")

    def first_states(self) -> tuple[np.ndarray, ...]:
        return tuple(zeros(slot) for slot, _ in self._plan.states)

    def step(self, data: Any, states: tuple[np.ndarray, ...]) -> tuple[np.ndarray, tuple[np.ndarray, ...]]:
        """data: x, or what `prepare` made.   Returns the output, flattened, and the states after the step."""
        plan = self._plan
        given = dict(plan.constants)
        given |= {slot.name: np.asarray(state) for (slot, _), state in zip(plan.states, states, strict=True)}
        output, *after = self._run(given | self._arranged(data), [plan.output, *(back for _, back in plan.states)])
        return np.asarray(output, dtype=np.float64).ravel(), tuple(after)

    def answers(self, inputs: np.ndarray):
        slot = self._plan.data[0][0]
        given = self._plan.constants | {slot.name: inputs.astype(slot.dtype)}
        rows = self._run(given, [self._plan.output], f"{inputs.shape[1]} numbers an input")[0]
        if len(inputs) == 1:
            return [rows]
        if np.ndim(rows) == 0 or len(rows) != len(inputs):
            got = f"{self._path!r}, whose first output is not one row for each input"
            raise InvalidInput("path", got, "Export it with a first output of shape (batch, …).")
        return rows

    def _arranged(self, data: Any) -> dict[str, np.ndarray]:
        slots = {slot.name: slot for slot, _ in self._plan.data}
        if isinstance(data, Mapping):
            missing = [str(slot) for name, slot in slots.items() if name not in data]
            if missing:
                raise InvalidInput("prepare", f"no {', '.join(missing)}", "Return every data input of the network.")
            return {name: np.asarray(data[name]).astype(slot.dtype) for name, slot in slots.items()}
        values = np.asarray(data)
        found = {}
        for slot, places in self._plan.data:
            own = values if not len(places) else values[places]
            found[slot.name] = (
                own.astype(slot.dtype) if own.ndim == len(slot.lengths) > 1 else shaped(slot, own.ravel())
            )
        return found

    def _run(self, given: dict[str, np.ndarray], outputs: list[str], what: str = "such inputs") -> list[Any]:
        try:
            return self._session.run(outputs, given)
        except Exception as error:  # onnxruntime's exceptions share no other parent
            remedy = f"It could not be run on {what}: {_first_line(error)}"
            raise InvalidInput("path", repr(self._path), remedy) from error


def _session(path: str) -> Any:
    onnxruntime = needed("onnxruntime", "onnxruntime", "onnx", "encoder")
    options = onnxruntime.SessionOptions()
    # Many agents share the processor; with one thread each, the order of sums is fixed and runs are reproducible.
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4  # errors are raised, not printed
    try:
        return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # as above
        remedy = f"onnxruntime cannot load it, export it again: {_first_line(error)}"
        raise InvalidInput("path", repr(path), remedy) from error


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0][:200]
