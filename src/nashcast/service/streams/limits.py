"""How much the service takes from its callers."""

from __future__ import annotations

from typing import NamedTuple


class Limits(NamedTuple):
    """body: bytes of a request.   rate: requests a second of one token.   readers: of event streams, in all.

    body_seconds: for a body to arrive.   connections: at once, in all.   per_address: at once from one address.
    """

    body: int = 1_000_000
    rate: float = 5000.0
    readers: int = 200
    body_seconds: float = 8.0
    connections: int = 1000
    per_address: int = 250


DEFAULT_LIMITS = Limits()
