"""Run the service until it is stopped."""

from __future__ import annotations

import asyncio
import asyncio.constants
import logging
import signal
import socket
import sys
from pathlib import Path
from typing import NamedTuple

import uvicorn

from nashcast.errors import InvalidInput
from nashcast.service.http.access.connections import ConnectionLimit, Listener, QuietErrors, raise_descriptors
from nashcast.service.http.access.middleware import is_loopback
from nashcast.service.http.access.protocol import LimitedProtocol
from nashcast.service.http.app import make_app
from nashcast.service.streams.service import Service

logger = logging.getLogger("nashcast.service")
# Interpreter switch interval: longest time that computation delays the event loop.
SWITCH_SECONDS = 0.0005
# Seconds for a TLS handshake, and for pending responses at shutdown.
HANDSHAKE_SECONDS, GRACE_SECONDS = 8.0, 3


class Address(NamedTuple):
    """tls_cert, tls_key: PEM files; both or neither.   plain_http: allow other machines without TLS."""

    host: str = "127.0.0.1"
    port: int = 8500
    tls_cert: Path | None = None
    tls_key: Path | None = None
    plain_http: bool = False

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.tls_cert else 'http'}://{host}:{self.port}"


def check_address(address: Address, *, tokens: bool) -> None:
    if (address.tls_cert is None) != (address.tls_key is None):
        raise InvalidInput("tls", "one of certificate and key", "Pass both --tls-cert and --tls-key.")
    for path in (address.tls_cert, address.tls_key):
        if path is not None and not path.is_file():
            raise InvalidInput("tls", f"no file {path}", "Pass PEM files.")
    if is_loopback(address.host):
        return
    if not tokens:
        raise InvalidInput("host", f"{address.host} without tokens", "Leave out --no-auth, or serve on 127.0.0.1.")
    if address.tls_cert is None and not address.plain_http:
        remedy = "Pass --tls-cert and --tls-key, or --plain-http if something in front of it speaks TLS."
        raise InvalidInput("host", f"{address.host} without TLS, which would send tokens in the clear", remedy)


class _Server(uvicorn.Server):
    """Ends event streams at shutdown, so that they do not delay it."""

    def __init__(self, config: uvicorn.Config, service: Service, ready):
        super().__init__(config)
        self._service, self._ready = service, ready

    async def startup(self, sockets=None) -> None:
        asyncio.get_running_loop().set_exception_handler(QuietErrors())
        await super().startup(sockets)
        if self.started:
            self._ready()

    async def shutdown(self, sockets=None) -> None:
        self._service.events.end(self._service.streams.values())
        await super().shutdown(sockets)


def bind(address: Address) -> Listener:
    """Bind first, so that an address in use is reported before a replay."""
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    # Protocol set to TCP, so that asyncio sets TCP_NODELAY: otherwise a body waits until the head is acknowledged.
    listener = Listener(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((address.host, address.port))
    except OSError as error:
        listener.close()
        remedy = "Choose another --host or --port."
        raise InvalidInput("address", f"{address.host}:{address.port} ({error.strerror})", remedy) from None
    return listener


def serve(service: Service, address: Address, listener: Listener, ready=lambda: None) -> None:
    """Blocks until SIGINT or SIGTERM. ready: called when requests are accepted."""
    sys.setswitchinterval(SWITCH_SECONDS)
    limits = service.limits
    listener.limit = ConnectionLimit(raise_descriptors(limits.connections), limits.per_address)
    # asyncio waits a minute for a handshake by default, and uvicorn has no option for it.
    asyncio.constants.SSL_HANDSHAKE_TIMEOUT = HANDSHAKE_SECONDS  # type: ignore[attr-defined]
    config = uvicorn.Config(
        make_app(service), http=LimitedProtocol, lifespan="on", log_config=None, access_log=False, server_header=False,
        date_header=False, ws="none", limit_concurrency=None, timeout_keep_alive=30,
        timeout_graceful_shutdown=GRACE_SECONDS, backlog=1024, proxy_headers=False,
        ssl_certfile=None if address.tls_cert is None else str(address.tls_cert),
        ssl_keyfile=None if address.tls_key is None else str(address.tls_key),
    )  # fmt: skip
    server = _Server(config, service, ready)
    # uvicorn re-raises the signal after shutdown, before the journal is closed.
    before = signal.signal(signal.SIGTERM, lambda *_: None)
    try:
        server.run(sockets=[listener])
    except KeyboardInterrupt:
        pass
    finally:
        signal.signal(signal.SIGTERM, before)
        service.close()
