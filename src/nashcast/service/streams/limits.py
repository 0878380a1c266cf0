"""Limits on requests, connections and readers."""

from __future__ import annotations

from typing import NamedTuple


class Limits(NamedTuple):
    """body: bytes of a request.   rate: requests a second per token.   readers: total readers of event streams.

    body_seconds: time for a body to arrive.   connections: open at once.   per_address: open at once per address.
    """

    body: int = 1_000_000
    rate: float = 5000.0
    readers: int = 200
    body_seconds: float = 8.0
    connections: int = 1000
    per_address: int = 250


DEFAULT_LIMITS = Limits()
