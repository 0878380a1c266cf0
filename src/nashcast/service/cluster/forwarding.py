"""Forward requests to the machine that owns the stream, over the broker; the same handlers respond there."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import suppress
from typing import Any

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from nashcast.service.cluster.broker import Broker
from nashcast.service.http.http_errors import Refused
from nashcast.service.http.request_reading import read_body
from nashcast.service.streams.limits import Limits
from nashcast.service.workers import frames

logger = logging.getLogger("nashcast.service")
# Seconds: between two progress messages of the responding machine; without any until the request is given up (a dying
# broker loses messages); between two lookups of the owner; and longest duration of an event stream.
WORKING_S, SILENCE_S, POLL_S, LONGEST_S = 0.5, 3.0, 0.5, 600.0
# Bytes of a response in one message, and of a whole message.
CHUNK, LARGEST = 256 * 1024, 8 * 2**20
_WORKING = b"working"
_HEADERS = (b"content-type", b"retry-after", b"x-accel-buffering")


def _subject(node: str) -> str:
    return f"nashcast.node.{node}"


class Forwarding:
    """app: handles requests whose token and rate another machine has checked."""

    def __init__(self, broker: Broker, node: str, app: Callable, limits: Limits):
        self._broker, self._node, self._app, self._limits = broker, node, app, limits
        self._tasks: set[asyncio.Task] = set()

    async def listen(self) -> None:
        await self._broker.client.subscribe(_subject(self._node), cb=self._asked)

    def stop(self) -> None:
        for task in self._tasks:
            task.cancel()

    async def ask(self, node: str, request: Request, still: Callable[[], bool]) -> Response:
        """The other machine's response. still: whether it still owns the stream."""
        body = await read_body(request, self._limits) if request.method in ("POST", "PUT") else b""
        about = {"method": request.method, "path": request.url.path, "query": request.url.query, "body": body}
        about["type"] = request.headers.get("content-type", "")
        parts = self._parts(node, about, still)
        first = await anext(parts)
        headers = {name: value for name, value in first["headers"] if name.encode() in _HEADERS}
        if not first["more"]:
            await parts.aclose()
            return Response(first["body"], first["status"], headers)

        async def rest() -> AsyncIterator[bytes]:
            yield first["body"]
            async for part in parts:
                yield part["body"]

        return StreamingResponse(rest(), first["status"], headers)

    async def _parts(
        self, node: str, about: dict[str, Any], still: Callable[[], bool]
    ) -> AsyncGenerator[dict[str, Any], None]:
        """Messages of the response, each validated."""
        client = self._broker.client
        inbox = client.new_inbox()
        subscription, over = await client.subscribe(inbox), False
        try:
            await client.publish(_subject(node), frames.encode({**about, "stop": f"{inbox}.stop"}), reply=inbox)
            heard = time.monotonic()
            while not over:
                try:
                    message = await subscription.next_msg(timeout=POLL_S)
                except TimeoutError:
                    if not still() or time.monotonic() - heard > SILENCE_S:
                        raise _no_answer(node) from None
                    continue
                heard = time.monotonic()
                if message.data == _WORKING:
                    continue
                part = _part(message.data, node)
                over = not part["more"]
                yield part
        finally:
            with suppress(Exception):
                await subscription.unsubscribe()
                if not over:
                    await client.publish(f"{inbox}.stop", b"")

    async def _asked(self, message: Any) -> None:
        task = asyncio.create_task(self._answer(message))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _answer(self, message: Any) -> None:
        client, stop = self._broker.client, None
        working = asyncio.create_task(self._signs(message.reply))
        try:
            about = frames.decode(message.data, LARGEST)
            scope, body = _scope(about), about["body"]
            if about["method"] == "GET" and about["path"].endswith("/events"):
                task = asyncio.current_task()
                assert task is not None

                async def ended(_: Any) -> None:
                    task.cancel()

                stop = await client.subscribe(about["stop"], cb=ended)
            async with asyncio.timeout(LONGEST_S):
                await self._app(scope, _receiver(body), _Sender(client, message.reply))
        except (frames.BadFrame, KeyError, TypeError, AttributeError) as error:
            logger.error("cluster: a forwarded request cannot be read (%s)", type(error).__name__)
        except (TimeoutError, asyncio.CancelledError):
            pass
        except Exception as error:
            logger.warning("cluster: no answer to a forwarded request (%s: %s)", type(error).__name__, error)
        finally:
            working.cancel()
            if stop is not None:
                with suppress(Exception):
                    await stop.unsubscribe()

    async def _signs(self, reply: str) -> None:
        while True:
            await asyncio.sleep(WORKING_S)
            with suppress(Exception):
                await self._broker.client.publish(reply, _WORKING)


class _Sender:
    """Sends a response in messages of bounded size; the last one is marked."""

    def __init__(self, client: Any, reply: str):
        self._client, self._reply = client, reply
        self._status, self._headers = 500, []

    async def __call__(self, message: dict[str, Any]) -> None:
        if message["type"] == "http.response.start":
            self._status = message["status"]
            self._headers = [[name.decode("latin-1"), value.decode("latin-1")] for name, value in message["headers"]]
            return
        body, more = message.get("body", b""), message.get("more_body", False)
        pieces = [body[at : at + CHUNK] for at in range(0, len(body), CHUNK)] or [b""]
        for i, piece in enumerate(pieces):
            part = {"status": self._status, "headers": self._headers, "body": piece}
            part["more"] = more or i + 1 < len(pieces)
            await self._client.publish(self._reply, frames.encode(part))


def _receiver(body: bytes) -> Callable:
    given = False

    async def receive() -> dict[str, Any]:
        nonlocal given
        if given:
            await asyncio.sleep(LONGEST_S)
            return {"type": "http.disconnect"}
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return receive


def _scope(about: dict[str, Any]) -> dict[str, Any]:
    path = about["path"]
    return {
        "type": "http", "http_version": "1.1", "method": about["method"], "scheme": "http", "path": path,
        "raw_path": path.encode(), "query_string": about["query"].encode(), "root_path": "", "client": None,
        "server": ("localhost", 0), "forwarded": True, "token": None,
        "headers": [(b"host", b"localhost"), (b"content-type", about["type"].encode("latin-1", "replace"))],
    }  # fmt: skip


def _part(data: bytes, node: str) -> dict[str, Any]:
    if not data:
        raise _no_answer(node)  # the broker reports no responders
    part = frames.decode(data, LARGEST)
    status, headers, body = part.get("status"), part.get("headers"), part.get("body")
    if type(status) is not int or not 200 <= status < 600 or not isinstance(headers, list):
        raise frames.BadFrame("another machine's response is invalid.")
    if not isinstance(body, bytes) or not all(isinstance(each, list) and len(each) == 2 for each in headers):
        raise frames.BadFrame("another machine's response is invalid.")
    return part


def _no_answer(node: str) -> Refused:
    message = f"the machine that owns this stream ({node}) does not respond; another one takes over. Try again."
    return Refused(503, "no_owner", message, {"Retry-After": "1"})
