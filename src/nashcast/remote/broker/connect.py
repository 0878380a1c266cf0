"""A connection to the broker, for the hub and for agents: identity, TLS, and reconnection after interruptions."""

from __future__ import annotations

import asyncio
import logging
import ssl
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from nashcast.errors import InvalidInput, NashcastError
from nashcast.remote.broker.certificates.keys import public_key, read_seed
from nashcast.remote.broker.certificates.tls import Credentials
from nashcast.remote.broker.files import needed

log = logging.getLogger("nashcast.remote")
# Delay between attempts, timeout of one attempt, and interval of pings that detect a silent broker. An attempt may take
# its whole timeout: asyncio does not notice that a broker dies between the first bytes and TLS.
RETRY_S, DIAL_TIMEOUT_S, PING_S = 0.25, 2, 5
Notice = Callable[[], Awaitable[None]]


async def connect(
    url: str,
    *,
    seed_file: str | Path,
    name: str,
    tls: str | Path | None = None,
    patience: float = 20.0,
    on_reconnect: Notice | None = None,
    on_close: Notice | None = None,
) -> Any:
    """A connected client of nats-py. It reconnects without limit, unless its key is refused: then it is closed.

    name: of the agent, or "hub".   tls: a folder with `ca.pem`, `NAME.pem` and `NAME-key.pem`; with it, everything is
    sent over TLS.   patience: seconds to retry while there is no broker, or while it still has an earlier connection.
    on_reconnect, on_close: called after reconnection, with its subscriptions, and after the final close.
    """
    _check_url(url)
    credentials = None if tls is None else Credentials(tls, name)
    logging.getLogger("asyncio").addFilter(_not_the_end_of_tls)
    seed = read_seed(seed_file)
    line = _Line(url, name, public_key(seed), credentials, on_reconnect, on_close)
    tried_until = time.monotonic() + patience
    while True:
        client = line.client = _client_class()()
        context = line.context()
        try:
            await client.connect(
                url, name=name, nkeys_seed_str=seed, inbox_prefix=f"_INBOX_{name}", tls=context,
                tls_handshake_first=context is not None or url.startswith("tls"), allow_reconnect=True,
                max_reconnect_attempts=-1, reconnect_time_wait=RETRY_S, connect_timeout=DIAL_TIMEOUT_S,
                ping_interval=PING_S, max_outstanding_pings=2,
                error_cb=line.failed, disconnected_cb=line.lost, reconnected_cb=line.back, closed_cb=line.closed,
            )  # fmt: skip
            if client.is_connected:
                break
            # nats-py returns without a connection if the broker hangs up instead of answering.
            raise _Failed(f"the broker at {url} closed the connection. See its log.", final=False)
        except _Failed as failed:
            await _abandoned(client)
            if failed.final or time.monotonic() + RETRY_S > tried_until:
                raise NashcastError(str(failed)) from None
            await asyncio.sleep(RETRY_S)
        except BaseException:
            await _abandoned(client)
            raise
    line.dialling = False
    log.info("%s: connected to %s", name, url)
    return client


@cache
def _client_class() -> type:
    """nats-py's client with a workaround: it would stop reading for good at a message with unreadable headers."""

    class Client(needed("nats").NATS):
        async def _process_headers(self, headers):
            try:
                return await super()._process_headers(headers)
            except Exception as error:  # headers are untrusted and not needed; the message itself is checked anyway
                log.debug("headers that make no sense: %r", error)
                return None

    return Client


def _check_url(url: str) -> None:
    try:
        parts = urlsplit(url)
        right = parts.scheme in ("nats", "tls") and parts.hostname and parts.port != 0
    except (ValueError, AttributeError):
        right = False
    if not right:
        raise InvalidInput("url", f"{url!r:.80}", "Pass nats://HOST:PORT or tls://HOST:PORT.")


class _Failed(Exception):
    """Why there is no connection. final: retrying is useless."""

    def __init__(self, message: str, final: bool):
        super().__init__(message)
        self.final = final


