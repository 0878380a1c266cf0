"""Routes and their handlers."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from nashcast import __version__
from nashcast.errors import InvalidInput
from nashcast.service.http.access.middleware import allow
from nashcast.service.http.access.tokens import ADMIN, READ, WRITE
from nashcast.service.http.bodies import read_labels, read_observations, read_save_point, save_point_name
from nashcast.service.http.documents.openapi import document
from nashcast.service.http.http_errors import Refused
from nashcast.service.http.measured import measured
from nashcast.service.http.request_reading import read_json, seconds_of, whole_of
from nashcast.service.http.sse import Feed
from nashcast.service.journal.writer import Failed
from nashcast.service.snapshots.save_points import drop_save_point, make_save_point, restore
from nashcast.service.streams import views
from nashcast.service.streams.changes import make_stream, remove_stream
from nashcast.service.streams.history import read_history
from nashcast.service.streams.service import Service
from nashcast.service.streams.stream import FAILED, LOADING, Stream

MOST_ROWS = 1000
Handler = Callable[[Request], Awaitable[Response]]


def routes(service: Service) -> list[Route]:
    """Every path, with the scope it needs."""
    api, one = _Api(service), "/v1/streams/{stream}"
    table: list[tuple[str, str, str | None, Handler]] = [
        ("/healthz", "GET", None, api.healthz),
        ("/readyz", "GET", None, api.readyz),
        ("/metrics", "GET", READ, api.metrics),
        ("/v1/openapi.json", "GET", None, api.openapi),
        ("/v1/streams", "GET", READ, api.streams),
        ("/v1/events", "GET", READ, api.all_events),
        (one, "GET", READ, api.stream),
        (one, "PUT", ADMIN, api.make),
        (one, "DELETE", ADMIN, api.remove),
        (f"{one}/observations", "POST", WRITE, api.observe),
        (f"{one}/labels", "POST", WRITE, api.label),
        (f"{one}/forecast", "GET", READ, api.forecast),
        (f"{one}/agents", "GET", READ, api.agents),
        (f"{one}/status", "GET", READ, api.status),
        (f"{one}/history", "GET", READ, api.history),
        (f"{one}/log", "GET", READ, api.log),
        (f"{one}/events", "GET", READ, api.events),
        (f"{one}/savepoints", "GET", READ, api.save_points),
        (f"{one}/savepoints", "POST", ADMIN, api.save_point),
        (f"{one}/savepoints/{{name}}", "DELETE", ADMIN, api.drop),
        (f"{one}/savepoints/{{name}}/restore", "POST", ADMIN, api.restore),
    ]
    by_path: dict[str, dict[str, Handler]] = {}
    for path, method, scope, handler in table:
        by_path.setdefault(path, {})[method] = _scoped(handler, scope, service)
    return [Route(path, _dispatch(methods), methods=list(methods)) for path, methods in by_path.items()]


def _scoped(handler: Handler, scope: str | None, service: Service) -> Handler:
    async def answer(request: Request) -> Response:
        if scope is not None and not request.scope.get("forwarded"):
            allow(request.scope, scope, service.tokens)
        answered = await service.placement.forward(request)
        return answered or await handler(request)

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
        self._openapi = views.encoded(document(service.limits, tokens=service.tokens is not None))

    async def healthz(self, request: Request) -> Response:
        return reply({"status": "alive"})

    async def readyz(self, request: Request) -> Response:
        service = self._service
        why = service.not_ready()
        if why is not None:
            raise Refused(503, "not_ready", why)
        states = [stream.state for stream in service.streams.values()]
        counts = {"streams": len(states), "loading": states.count(LOADING), "failed": states.count(FAILED)}
        return reply({"status": "ready", **counts, "stuck_workers": len(service.stuck())})

    async def metrics(self, request: Request) -> Response:
        lines = await measured(self._service)
        return Response("\n".join(lines) + "\n", media_type="text/plain; version=0.0.4")

    async def openapi(self, request: Request) -> Response:
        return reply(self._openapi)

    async def streams(self, request: Request) -> Response:
        return reply({"version": __version__, "streams": [views.fleet_row(each) for each in self._sorted()]})

    def _sorted(self) -> list[Stream]:
        return [stream for _, stream in sorted(self._service.streams.items())]

    async def stream(self, request: Request) -> Response:
        stream = self._stream(request)
        return reply({**views.fleet_row(stream), "settings": stream.config.settings()})

    async def make(self, request: Request) -> Response:
        replay = request.query_params.get("replay", "false")
        if replay not in ("true", "false"):
            raise InvalidInput("replay", repr(replay[:40]), "Pass true or false.")
        name, body = request.path_params["stream"], await read_json(request, self._service.limits)
        done = await make_stream(self._service, name, body, replay=replay == "true")
        return reply({"name": name, "made": done.made, "changed": done.changed}, 201 if done.made else 200)

    async def remove(self, request: Request) -> Response:
        stream = self._stream(request)
        await remove_stream(self._service, stream)
        return reply({"name": stream.name, "removed": True})

    async def observe(self, request: Request) -> Response:
        stream = self._stream(request)
        return await self._posted(
            request, stream, read_observations(await read_json(request, self._service.limits), stream.config.serve)
        )

    async def label(self, request: Request) -> Response:
        stream = self._stream(request)
        return await self._posted(
            request, stream, read_labels(await read_json(request, self._service.limits), stream.config.serve)
        )

    async def _posted(self, request: Request, stream: Stream, items) -> Response:
        seconds = seconds_of(request, "wait")
        if stream.state == FAILED:
            raise Failed(f"stream {stream.name} has stopped: {stream.why}")
        receipt, seq = await self._service.writer.post(stream, items)
        await self._service.computed(stream, seq, seconds)
        head = views.encoded(receipt._asdict())
        # The current forecast is already JSON; without it, the post is not computed yet.
        standing = stream.standing if stream.computed >= seq and stream.standing is not None else b"null"
        return reply(head[:-1] + b',"forecast":' + standing + b"}")

    async def forecast(self, request: Request) -> Response:
        stream = self._stream(request)
        if stream.standing is not None and stream.state != FAILED:
            return reply(stream.standing)
        if stream.state == FAILED:
            raise Failed(f"stream {stream.name} has stopped: {stream.why}")
        if stream.journal.step is None:
            message = "there is no observation yet, so nothing to forecast from. Post one."
            raise Refused(404, "no_forecast", message)
        raise Refused(503, "loading", f"stream {stream.name} is being computed. Ask again.", {"Retry-After": "1"})

    async def agents(self, request: Request) -> Response:
        stream = self._stream(request)
        return reply({"agents": [] if stream.summary is None else stream.summary["agents"]})

    async def status(self, request: Request) -> Response:
        service, stream = self._service, self._stream(request)
        config, summary = stream.config, stream.summary or views.NO_SUMMARY
        entries = await service.read(service.reader.stream(stream.id).count)
        about = {
            "name": stream.name,
            "title": config.federation.name,
            "version": __version__,
            "step": stream.step,
            "state": stream.state,
            "why": stream.why or None,
            "behind": stream.behind,
            "ready": service.not_ready() is None and stream.state != FAILED,
            "agents": stream.names,
            "coverages": list(config.serve.coverages),
            "horizon": config.federation.horizon,
            "units": config.serve.units,
            "settings": config.settings(),
            "journal": {"entries": entries, "retain": config.serve.retain},
            "uptime": time.time() - service.began,
            "first_step": summary["first_step"],
            "scores": summary["scores"],
            "coverage": summary["coverage"],
            "alarms": views.alarms_view(summary),
            "game": summary["game"],
        }
        return reply(about)

    async def history(self, request: Request) -> Response:
        stream = self._stream(request)
        first, last = whole_of(request, "from"), whole_of(request, "to")
        limit, every = whole_of(request, "limit", 100, 1, MOST_ROWS), whole_of(request, "every", 1, 1)
        assert limit is not None
        assert every is not None
        reader = self._service.reader.stream(stream.id)
        return reply(await self._service.read(lambda: read_history(reader, stream, first, last, limit, every)))

    async def log(self, request: Request) -> Response:
        stream = self._stream(request)
        after, limit = whole_of(request, "after"), whole_of(request, "limit", 100, 1, MOST_ROWS)
        assert limit is not None
        reader = self._service.reader.stream(stream.id)
        return reply({"log": await self._service.read(lambda: reader.log(-1 if after is None else after, limit))})

    async def all_events(self, request: Request) -> Response:
        after, limit = whole_of(request, "after"), whole_of(request, "limit", 100, 1, MOST_ROWS)
        assert limit is not None
        found, last = await self._service.read(lambda: self._service.reader.events(after, limit))
        return reply({"events": found, "last": last})

    async def events(self, request: Request) -> Response:
        service, token, stream = self._service, request.scope["token"], self._stream(request)

        def welcome() -> bool:
            if service.streams.get(stream.name) is not stream:
                return False
            if service.tokens is None or token is None:  # or checked by the forwarding machine
                return True
            now = service.tokens.still(token)
            return now is not None and now.state(time.time()) == "valid"

        if request.method == "HEAD":
            return Response(media_type="text/event-stream")
        return _EventStream(service, service.events.enter(stream), welcome)

    async def save_points(self, request: Request) -> Response:
        stream = self._stream(request)
        found = await self._service.read(self._service.reader.stream(stream.id).snapshots)
        return reply({"save_points": [views.save_point_row(each) for each in reversed(found)]})

    async def save_point(self, request: Request) -> Response:
        stream, name = self._stream(request), read_save_point(await read_json(request, self._service.limits))
        return reply(await make_save_point(self._service, stream, name), 201)

    async def restore(self, request: Request) -> Response:
        stream, name = self._stream(request), save_point_name(request.path_params["name"])
        return reply(await restore(self._service, stream, name))

    async def drop(self, request: Request) -> Response:
        stream, name = self._stream(request), save_point_name(request.path_params["name"])
        return reply(await drop_save_point(self._service, stream, name))

    def _stream(self, request: Request) -> Stream:
        name = request.path_params["stream"]
        stream = self._service.streams.get(name)
        if stream is None:
            message = f"stream: got {name[:80]!r}, which is no stream. GET /v1/streams lists them."
            raise Refused(404, "no_such_stream", message)
        return stream


class _EventStream(StreamingResponse):
    """Unregisters the reader however the response ends, started or not."""

    def __init__(self, service: Service, feed: Feed, welcome: Callable[[], bool]):
        super().__init__(
            feed.messages(welcome), media_type="text/event-stream", headers={"X-Accel-Buffering": "no"}
        )  # fmt: skip
        self._service, self._feed = service, feed

    async def __call__(self, scope, receive, send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._service.events.leave(self._feed)
