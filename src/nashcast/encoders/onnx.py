"""A network saved in the ONNX format as an encoder, run on the processor by onnxruntime."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from nashcast import seeds
from nashcast import validation as check
from nashcast.encoders.forecaster import BuiltFeatures, optional
from nashcast.errors import InvalidInput

_TYPES = {"tensor(float)": np.float32, "tensor(double)": np.float64}


@dataclass(frozen=True)
class OnnxModel:
    """The first output, flattened: y_dim·features numbers, or more, which a random projection brings down.

    path: a file whose one input has shape (batch, x_dim).   features: how many the agent uses.
    seed: of the projection, needed only if the network gives more.
    """

    path: str | PathLike[str]
    features: int
    seed: int | None = None

    def __post_init__(self):
        if not isinstance(self.path, str | PathLike):
            raise InvalidInput("path", check.describe(self.path), "Pass the path of an ONNX file.")
        if not Path(self.path).is_file():
            raise InvalidInput("path", f"{str(self.path)!r}, which is no file", "Pass the path of an ONNX file.")
        check.integer("features", self.features, min=1)
        if self.seed is not None:
            seeds.key(self.seed)

    def build(self, x_dim: int, y_dim: int) -> BuiltFeatures:
        network = _Network(str(self.path), x_dim)
        return BuiltFeatures("path", network.answers, self.features, self.seed, (x_dim, y_dim))


class _Network:
    def __init__(self, path: str, x_dim: int):
        self._path, self._session = path, _session(path)
        inputs = self._session.get_inputs()
        shape = inputs[0].shape if len(inputs) == 1 else None
        # A length is a number, or a word or nothing where any length will do.
        if shape is None or len(shape) != 2 or (isinstance(shape[0], int) and shape[0] != 1):
            got = f"{path!r} with inputs of shape {', '.join(str(i.shape) for i in inputs)}"
            raise InvalidInput("path", got, f"Export it with one input of shape (batch, x_dim) = (batch, {x_dim}).")
        if isinstance(shape[1], int) and shape[1] != x_dim:
            got = f"{path!r}, which takes {shape[1]} numbers"
            raise InvalidInput("path", got, f"Inputs have x_dim = {x_dim} numbers: export it for those.")
        if inputs[0].type not in _TYPES:
            raise InvalidInput("path", f"{path!r} with an input of {inputs[0].type}", "Export it for float or double.")
        self._input, self._type, self._batched = inputs[0].name, _TYPES[inputs[0].type], not isinstance(shape[0], int)
        self._output = self._session.get_outputs()[0].name

    def answers(self, inputs: np.ndarray):
        if not self._batched:
            return [self._run(x[None]) for x in inputs]
        rows = self._run(inputs)
        if len(inputs) == 1:
            return [rows]
        if np.ndim(rows) == 0 or len(rows) != len(inputs):
            got = f"{self._path!r}, whose first output is not one row for each input"
            raise InvalidInput("path", got, "Export it with a first output of shape (batch, …).")
        return rows

    def _run(self, inputs: np.ndarray):
        try:
            return self._session.run([self._output], {self._input: inputs.astype(self._type)})[0]
        except Exception as error:  # onnxruntime's exceptions share no other parent
            remedy = f"It could not be run on {inputs.shape[1]} numbers an input: {_first_line(error)}"
            raise InvalidInput("path", repr(self._path), remedy) from error


def _session(path: str) -> Any:
    onnxruntime = optional("onnxruntime", "onnxruntime", "onnx")
    options = onnxruntime.SessionOptions()
    # Many agents share the processor; one thread each also keeps the order of its sums, so runs repeat.
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4  # what goes wrong is raised, not printed
    try:
        return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # as above
        remedy = f"onnxruntime cannot load it, export it again: {_first_line(error)}"
        raise InvalidInput("path", repr(path), remedy) from error


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0][:200]
