"""A pre-trained transformer as a frozen encoder. It runs in NumPy from its arrays; only pre-training needs PyTorch."""

from __future__ import annotations

import io
import json
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from nashcast import validation as check
from nashcast.encoders.base import BuiltEncoder, Context
from nashcast.errors import InvalidInput

# The paper, "Pre-training Details for transformer Models".
LAYERS = 2
HEADS = 2
FEED_FORWARD = 16
# PyTorch's, inside the root of every layer norm.
EPSILON = 1e-5

_FORMAT, _VERSION = "nashcast transformer", 1
# Numbers in one batch of attention scores: some 10 MB for any length of series.
_BATCH = 2**20


def heads_for(width: int) -> int:
    """Two heads, or one where two do not divide the width."""
    return HEADS if width % HEADS == 0 else 1


def weight_shapes(x_dim: int, width: int, positions: int) -> dict[str, tuple[int, ...]]:
    """The arrays of a transformer, named and shaped as in PyTorch's `nn.Linear` and `nn.TransformerEncoder`."""
    shapes = {"input.weight": (width, x_dim), "input.bias": (width,), "positions": (positions, width)}
    for i in range(LAYERS):
        shapes |= {
            f"encoder.layers.{i}.self_attn.in_proj_weight": (3 * width, width),
            f"encoder.layers.{i}.self_attn.in_proj_bias": (3 * width,),
            f"encoder.layers.{i}.self_attn.out_proj.weight": (width, width),
            f"encoder.layers.{i}.self_attn.out_proj.bias": (width,),
            f"encoder.layers.{i}.linear1.weight": (FEED_FORWARD, width),
            f"encoder.layers.{i}.linear1.bias": (FEED_FORWARD,),
            f"encoder.layers.{i}.linear2.weight": (width, FEED_FORWARD),
            f"encoder.layers.{i}.linear2.bias": (width,),
            f"encoder.layers.{i}.norm1.weight": (width,),
            f"encoder.layers.{i}.norm1.bias": (width,),
            f"encoder.layers.{i}.norm2.weight": (width,),
            f"encoder.layers.{i}.norm2.bias": (width,),
        }
    return shapes


