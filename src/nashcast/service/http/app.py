"""The application: routes behind the middleware."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import asynccontextmanager

from starlette.exceptions import HTTPException
from starlette.routing import Router

from nashcast.service.http.access.middleware import PUBLIC, Guard
from nashcast.service.http.http_errors import Refused
from nashcast.service.http.routes import routes
from nashcast.service.page.pages import pages
from nashcast.service.streams.service import Service


def make_app(service: Service) -> Callable:
    """The ASGI application. `service` must be open; it is started and stopped with the application."""
    page = pages()

    @asynccontextmanager
    async def lifespan(app):
        await service.start()
        try:
            yield
        finally:
            await service.stop()

    router = Router([*page, *routes(service)], redirect_slashes=False, lifespan=lifespan)
    public = (*PUBLIC, *(route.path for route in page if "{" not in route.path))
    return Guard(_routed(router), service.tokens, service.limits.rate, service.answers, public)


def forwarded_app(service: Service) -> Callable:
    """The same handlers for requests whose token and rate another machine has checked."""
    router = Router(routes(service), redirect_slashes=False)
    return Guard(_routed(router), None, float("inf"), service.answers)


def _routed(router: Router) -> Callable:
    async def routed(scope, receive, send) -> None:
        # With it the router raises if no route matches, instead of sending its own response.
        scope["app"] = router
        try:
            await router(scope, receive, send)
        except HTTPException as error:
            raise _refused(scope, error) from None

    return routed


def _refused(scope, error: HTTPException) -> Refused:
    if error.status_code == 405:
        headers = dict(error.headers or {})
        message = f"{scope['method'][:20]} is not allowed for this path. Use {headers.get('Allow')}."
        return Refused(405, "no_such_method", message, headers)
    message = "no such path; /v1/openapi.json lists all paths."
    return Refused(error.status_code, "no_such_path", message)
