"""The file of webhooks: where events are posted, and how they are signed.

[[webhook]]
url = "https://ops.example/nashcast"
secret_file = "webhook.key"          # posts are signed with it
kinds = ["drift", "agent gone"]      # left out: all
streams = ["load-*"]                 # left out: all
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from nashcast.config.config_changes import read_toml
from nashcast.errors import InvalidInput
from nashcast.service.events.kinds import EVENTS

_KEYS = ("url", "secret_file", "token_file", "kinds", "streams", "ca_file")


class Webhook(NamedTuple):
    """secret: posts are signed with it.   token: sent as Bearer.   streams: patterns of names, such as load-*."""

    url: str
    secret: bytes | None = None
    token: str | None = None
    kinds: tuple[str, ...] = tuple(EVENTS)
    streams: tuple[str, ...] = ("*",)
    ca_file: str | None = None

    @property
    def host(self) -> str:
        """Host for logs and metrics: the path of an address may hold a secret."""
        return urlsplit(self.url).netloc.rpartition("@")[2]

    @property
    def id(self) -> str:
        """Stable id of the address, for the delivery state."""
        return hashlib.sha256(self.url.encode()).hexdigest()[:16]

    def wants(self, event: Mapping[str, Any]) -> bool:
        return event["kind"] in self.kinds and any(fnmatchcase(event["stream"], each) for each in self.streams)


def read_webhooks(path: Path) -> list[Webhook]:
    document = read_toml(path)
    unknown = set(document) - {"webhook"}
    rows = document.get("webhook", [])
    if unknown or not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        got = f"keys {', '.join(sorted(unknown))}" if unknown else "no tables [[webhook]]"
        raise InvalidInput(str(path), got, "Write a table [[webhook]] for each address.")
    found = [_read(row, f"{path}: webhook[{i}]", path.parent) for i, row in enumerate(rows)]
    if len({each.url for each in found}) < len(found):
        raise InvalidInput(str(path), "the same url twice", "Write one table for each address.")
    return found


def _read(row: dict[str, Any], place: str, folder: Path) -> Webhook:
    for key in row:
        if key not in _KEYS:
            raise InvalidInput(f"{place}.{key}", "an unknown key", f"Valid keys are {', '.join(_KEYS)}.")
    url = row.get("url")
    parts = urlsplit(url) if isinstance(url, str) else None
    if parts is None or parts.scheme not in ("http", "https") or not parts.hostname:
        raise InvalidInput(f"{place}.url", repr(url), "Pass an address such as https://ops.example/nashcast.")
    for key, known in (("kinds", EVENTS), ("streams", None)):
        given = row.get(key, [])
        wrong = not isinstance(given, list) or not all(isinstance(each, str) for each in given)
        if wrong or (known is not None and not set(given) <= set(known)):
            remedy = f"Pass some of {', '.join(known)}." if known else 'Pass names or patterns, such as ["load-*"].'
            raise InvalidInput(f"{place}.{key}", repr(given), remedy)
    secret, token = (_secret(row, key, place, folder) for key in ("secret_file", "token_file"))
    ca_file = row.get("ca_file")
    return Webhook(
        str(url), None if secret is None else secret.encode(), token, tuple(row.get("kinds", EVENTS)),
        tuple(row.get("streams", ["*"])), None if ca_file is None else str(folder / ca_file),
    )  # fmt: skip


def _secret(row: dict[str, Any], key: str, place: str, folder: Path) -> str | None:
    if key not in row:
        return None
    path = folder / str(row[key])
    try:
        text = path.read_text().strip()
    except (OSError, ValueError) as error:
        raise InvalidInput(f"{place}.{key}", f"{path} ({error})", "Pass a file that can be read.") from None
    if not text or not text.isascii() or not text.isprintable():
        raise InvalidInput(
            f"{place}.{key}", f"{path}, which holds no secret", "Write one line of printable characters."
        )
    return text
