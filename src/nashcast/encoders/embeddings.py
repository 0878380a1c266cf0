"""Embeddings of a text server as an encoder: any server that speaks OpenAI's POST /embeddings."""

from __future__ import annotations

import http.client
import json
import os
import re
import time
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass

import numpy as np

from nashcast import seeds
from nashcast import validation as check
from nashcast.encoders.features import BuiltFeatures
from nashcast.errors import InvalidInput, NashcastError

_TEXTS_PER_REQUEST = 64
_CACHED_TEXTS = 10_000
_FIRST_PAUSE = 0.1  # seconds, doubled with every retry


@dataclass(frozen=True)
class Embeddings:
    """The embedding of the input written as text, brought down to y_dim·features numbers by a random projection.

    url: of the server, without /embeddings.   model: as the server calls it.   features: how many the agent uses.
    seed: of the projection.   timeout: seconds, for one request.   retries: how often a request is sent again.
    api_key_variable: the environment variable with the key, read at every request and kept nowhere.
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
        _check_url(self.url)
        if not isinstance(self.model, str) or not self.model:
            raise InvalidInput("model", check.describe(self.model), "Pass the model's name on the server.")
        check.integer("features", self.features, min=1)
        seeds.key(self.seed)
        check.number("timeout", self.timeout, above=0.0)
        check.integer("retries", self.retries, min=0)
        name = self.api_key_variable
        # Not shown: whoever gets this wrong has likely passed the key itself.
        if name is not None and not (isinstance(name, str) and re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name)):
            remedy = "Pass the name of the environment variable, never the key itself."
            raise InvalidInput("api_key_variable", "something that is no variable's name", remedy)
        if not isinstance(self.template, str) or "{x}" not in self.template:
            raise InvalidInput("template", check.describe(self.template), "Write {x} where the numbers go.")

    def build(self, x_dim: int, y_dim: int) -> BuiltFeatures:
        return BuiltFeatures("model", _Cached(self).answers, self.features, self.seed, (x_dim, y_dim))


class _Cached:
    """The server's answers, each asked for once: the same text has the same embedding."""

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


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirect would send the key to a server the user did not name."""

    def redirect_request(self, req, fp, code, msg, headers, newurl):
        return None


def _embed(description: Embeddings, texts: list[str]) -> list[np.ndarray]:
    url = description.url.rstrip("/") + "/embeddings"
    body = json.dumps({"model": description.model, "input": texts}).encode()
    headers = {"Content-Type": "application/json", "Accept": "application/json"}
    if description.api_key_variable is not None:
        headers["Authorization"] = f"Bearer {_key(description.api_key_variable)}"
    request = urllib.request.Request(url, body, headers, method="POST")
    return _embeddings(_send(request, description.timeout, description.retries), len(texts), url)


def _send(request: urllib.request.Request, timeout: float, retries: int) -> bytes:
    opener = urllib.request.build_opener(_NoRedirect)
    for attempt in range(retries + 1):
        if attempt:
            time.sleep(_FIRST_PAUSE * 2 ** (attempt - 1))
        try:
            with opener.open(request, timeout=timeout) as response:
                return response.read()
        except urllib.error.HTTPError as error:
            # Only the number is told: a server's own words may repeat the key.
            with error:
                problem = f"answered HTTP {error.code}"
            if error.code != 429 and error.code < 500:
                raise NashcastError(f"{request.full_url}: {problem}. {_remedy(error.code)}") from None
        except TimeoutError:
            problem = f"did not answer within {timeout:g} s"
        except urllib.error.URLError as error:
            late = isinstance(error.reason, TimeoutError)
            problem = f"did not answer within {timeout:g} s" if late else f"could not be reached ({error.reason})"
        except (OSError, http.client.HTTPException) as error:
            problem = f"broke off the connection ({type(error).__name__})"
    remedy = "See that the server runs and is not overloaded, or raise timeout or retries."
    raise NashcastError(f"{request.full_url}: {problem}, asked {retries + 1} times. {remedy}")


def _remedy(code: int) -> str:
    if code in (401, 403):
        return "Put a key that the server accepts into the variable named by api_key_variable."
    if code == 404:
        return "Check url, which must not end in /embeddings, and model."
    return "Check url and model."


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


def _key(variable: str) -> str:
    key = os.environ.get(variable, "").strip()
    if not key:
        raise InvalidInput("api_key_variable", f"{variable}, which is not set", f"Set {variable} to the server's key.")
    # Refused here because http.client would refuse it with the key in its message.
    if not (key.isascii() and key.isprintable()):
        remedy = f"Set {variable} to the key alone, in plain characters."
        raise InvalidInput("api_key_variable", f"{variable}, whose value no key can have", remedy)
    return key


def _check_url(url) -> None:
    if not isinstance(url, str):
        raise InvalidInput("url", check.describe(url), "Pass the server's address, for example https://host/v1.")
    try:
        parts = urllib.parse.urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        raise InvalidInput("url", "no address", "Pass the server's address, for example https://host/v1.") from None
    if "@" in parts.netloc or parts.query or parts.fragment:
        # Not shown: it may hold a password or a key.
        remedy = "Pass scheme, host and path only, and a key by api_key_variable."
        raise InvalidInput("url", "an address with a login, a query or a fragment", remedy)
    if not usable or not url.isascii() or not url.isprintable() or " " in url:
        raise InvalidInput("url", repr(url), "Pass an http or https address, for example https://host/v1.")
