"""The pages: static files. They request their data with a token."""

from __future__ import annotations

from importlib.resources import files

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

# Only same-origin files, no inline scripts, and trusted types, so that no text becomes markup.
POLICY = (
    "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
_PATHS = {"fleet.html": "/", "stream.html": "/streams/{stream}"}
_KINDS = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}


def pages() -> list[Route]:
    """Routes: all streams at /, one stream at /streams/NAME, scripts and styles below /page."""
    found, folder = [], files("nashcast.service").joinpath("page")
    for file in sorted([*folder.iterdir(), *folder.joinpath("scripts").iterdir()], key=lambda file: file.name):
        kind = _KINDS.get(file.name.rpartition(".")[2])
        if kind is not None:
            path = _PATHS.get(file.name, f"/page/{file.name}")
            found.append(Route(path, _sender(file.read_bytes(), kind), methods=["GET"]))
    return found


def _sender(content: bytes, kind: str):
    headers = {"Content-Security-Policy": POLICY}

    async def send(request: Request) -> Response:
        return Response(content, media_type=kind, headers=headers)

    return send
