"""Middleware that checks the path, origin, token and rate of each request. Refusals are logged, secrets never."""

from __future__ import annotations

import ipaddress
import logging
import re
import time
from collections.abc import Callable, MutableMapping
from typing import Any
from urllib.parse import urlsplit

from nashcast.service.http.access.rates import Rates
from nashcast.service.http.access.tokens import Token, TokenFile
from nashcast.service.http.http_errors import Refused, refusal
from nashcast.service.http.metrics import Answers

logger = logging.getLogger("nashcast.service")

# Public paths: they reveal nothing about streams.
PUBLIC = ("/healthz", "/readyz", "/v1/openapi.json")
_PATH = re.compile(r"(/[A-Za-z0-9._~-]+)*/?")
# The page is the same file for every stream name; it requests its data with a token.
_STREAM_PAGE = re.compile(r"/streams/[A-Za-z0-9._-]{1,63}")
_LOCAL = ("localhost", "127.0.0.1", "[::1]")
# Failed attempts per address: rate per second, and burst.
_FAILURES = (50.0, 500.0)
HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"cache-control", b"no-store"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"cross-origin-resource-policy", b"same-origin"),
]


class Guard:
    """Wraps the application. tokens: None allows every request from this machine.

    public: paths that need no token.   rate: requests a second per token.
    """

    def __init__(self, app: Callable, tokens: TokenFile | None, rate: float, answers: Answers, public=PUBLIC):
        self._app, self._tokens, self._answers, self._public = app, tokens, answers, frozenset(public)
        self._rates, self._failures = Rates(rate, 2 * rate), Rates(*_FAILURES)

    async def __call__(self, scope: dict[str, Any], receive: Callable, send: Callable) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, status, started = time.perf_counter(), 500, False

        async def sending(message: dict[str, Any]) -> None:
            nonlocal status, started
            if message["type"] == "http.response.start":
                status, started = message["status"], True
                given = {name for name, _ in message["headers"]}
                message["headers"] = [*message["headers"], *(pair for pair in HEADERS if pair[0] not in given)]
            await send(message)

        try:
            self._admit(scope)
            await self._app(scope, receive, sending)
        except Exception as error:
            answer = refusal(error)
            if answer is None:
                logger.exception("%s %s failed", scope["method"], _shown(scope["path"]))
                answer = Refused(500, "internal", "internal error; see the server log.")
            else:
                _log(scope, answer)
            if not started:
                await _send(sending, answer)
        finally:
            # Counted by the route's pattern, so that arbitrary paths do not fill the memory.
            route = scope.get("route")
            path = getattr(route, "path", None) or ("other" if scope["path"] not in self._public else scope["path"])
            self._answers.add(path, scope["method"] if path != "other" else "", status, time.perf_counter() - began)

    def _admit(self, scope: dict[str, Any]) -> None:
        raw = scope.get("raw_path") or scope["path"].encode("utf-8", "replace")
        plain = raw.split(b"?")[0].decode("latin-1")
        if _PATH.fullmatch(plain) is None or any(part in (".", "..") for part in plain.split("/")):
            raise Refused(404, "no_such_path", "no such path; /v1/openapi.json lists all paths.")
        headers = dict(scope["headers"])
        self._check_origin(headers)
        scope["token"] = None
        if plain in self._public or _STREAM_PAGE.fullmatch(plain) is not None:
            return
        address = scope["client"][0] if scope.get("client") else "unknown"
        token = self._token(headers, address)
        scope["token"] = token
        seconds = self._rates.wait(address if token is None else token.hash)
        if seconds:
            raise _too_fast(seconds)

    def _check_origin(self, headers: dict[bytes, bytes]) -> None:
        host = headers.get(b"host", b"").decode("latin-1").lower()
        origin = headers.get(b"origin")
        if origin is not None and urlsplit(origin.decode("latin-1").lower()).netloc != host:
            raise Refused(403, "other_origin", "pages of other origins are refused. Serve the page from this host.")
        if self._tokens is None and host.rsplit(":", 1)[0] not in _LOCAL and host not in _LOCAL:
            # Protects against DNS rebinding when there are no tokens.
            raise Refused(403, "other_host", "without tokens, requests must go to localhost. Serve with tokens.")

    def _token(self, headers: dict[bytes, bytes], address: str) -> Token | None:
        if self._tokens is None:
            return None
        kind, _, secret = headers.get(b"authorization", b"").decode("latin-1").partition(" ")
        token = self._tokens.find(secret.strip()) if kind.lower() == "bearer" else None
        state = "missing" if not secret else "unknown" if token is None else token.state(time.time())
        if token is not None and state == "valid":
            return token
        seconds = self._failures.wait(address)
        if seconds:
            raise _too_fast(seconds)
        challenge = "Bearer" if state == "missing" else 'Bearer error="invalid_token"'
        message = f"the token is {state}. Pass a valid one: Authorization: Bearer …"
        raise Refused(401, f"token_{state}", message, {"WWW-Authenticate": challenge})


def allow(scope: MutableMapping[str, Any], needed: str, tokens: TokenFile | None) -> None:
    """Raise Refused if the request's token lacks the scope `needed`."""
    if tokens is None:
        return
    token = scope["token"]
    if token is None or not token.allows(needed):
        has = "none" if token is None else ", ".join(token.scopes)
        challenge = f'Bearer error="insufficient_scope", scope="{needed}"'
        message = f"this needs the scope {needed}; the token has {has}. Use another token."
        raise Refused(403, "scope", message, {"WWW-Authenticate": challenge})


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _too_fast(seconds: float) -> Refused:
    wait = str(max(1, int(seconds + 0.999)))
    return Refused(429, "too_fast", f"too many requests. Wait {wait} s.", {"Retry-After": wait})


def _log(scope: dict[str, Any], answer: Refused) -> None:
    """Log a refusal and its reason. Headers and queries are never logged: they may hold secrets."""
    token = scope.get("token")
    caller = "unknown caller" if token is None else repr(token.name)
    address = scope["client"][0] if scope.get("client") else "unknown"
    level = logging.WARNING if answer.status in (401, 403, 413, 429, 503, 507) else logging.INFO
    logger.log(
        level, "refused %d %s: %s %s by %s from %s", answer.status, answer.code, scope["method"], _shown(scope["path"]),
        caller, address,
    )  # fmt: skip


def _shown(path: str) -> str:
    return repr(path if len(path) <= 100 else path[:97] + "…")


async def _send(send: Callable, answer: Refused) -> None:
    body = answer.body()
    headers = [(name.lower().encode(), value.encode()) for name, value in answer.headers.items()]
    headers += [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