@dataclass(frozen=True, eq=False)
class Transformer:
    r"""The paper's transformer encoder with trained weights, as `pretrain_transformer` makes it.

    Input projection, learned positions, two causal layers of width $d = d_y d_z$ with feed-forward 16, each ending in a
    layer norm; the d numbers are reshaped to $d_y \times d_z$. Two heads, or a single one where d is odd. The last
    layer norm limits the features: with d = 2 they take almost only two values, with d = 1 only one.

    weights: arrays by name, see `weight_shapes`; copied and made read-only.   y_dim: $d_y$.
    context: how many of the last inputs it sees, fewer at the start of a series. One, as published: a single step at
    position 0. With more, positions count within the context and the output at the last is used.
    look_ahead: whether it was also pre-trained on the period it is scored on, as the authors' were.

    Two transformers are equal only if they are the same object.
    """

    weights: Mapping[str, np.ndarray] = field(repr=False)
    y_dim: int
    context: int = 1
    look_ahead: bool = False
    x_dim: int = field(init=False)
    features: int = field(init=False)

    def __post_init__(self):
        check.integer("y_dim", self.y_dim, min=1)
        check.integer("context", self.context, min=1)
        if not isinstance(self.look_ahead, bool):
            raise InvalidInput("look_ahead", check.describe(self.look_ahead), "Pass True or False.")
        weights = _checked(self.weights)
        width, x_dim = weights["input.weight"].shape
        positions = len(weights["positions"])
        if width % self.y_dim:
            remedy = f"Pass a y_dim that divides the width of the weights, {width}."
            raise InvalidInput("y_dim", f"{self.y_dim}", remedy)
        if self.context > positions:
            remedy = f"Pass at most the {positions} positions it was trained for, or pre-train with longer sequences."
            raise InvalidInput("context", f"{self.context}", remedy)
        object.__setattr__(self, "weights", weights)
        object.__setattr__(self, "x_dim", x_dim)
        object.__setattr__(self, "features", width // self.y_dim)

    def build(self, x_dim: int, y_dim: int) -> _Built:
        for name, got, trained in (("x_dim", x_dim, self.x_dim), ("y_dim", y_dim, self.y_dim)):
            if got != trained:
                remedy = f"This transformer was trained for {name} = {trained}: pass that, or pre-train another."
                raise InvalidInput(name, f"{got}", remedy)
        return _Built(self)

    def save(self, path: str | Path) -> None:
        """Write arrays and settings to one npz file, at exactly this path. Nothing in it is pickled."""
        settings = {
            "format": _FORMAT,
            "version": _VERSION,
            "y_dim": int(self.y_dim),
            "context": int(self.context),
            "look_ahead": self.look_ahead,
        }
        content = io.BytesIO()
        arrays: dict[str, Any] = {"settings": np.array(json.dumps(settings)), **self.weights}
        np.savez(content, **arrays)
        try:
            Path(path).write_bytes(content.getvalue())
        except OSError as error:
            raise InvalidInput("path", f"{path} ({error.strerror})", "Pass a path that can be written.") from None

    @classmethod
    def load(cls, path: str | Path) -> Transformer:
        """Read what `save` wrote."""
        settings, weights = _read(path)
        version = settings.pop("version", None)
        if version != _VERSION:
            remedy = f"This nashcast reads version {_VERSION}: install the nashcast that wrote the file."
            raise InvalidInput("path", f"{path}, of version {version!r}", remedy)
        try:
            return cls(weights, **settings)
        except (InvalidInput, TypeError) as error:
            remedy = "The file was altered: save the transformer again."
            raise InvalidInput("path", f"{path}, whose contents do not fit together ({error})", remedy) from None


def _checked(weights: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Read-only float64 copies of all arrays, with names and shapes checked."""
    if not isinstance(weights, Mapping):
        raise InvalidInput("weights", check.describe(weights), "Pass a dict of arrays by name.")
    for name in ("input.weight", "positions"):
        if name not in weights:
            raise InvalidInput("weights", f"no array {name!r}", "Pass the arrays `weight_shapes` names.")
    width, x_dim = check.of_rank("weights['input.weight']", weights["input.weight"], ("d_model", "x_dim")).shape
    positions = len(check.of_rank("weights['positions']", weights["positions"], ("positions", "d_model")))
    shapes = weight_shapes(x_dim, width, positions)
    strangers = sorted(map(repr, weights.keys() ^ shapes.keys()))
    if strangers:
        got = f"arrays missing or not known: {', '.join(strangers)}"
        raise InvalidInput("weights", got, "Pass exactly the arrays `weight_shapes` names.")
    result = {}
    for name, shape in shapes.items():
        result[name] = check.array(f"weights[{name!r}]", weights[name], shape, "of the layer").copy()
        result[name].flags.writeable = False
    return result


def _read(path: str | Path) -> tuple[dict, dict[str, np.ndarray]]:
    """Settings without `format`, and arrays, of a file in the format of `save`."""
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        remedy = "Pass a file that Transformer.save wrote."
        raise InvalidInput("path", f"{path} ({error.strerror})", remedy) from None
    foreign = InvalidInput("path", f"{path}, not a saved transformer", "Pass a file that Transformer.save wrote.")
    if not content.startswith(b"PK"):
        raise foreign
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
    except (zipfile.BadZipFile, zlib.error, ValueError, EOFError, KeyError, OSError, RuntimeError, MemoryError):
        remedy = "It is truncated, damaged or foreign: copy or save it again."
        raise InvalidInput("path", f"{path}, an archive that cannot be read", remedy) from None
    try:
        settings = json.loads(str(arrays.pop("settings")))
        if settings.pop("format") != _FORMAT:
            raise foreign
    except (KeyError, ValueError, AttributeError, TypeError):
        raise foreign from None
    return settings, arrays


class _Built(BuiltEncoder):
    def __init__(self, description: Transformer):
        w = description.weights
        self._layers = [_Layer(w, f"encoder.layers.{i}.") for i in range(LAYERS)]
        self._projection, self._bias, self._positions = w["input.weight"].T, w["input.bias"], w["positions"]
        self._context, self._x_dim = description.context, description.x_dim
        self._shape = (description.y_dim, description.features)
        self.features = description.features

    def start(self) -> np.ndarray:
        """The last inputs, at most `context` of them; none at first."""
        return np.zeros((0, self._x_dim))

    def advance(self, context: Context) -> np.ndarray:
        return np.concatenate([self._before(context.state), context.x[None]])

    def encode(self, context: Context) -> np.ndarray:
        return self._forward(context.state[None]).reshape(self._shape)

    def encode_series(
        self, inputs: np.ndarray, state: np.ndarray, key: int, first_step: int
    ) -> tuple[np.ndarray, np.ndarray]:
        last = np.concatenate([state, inputs])[-self._context :]
        state = self._before(state)
        seen = np.concatenate([state, inputs])
        flat = np.empty((len(inputs), self._positions.shape[1]))
        # Until the context is full, every step has a window of its own length; after that all lengths are equal.
        full = min(max(self._context - 1 - len(state), 0), len(inputs))
        for t in range(full):
            flat[t] = self._forward(seen[None, : len(state) + t + 1])[0]
        batch = max(1, _BATCH // (HEADS * self._context**2))
        for t in range(full, len(inputs), batch):
            stop = min(t + batch, len(inputs))
            rows = np.arange(t, stop)[:, None] + len(state) - self._context + 1 + np.arange(self._context)
            flat[t:stop] = self._forward(seen[rows])
        return flat.reshape(-1, *self._shape), last

    def _before(self, state: np.ndarray) -> np.ndarray:
        """The inputs before the next one in its window."""
        return state[max(0, len(state) - self._context + 1) :]

    def _forward(self, windows: np.ndarray) -> np.ndarray:
        """Outputs (windows, d_model) at the last of positions 0, 1, … of windows (windows, length, x_dim).

        NumPy multiplies a stack of matrices one by one, so a window's result is the same to the bit in any batch.
        """
        length = windows.shape[1]
        h = windows @ self._projection + self._bias + self._positions[:length]
        for layer in self._layers:
            h = layer(h)
        return h[:, -1]


class _Layer:
    """One layer of `nn.TransformerEncoder(norm_first=False)`, dropout off, under a causal mask."""

    def __init__(self, weights: Mapping[str, np.ndarray], prefix: str):
        w = {name.removeprefix(prefix): value for name, value in weights.items() if name.startswith(prefix)}
        self._width = d = len(w["norm1.bias"])
        self._heads = heads_for(d)
        self._mix, self._mix_bias = w["self_attn.in_proj_weight"].T, w["self_attn.in_proj_bias"]
        self._value, self._value_bias = self._mix[:, 2 * d :], self._mix_bias[2 * d :]
        self._out, self._out_bias = w["self_attn.out_proj.weight"].T, w["self_attn.out_proj.bias"]
        self._up, self._up_bias = w["linear1.weight"].T, w["linear1.bias"]
        self._down, self._down_bias = w["linear2.weight"].T, w["linear2.bias"]
        self._norm1, self._norm2 = (w["norm1.weight"], w["norm1.bias"]), (w["norm2.weight"], w["norm2.bias"])

    def __call__(self, h: np.ndarray) -> np.ndarray:
        h = _normalised(h + self._attention(h), *self._norm1)
        up = np.maximum(h @ self._up + self._up_bias, 0.0)
        return _normalised(h + (up @ self._down + self._down_bias), *self._norm2)

    def _attention(self, h: np.ndarray) -> np.ndarray:
        N, L, d = h.shape
        if L == 1:
            # A single position attends to itself with weight 1.
            return (h @ self._value + self._value_bias) @ self._out + self._out_bias
        mixed = (h @ self._mix + self._mix_bias).reshape(N, L, 3, self._heads, d // self._heads)
        Q, K, V = np.ascontiguousarray(mixed.transpose(2, 0, 3, 1, 4))
        scores = Q @ K.swapaxes(-1, -2) / np.sqrt(d // self._heads)
        scores[..., ~np.tri(L, dtype=bool)] = -np.inf
        weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
        weights /= weights.sum(axis=-1, keepdims=True)
        joined = np.ascontiguousarray((weights @ V).swapaxes(1, 2)).reshape(N, L, d)
        return joined @ self._out + self._out_bias


def _normalised(h: np.ndarray, scale: np.ndarray, shift: np.ndarray) -> np.ndarray:
    """Layer norm over the last axis."""
    centred = h - np.add.reduce(h, axis=-1, keepdims=True) / h.shape[-1]
    variance = np.add.reduce(centred * centred, axis=-1, keepdims=True) / h.shape[-1]
    return centred / np.sqrt(variance + EPSILON) * scale + shift