class _Line:
    """Events of one connection: logged, or raised before the first connection."""

    def __init__(
        self,
        url: str,
        name: str,
        key: str,
        credentials: Credentials | None,
        on_reconnect: Notice | None,
        on_close: Notice | None,
    ):
        self.url, self.name, self.key, self.credentials = url, name, key, credentials
        self.on_reconnect, self.on_close = on_reconnect, on_close
        self.client: Any = None
        self.dialling = True
        self._said, self._over = "", False
        self._closing: asyncio.Task | None = None

    def context(self) -> ssl.SSLContext | None:
        """The TLS context for the next attempt, from the present files."""
        if self.credentials is not None:
            self.credentials.refresh()
            return self.credentials.context
        # The federation's broker has its own authority: verification fails at once and the message says so.
        return ssl.create_default_context() if self.url.startswith("tls:") else None

    def _renew(self) -> None:
        if self.credentials is not None:
            self.client.options["tls"] = self.context()

    async def failed(self, error: Exception) -> None:
        if self.dialling:
            raise self._reason(error)
        self._renew()  # nats-py dials again with what is in its options
        said = str(error) or type(error).__name__
        if said != self._said:  # retries fail four times a second
            log.warning("%s: %s", self.name, said)
        self._said = said
        if _refused(error) and self._closing is None:
            log.error("%s: %s", self.name, self._reason(error))
            self._closing = asyncio.create_task(self._shut_out())

    async def lost(self) -> None:
        if not self.dialling and not self.client.is_closed:
            log.warning("%s: connection to %s lost", self.name, self.url)
            self._renew()

    async def back(self) -> None:
        self._said = ""
        log.info("%s: connected to %s again", self.name, self.url)
        if self.on_reconnect is not None:
            await self.on_reconnect()

    async def _shut_out(self) -> None:
        """Close for good, and report it once: nats-py may hang on a connection that the broker has ended."""
        await _abandoned(self.client)
        await self.closed()

    async def closed(self) -> None:
        if not self.dialling and not self._over:
            self._over = True
            log.info("%s: connection to %s closed", self.name, self.url)
            if self.on_close is not None:
                await self.on_close()

    def _reason(self, error: Exception) -> _Failed:
        who = f"the broker at {self.url}"
        said = str(error) or type(error).__name__
        if _refused(error):
            remedy = f"Its operator enrols it: nashcast enroll add FOLDER {self.name} {self.key}"
            return _Failed(f"{who} does not know the key of {self.name!r}, or it was revoked. {remedy}", final=True)
        if "maximum account active connections" in said:
            remedy = "Stop the other one, or wait: one that died is given up within 15 s."
            return _Failed(f"{who} already has a connection of {self.name!r}. {remedy}", final=False)
        if isinstance(error, ssl.SSLCertVerificationError):
            remedy = "Ask its operator, who renews it: nashcast certs FOLDER --overwrite."
            if self.credentials is None:
                remedy = "Pass tls=, the folder with the federation's ca.pem."
            elif "not yet valid" in error.verify_message:
                remedy = f"Set the clock of this machine, which says {datetime.now(UTC):%Y-%m-%d %H:%M} UTC, or theirs."
            return _Failed(
                f"{who} has a certificate that is not valid here: {error.verify_message}. {remedy}", final=True
            )
        if isinstance(error, ssl.SSLError):
            why = (error.reason or said).lower().replace("_", " ")
            if "alert" in why:
                remedy = "Have one signed by the federation's authority: nashcast certs request."
                told = f"{who} refuses the certificate of {self.name!r}: {why.rpartition('alert ')[2]}. {remedy}"
            else:
                told = f"{who} and {self.name!r} do not agree on TLS: {why}. Check that both sides use it."
            # A client that began TLS too late may be quicker the next time.
            return _Failed(told, final="wrong version" not in why)
        return _Failed(f"{who} cannot be reached: {said}. Check the address, and that the broker runs.", final=False)


def _not_the_end_of_tls(record: logging.LogRecord) -> bool:
    """Filters a harmless warning of asyncio when nats-py ends a connection over TLS."""
    return "eof_received() has no effect when using ssl" not in record.getMessage()


def _refused(error: Exception) -> bool:
    return "authorization violation" in str(error).lower()


async def _abandoned(client: Any) -> None:
    """Close a client without a connection; nats-py would wait for ever for the end of TLS that did not begin."""
    try:
        await asyncio.wait_for(client.close(), RETRY_S)
    except Exception as error:
        log.debug("closing a client without a connection: %r", error)
