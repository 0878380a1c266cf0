"""Read and validate bodies and query parameters of requests."""

from __future__ import annotations

import asyncio
import re
from typing import Any

from starlette.requests import ClientDisconnect, Request

from nashcast.errors import InvalidInput
from nashcast.service.http.bodies import parse_json
from nashcast.service.http.http_errors import Refused
from nashcast.service.streams.limits import Limits

# Seconds that a post may wait for its forecast.
LONGEST_WAIT = 60
_WHOLE = re.compile(r"[0-9]{1,16}")
_SECONDS = re.compile(r"[0-9]{1,3}(\.[0-9]{1,6})?")


async def read_json(request: Request, limits: Limits) -> Any:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise Refused(415, "not_json", f"content-type: got {kind[:60] or 'nothing'!r}. Pass application/json.")
    return parse_json(await read_body(request, limits))


async def read_body(request: Request, limits: Limits) -> bytes:
    most = limits.body
    length = request.headers.get("content-length", "")
    if _WHOLE.fullmatch(length) and int(length) > most:
        raise _too_large(most)
    parts, size = [], 0
    try:
        async with asyncio.timeout(limits.body_seconds):
            async for part in request.stream():
                size += len(part)
                if size > most:
                    raise _too_large(most)
                parts.append(part)
    except TimeoutError:
        raise Refused(408, "too_slow", "the body took too long to arrive.", {"Connection": "close"}) from None
    except ClientDisconnect:
        raise Refused(400, "disconnected", "the body ended early.") from None
    return b"".join(parts)


def _too_large(most: int) -> Refused:
    message = f"body: got more than {most} bytes. Post fewer observations at once."
    return Refused(413, "too_large", message, {"Connection": "close"})


def seconds_of(request: Request, name: str) -> float:
    text = request.query_params.get(name, "0")
    if _SECONDS.fullmatch(text) is None or float(text) > LONGEST_WAIT:
        raise InvalidInput(name, repr(text[:40]), f"Pass a number of seconds from 0 to {LONGEST_WAIT}.")
    return float(text)


def whole_of(request: Request, name: str, default: int | None = None, least: int = 0, most: int = 2**53) -> int | None:
    text = request.query_params.get(name)
    if text is None:
        return default
    if _WHOLE.fullmatch(text) is None or not least <= int(text) <= most:
        raise InvalidInput(name, repr(text[:40]), f"Pass a whole number from {least} to {most}.")
    return int(text)
