"""What is answered under which path."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from nashcast import __version__
from nashcast.errors import InvalidInput
from nashcast.service.http.bodies import (
    parse_json,
    read_labels,
    read_observations,
    read_save_point,
    save_point_name,
)
from nashcast.service.http.http_errors import Refused
from nashcast.service.http.measured import measured
from nashcast.service.http.middleware import allow
from nashcast.service.http.openapi import document
from nashcast.service.http.sse import Feed
from nashcast.service.http.tokens import ADMIN, READ, WRITE
from nashcast.service.streams import views
from nashcast.service.streams.history import read_history
from nashcast.service.streams.state import Service

MOST_ROWS = 1000
_WHOLE = re.compile(r"[0-9]{1,16}")
Handler = Callable[[Request], Awaitable[Response]]


def routes(service: Service) -> list[Route]:
    """Every path, with the scope it needs."""
    api = _Api(service)
    table: list[tuple[str, str, str | None, Handler]] = [
        ("/healthz", "GET", None, api.healthz),
        ("/readyz", "GET", None, api.readyz),
        ("/metrics", "GET", READ, api.metrics),
        ("/v1/openapi.json", "GET", None, api.openapi),
        ("/v1/observations", "POST", WRITE, api.observe),
        ("/v1/labels", "POST", WRITE, api.label),
        ("/v1/forecast", "GET", READ, api.forecast),
        ("/v1/agents", "GET", READ, api.agents),
        ("/v1/status", "GET", READ, api.status),
        ("/v1/history", "GET", READ, api.history),
        ("/v1/log", "GET", READ, api.log),
        ("/v1/events", "GET", READ, api.events),
        ("/v1/savepoints", "GET", READ, api.save_points),
        ("/v1/savepoints", "POST", ADMIN, api.save_point),
        ("/v1/savepoints/{name}", "DELETE", ADMIN, api.drop),
        ("/v1/savepoints/{name}/restore", "POST", ADMIN, api.restore),
    ]
    by_path: dict[str, dict[str, Handler]] = {}
    for path, method, scope, handler in table:
        by_path.setdefault(path, {})[method] = _scoped(handler, scope, service)
    return [Route(path, _dispatch(methods), methods=list(methods)) for path, methods in by_path.items()]


def _scoped(handler: Handler, scope: str | None, service: Service) -> Handler:
    async def answer(request: Request) -> Response:
        if scope is not None:
            allow(request.scope, scope, service.tokens)
        return await handler(request)

    return answer


def _dispatch(methods: dict[str, Handler]) -> Handler:
    async def answer(request: Request) -> Response:
        return await methods["GET" if request.method == "HEAD" else request.method](request)

    return answer


def reply(value: Any, status: int = 200) -> Response:
    return Response(value if isinstance(value, bytes) else views.encoded(value), status, media_type="application/json")


class _Api:
    def __init__(self, service: Service):
        self._service = service
        self._openapi = views.encoded(document(service.config.serve, service.limits, tokens=service.tokens is not None))

    async def healthz(self, request: Request) -> Response:
        return reply({"status": "alive"})

    async def readyz(self, request: Request) -> Response:
        why = self._service.not_ready()
        if why is not None:
            raise Refused(503, "not_ready", why)
        return reply({"status": "ready", "step": self._service.step})

    async def metrics(self, request: Request) -> Response:
        lines = await measured(self._service)
        return Response("\n".join(lines) + "\n", media_type="text/plain; version=0.0.4")

    async def openapi(self, request: Request) -> Response:
        return reply(self._openapi)

    async def observe(self, request: Request) -> Response:
        items = read_observations(await self._json(request), self._service.config.serve)
        return await self._posted(items)

    async def label(self, request: Request) -> Response:
        items = read_labels(await self._json(request), self._service.config.serve)
        return await self._posted(items)

    async def _posted(self, items) -> Response:
        receipt, outcome = await self._service.worker.post(items)
        standing = self._service.present
        assert outcome is not None
        assert standing is not None
        head = views.encoded(receipt._asdict())
        # The forecast that stands is JSON already.
        return reply(head[:-1] + b',"forecast":' + standing + b"}")

    async def forecast(self, request: Request) -> Response:
        return reply(self._service.standing())

    async def agents(self, request: Request) -> Response:
        worker = self._service.worker
        return reply({"agents": await self._service.ask(lambda: views.agents_view(worker.live))})

    async def status(self, request: Request) -> Response:
        service, worker, config = self._service, self._service.worker, self._service.config
        computed = await service.ask(
            lambda: {
                "scores": views.scores_view(worker.live, config.serve.window),
                "game": views.game_view(worker.live),
                "first_step": worker.live.first,
            }
        )
        entries, size = await service.read(service.reader.size)
        about = {
            "name": config.federation.name,
            "version": __version__,
            "step": service.step,
            "ready": service.not_ready() is None,
            "agents": service.made.names,
            "coverages": list(config.serve.coverages),
            "settings": config.settings(),
            "journal": {"entries": entries, "bytes": size, "retain": config.serve.retain},
            "uptime": time.time() - service.began,
        }
        return reply(about | computed)

    async def history(self, request: Request) -> Response:
        first, last = _whole(request, "from"), _whole(request, "to")
        limit, every = _whole(request, "limit", 100, 1, MOST_ROWS), _whole(request, "every", 1, 1)
        assert limit is not None
        assert every is not None
        service = self._service
        return reply(await service.read(lambda: read_history(service, first, last, limit, every)))

    async def log(self, request: Request) -> Response:
        after, limit = _whole(request, "after"), _whole(request, "limit", 100, 1, MOST_ROWS)
        assert limit is not None
        reader = self._service.reader
        return reply({"log": await self._service.read(lambda: reader.log(-1 if after is None else after, limit))})

    async def events(self, request: Request) -> Response:
        service, token = self._service, request.scope["token"]

        def welcome() -> bool:
            if service.tokens is None:
                return True
            now = service.tokens.still(token)
            return now is not None and now.state(time.time()) == "valid"

        if request.method == "HEAD":
            return Response(media_type="text/event-stream")
        service.feed.enter()
        return _EventStream(service.feed, welcome)

    async def save_points(self, request: Request) -> Response:
        return reply({"save_points": await self._service.read(self._service.reader.save_points)})

    async def save_point(self, request: Request) -> Response:
        name = read_save_point(await self._json(request))
        return reply(await self._service.ask(lambda: self._service.worker.save_point(name)), 201)

    async def restore(self, request: Request) -> Response:
        name = save_point_name(request.path_params["name"])
        return reply(await self._service.ask(lambda: self._service.worker.restore(name)))

    async def drop(self, request: Request) -> Response:
        name = save_point_name(request.path_params["name"])
        return reply(await self._service.ask(lambda: self._service.worker.drop(name)))

    async def _json(self, request: Request) -> Any:
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/json":
            raise Refused(415, "not_json", f"content-type: got {kind[:60] or 'nothing'!r}. Pass application/json.")
        return parse_json(await self._body(request))

    async def _body(self, request: Request) -> bytes:
        most = self._service.limits.body
        length = request.headers.get("content-length", "")
        if _WHOLE.fullmatch(length) and int(length) > most:
            raise _too_large(most)
        parts, size = [], 0
        try:
            async with asyncio.timeout(self._service.limits.body_seconds):
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


class _EventStream(StreamingResponse):
    """A reader's place is given back however the reading ends, begun or not."""

    def __init__(self, feed: Feed, welcome: Callable[[], bool]):
        super().__init__(
            feed.messages(welcome), media_type="text/event-stream", headers={"X-Accel-Buffering": "no"}
        )  # fmt: skip
        self._feed = feed

    async def __call__(self, scope, receive, send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._feed.leave()


def _too_large(most: int) -> Refused:
    message = f"body: got more than {most} bytes. Post fewer observations at once."
    return Refused(413, "too_large", message, {"Connection": "close"})


def _whole(request: Request, name: str, default: int | None = None, least: int = 0, most: int = 2**53) -> int | None:
    text = request.query_params.get(name)
    if text is None:
        return default
    if _WHOLE.fullmatch(text) is None or not least <= int(text) <= most:
        raise InvalidInput(name, repr(text[:40]), f"Pass a whole number from {least} to {most}.")
    return int(text)
