"""Convert a broker's message to rows for the service, each with an idempotency key where possible.

With a key, a message delivered twice counts once. In order of preference: the `key` or `step` in the payload; the
message's id (NATS header Nats-Msg-Id, MQTT 5 user property key); its position in a JetStream stream; its `time`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Any, NamedTuple

from nashcast.errors import NashcastError

MOST_BYTES = 1_000_000
_FIELDS = {"x", "y", "time", "step", "key"}


class BadMessage(NashcastError):
    """The payload is not an observation."""


class Message(NamedTuple):
    """stream: target of its rows.   labels: whether they are late labels.   done: called when it is durable."""

    stream: str
    rows: list[dict[str, Any]]
    labels: bool
    done: Callable[[], None]


def read_rows(payload: bytes, address: str, own_id: str | None) -> tuple[list[dict[str, Any]], bool]:
    """Rows, and whether they are labels. A bare number is both input and target."""
    if len(payload) > MOST_BYTES:
        raise BadMessage(f"{len(payload)} bytes; at most {MOST_BYTES} are taken")
    try:
        found: Any = json.loads(payload)
    except (ValueError, RecursionError) as error:
        raise BadMessage(f"not JSON ({str(error)[:80]})") from None
    if isinstance(found, int | float) and not isinstance(found, bool):
        found = {"x": found, "y": found}
    rows: list[Any] = found if isinstance(found, list) else [found]
    if not rows or not all(isinstance(row, dict) for row in rows):
        raise BadMessage("no object with x and y, no list of such, and no number")
    for row in rows:
        if "y" not in row or set(row) - _FIELDS:
            raise BadMessage(f"an object with {', '.join(sorted(map(str, row)))[:80]}; it has x, y, time, step, key")
    labels = all("x" not in row for row in rows)
    if labels:
        if not all("step" in row for row in rows):
            raise BadMessage("a target without x and without its step")
        return [{"step": row["step"], "y": row["y"]} for row in rows], True
    if not all("x" in row for row in rows):
        raise BadMessage("observations and late targets in one message")
    return [_keyed(row, i, address, own_id, len(rows)) for i, row in enumerate(rows)], False


def _keyed(row: dict[str, Any], place: int, address: str, own_id: str | None, count: int) -> dict[str, Any]:
    if "key" in row or "step" in row:
        return row
    if own_id is not None:
        return {**row, "key": short(own_id if count == 1 else f"{own_id}/{place}")}
    if row.get("time") is not None:
        return {**row, "key": short(f"{address} {json.dumps(row['time'])}")}
    return row


def short(text: str) -> str:
    """A key valid for the service: visible ASCII of limited length."""
    if 0 < len(text) <= 128 and all("!" <= c <= "~" for c in text):
        return text
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:32]
