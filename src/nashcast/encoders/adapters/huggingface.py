"""Pre-trained encoders of texts and pictures from Hugging Face: BERT-like, ViT-like and CLIP-like models."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from dataclasses import dataclass
from functools import lru_cache
from os import PathLike, fspath
from typing import Any

import numpy as np

from nashcast import seeds
from nashcast import validation as check
from nashcast.encoders.adapters.pretrained import quiet_transformers
from nashcast.encoders.base import BuiltEncoder, Context
from nashcast.encoders.black_box.black_box_call import BlackBoxCall
from nashcast.encoders.black_box.features import Projection
from nashcast.errors import InvalidInput, NashcastError
from nashcast.extras import needed

KINDS = ("text", "image")
POOLINGS = ("mean", "cls", "pooler")
_CACHED = 4096


@dataclass(frozen=True, eq=False)
class HuggingFace:
    """The embedding of the text or picture in one column of the input, reduced to y_dim·features numbers.

    model: a folder, or a name on the Hugging Face Hub.   kind: "text" or "image".
    column: its name in the input; "" if the whole input is one text or picture. The agent sits out steps without one.
    features: how many the agent uses.
    pooling: applied to the last hidden states: "mean" over all tokens or patches, "cls" for the first, "pooler" for the
        model's own. A model with an embedding of its own for the kind (CLIP) gives that.
    projection: seed of a random projection, or a matrix (features, size of the embedding), for example of principal
        components, which gives every target the same features.
    timeout: seconds for an embedding.   max_length: tokens of a text that are read.

    A picture is a PIL image or an array (height, width, 3) of bytes.
    """

    model: str | PathLike[str]
    kind: str = "text"
    column: str = ""
    features: int = 16
    pooling: str = "mean"
    projection: Any = 0
    timeout: float | None = None
    max_length: int = 256

    def __post_init__(self):
        needed("transformers", "transformers", "huggingface", "encoder")
        needed("torch", "torch", "huggingface", "encoder")
        if not isinstance(self.model, str | PathLike) or not fspath(self.model):
            raise InvalidInput("model", check.describe(self.model), "Pass a folder or a name on the Hub.")
        for name, known in (("kind", KINDS), ("pooling", POOLINGS)):
            if getattr(self, name) not in known:
                raise InvalidInput(name, check.describe(getattr(self, name)), f"Pass one of {', '.join(known)}.")
        if not isinstance(self.column, str):
            raise InvalidInput("column", check.describe(self.column), "Pass the name of a column of the input.")
        check.integer("features", self.features, min=1)
        check.integer("max_length", self.max_length, min=1)
        if self.timeout is not None:
            check.number("timeout", self.timeout, above=0.0)
        if np.ndim(self.projection) == 0:
            seeds.key(self.projection)
            return
        matrix = check.of_rank("projection", self.projection, ("features", "size"))
        if len(matrix) != self.features:
            remedy = f"It must have features = {self.features} rows."
            raise InvalidInput("projection", f"shape {check.shape_text(matrix.shape)}", remedy)

    @property
    def objects(self) -> tuple[str, ...]:
        return (self.column,)

    def build(self, x_dim: int, y_dim: int) -> BuiltEncoder:
        embedder = _Embedder(self, *_loaded(fspath(self.model), self.kind))
        seed, matrix = (self.projection, None) if np.ndim(self.projection) == 0 else (None, np.array(self.projection))
        return _Built(self, embedder, Projection("model", self.features, seed, y_dim, matrix))


class _Built(BuiltEncoder):
    accepts_missing = True  # it uses no numbers

    def __init__(self, description: HuggingFace, embedder: _Embedder, projection: Projection):
        self.features, self.objects = description.features, description.objects
        self._column, self._embedder, self._projection = description.column, embedder, projection

    def encode(self, context: Context) -> np.ndarray:
        found = context.objects.get(self._column)
        if found is None:
            where = f"the column {self._column!r}" if self._column else "the input"
            raise NashcastError(f"there is nothing in {where}")
        return self._projection.of(self._embedder.embedding(found))


class _Embedder:
    """Embeddings of texts or pictures, each computed once."""

    def __init__(self, description: HuggingFace, prepare: Any, model: Any):
        self._description, self._prepare, self._model = description, prepare, model
        self._call = BlackBoxCall(description.timeout)
        self._cache: OrderedDict[bytes, np.ndarray] = OrderedDict()

    def embedding(self, value: Any) -> np.ndarray:
        key = self._key(value)
        if key not in self._cache:
            self._cache[key] = self._call(self._embed, value)
            if len(self._cache) > _CACHED:
                self._cache.popitem(last=False)
        return self._cache[key]

    def _key(self, value: Any) -> bytes:
        if self._description.kind == "text":
            if not isinstance(value, str):
                raise NashcastError(f"it takes text, and got {check.describe(value)}")
            content = value.encode("utf-8", "surrogatepass")
        elif hasattr(value, "tobytes") and getattr(value, "size", None):
            shape = value.shape if isinstance(value, np.ndarray) else (value.size, getattr(value, "mode", ""))
            content = repr(shape).encode() + value.tobytes()
        else:
            raise NashcastError(f"it takes pictures, PIL images or arrays, and got {check.describe(value)}")
        return hashlib.blake2b(content, digest_size=16).digest()

    def _embed(self, value: Any) -> np.ndarray:
        torch = needed("torch", "torch", "huggingface", "encoder")
        if self._description.kind == "text":
            length = {"truncation": True, "max_length": self._description.max_length}
            given, own = self._prepare([value], return_tensors="pt", **length), "get_text_features"
        else:
            picture = value.convert("RGB") if hasattr(value, "convert") else value
            given, own = self._prepare(images=[picture], return_tensors="pt"), "get_image_features"
        with torch.no_grad():
            if hasattr(self._model, own):
                output = getattr(self._model, own)(**given)
                # A tensor, or in newer versions an output that contains it.
                output = output if isinstance(output, torch.Tensor) else output.pooler_output
            else:
                output = self._pooled(self._model(**given), given)
        return output[0].double().numpy().ravel().copy()

    def _pooled(self, output: Any, given: Any) -> Any:
        pooling, hidden = self._description.pooling, output.last_hidden_state
        if pooling == "pooler":
            if getattr(output, "pooler_output", None) is None:
                raise InvalidInput("pooling", "'pooler' for a model that has none", "Pass pooling='mean' or 'cls'.")
            return output.pooler_output
        if pooling == "cls":
            return hidden[:, 0]
        if self._description.kind == "image":
            return hidden.flatten(2).mean(dim=2) if hidden.ndim == 4 else hidden.mean(dim=1)
        mask = given["attention_mask"][..., None].to(hidden.dtype)
        return (hidden * mask).sum(dim=1) / mask.sum(dim=1).clamp(min=1.0)


@lru_cache(maxsize=4)
def _loaded(model: str, kind: str) -> tuple[Any, Any]:
    """A tokenizer or image processor, and the model."""
    transformers = needed("transformers", "transformers", "huggingface", "encoder")
    prepare = transformers.AutoTokenizer if kind == "text" else transformers.AutoImageProcessor
    try:
        with quiet_transformers("huggingface"):
            return prepare.from_pretrained(model), transformers.AutoModel.from_pretrained(model).eval()
    except Exception as error:  # the packages raise many types for an invalid folder
        reason = (str(error).strip().splitlines() or [""])[0][:200]
        remedy = f"Pass the folder or name of a model of {kind}: {type(error).__name__}: {reason}"
        raise InvalidInput("model", repr(model), remedy) from error
