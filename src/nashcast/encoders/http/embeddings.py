"""Embeddings of a text server as an encoder: any server that implements OpenAI's POST /embeddings."""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np

from nashcast import seeds
from nashcast import validation as check
from nashcast.encoders.black_box.features import BuiltFeatures
from nashcast.encoders.http.http_json import check_key_variable, check_url, post, send
from nashcast.errors import InvalidInput, NashcastError

_TEXTS_PER_REQUEST = 64
_CACHED_TEXTS = 10_000
_HINTS = {404: "Check url, which must not end in /embeddings, and model."}


@dataclass(frozen=True)
class Embeddings:
    """The embedding of the input written as text, reduced to y_dim·features numbers by a random projection.

    url: the server's, without /embeddings.   model: its name on the server.   features: how many the agent uses.
    seed: for the projection.   timeout: seconds, for one request.   retries: how often a request is sent again.
    api_key_variable: the environment variable with the key, read at every request and never stored.
    template: the text, with {x} where the numbers go.
    """

    url: str
    model: str
    features: int
    seed: int
    timeout: float = 10.0
    retries: int = 2
    api_key_variable: str | None = None
    template: str = "{x}"

    def __post_init__(self):
        check_url(self.url)
        if not isinstance(self.model, str) or not self.model:
            raise InvalidInput("model", check.describe(self.model), "Pass the model's name on the server.")
        check.integer("features", self.features, min=1)
        seeds.key(self.seed)
        check.number("timeout", self.timeout, above=0.0)
        check.integer("retries", self.retries, min=0)
        check_key_variable(self.api_key_variable)
        if not isinstance(self.template, str) or "{x}" not in self.template:
            raise InvalidInput("template", check.describe(self.template), "Write {x} where the numbers go.")

    def build(self, x_dim: int, y_dim: int) -> BuiltFeatures:
        return BuiltFeatures("model", _Cached(self).answers, self.features, self.seed, (x_dim, y_dim))


class _Cached:
    """A cache of the server's answers: the same text has the same embedding."""

    def __init__(self, description: Embeddings):
        self._description = description
        self._cache: dict[str, np.ndarray] = {}

    def answers(self, inputs: np.ndarray) -> list[np.ndarray]:
        texts = [self._description.template.replace("{x}", ", ".join(map(repr, x.tolist()))) for x in inputs]
        known = {text: self._cache[text] for text in texts if text in self._cache}
        unknown = list(dict.fromkeys(text for text in texts if text not in known))
        for first in range(0, len(unknown), _TEXTS_PER_REQUEST):
            some = unknown[first : first + _TEXTS_PER_REQUEST]
            for text, embedding in zip(some, _embed(self._description, some), strict=True):
                known[text] = embedding
                self._remember(text, embedding)
        return [known[text] for text in texts]

    def _remember(self, text: str, embedding: np.ndarray) -> None:
        if len(self._cache) >= _CACHED_TEXTS:
            del self._cache[next(iter(self._cache))]  # the oldest
        self._cache[text] = embedding


def _embed(description: Embeddings, texts: list[str]) -> list[np.ndarray]:
    url = description.url.rstrip("/") + "/embeddings"
    body = json.dumps({"model": description.model, "input": texts}).encode()
    request = post(url, body, description.api_key_variable)
    return _embeddings(send(request, description.timeout, description.retries, _HINTS), len(texts), url)


def _embeddings(answer: bytes, texts: int, url: str) -> list[np.ndarray]:
    """Embeddings in the order of the texts, from {"data": [{"index": 0, "embedding": [...]}, ...]}."""
    try:
        data = json.loads(answer)["data"]
        data = sorted(data, key=lambda entry: entry["index"]) if all("index" in entry for entry in data) else data
        rows = [np.asarray(entry["embedding"], dtype=np.float64) for entry in data]
    except (ValueError, TypeError, KeyError, AttributeError):
        rows = []
    if len(rows) != texts or not all(row.ndim == 1 and row.size and np.isfinite(row).all() for row in rows):
        wanted = f'{{"data": [{{"embedding": [numbers]}}]}} with {texts} embeddings'
        raise NashcastError(
            f"{url}: the answer is not {wanted}. Check that url is an OpenAI-compatible server and model embeds text."
        )
    return rows
