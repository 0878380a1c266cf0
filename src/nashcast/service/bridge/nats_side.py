"""NATS: subscribe to subjects and publish. With JetStream a message is acknowledged once the service has it on disk."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any
from urllib.parse import urlsplit

from nashcast.errors import InvalidInput, NashcastError
from nashcast.service.bridge.jetstream import OrderedQueue
from nashcast.service.bridge.messages import BadMessage, Message, read_rows
from nashcast.service.bridge.settings import Account, Input

logger = logging.getLogger("nashcast.bridge")
_START_S = 20.0


class NatsSide(threading.Thread):
    """A thread with its own event loop. put: called with each message; may block."""

    def __init__(self, account: Account, inputs: Sequence[Input], put: Callable[[Message], None]):
        super().__init__(name="nashcast bridge NATS", daemon=True)
        try:
            import nats  # noqa: F401
        except ImportError:
            remedy = "Install it: pip install 'nashcast[nats]'."
            raise InvalidInput("bridge", "no package nats-py", remedy) from None
        self._account, self._inputs, self._put = account, inputs, put
        self._began: Future[None] = Future()
        self._ending = asyncio.Event()
        self.bad = 0

    def begin(self) -> None:
        """Connect and subscribe; raises NashcastError with the reason if that fails."""
        parts = urlsplit(self._account.url)
        try:
            # The client retries forever; at the start an unreachable server is an error instead.
            socket.create_connection((parts.hostname or "", parts.port or 4222), 5.0).close()
            self.start()
            self._began.result(_START_S)
        except Exception as error:
            url = self._account.url
            raise NashcastError(f"NATS at {url}: {type(error).__name__}: {str(error)[:200]}.") from error

    def run(self) -> None:
        asyncio.run(self._run())

    def stop(self) -> None:
        if self.is_alive():
            self._loop.call_soon_threadsafe(self._ending.set)
            self.join(5.0)

    def publish(self, address: str, body: bytes, own_id: str, retain: bool) -> None:
        """own_id: message id, by which JetStream discards duplicates."""
        headers = {"Nats-Msg-Id": own_id}
        sent = asyncio.run_coroutine_threadsafe(self._client.publish(address, body, headers=headers), self._loop)
        sent.result(10.0)

    async def _run(self) -> None:
        import nats

        self._loop = asyncio.get_running_loop()
        tasks: list[asyncio.Task] = []
        try:
            async with asyncio.timeout(_START_S / 2):
                self._client = await nats.connect(**_options(self._account))
            for each in self._inputs:
                if each.jetstream is None:
                    await self._client.subscribe(each.address, cb=self._hear(each))
                else:
                    queue = OrderedQueue(self._client.jetstream(), each)
                    await queue.open()
                    tasks.append(asyncio.create_task(self._fetch(each, queue)))
            await self._client.flush()  # after this the server has the subscriptions
        except Exception as error:
            self._began.set_exception(error)
            return
        self._began.set_result(None)
        await self._ending.wait()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._client.close()

    async def _fetch(self, source: Input, queue: OrderedQueue) -> None:
        import nats.errors

        hear = self._hear(source)
        while True:
            try:
                for message in await queue.fetch():
                    await hear(message)
                    queue.taken(message)
            except (nats.errors.Error, OSError, TimeoutError) as error:
                logger.warning("JetStream %s: %s: %s", source.jetstream, type(error).__name__, error)
                await asyncio.sleep(1.0)

    def _hear(self, source: Input) -> Callable[[Any], Any]:
        async def hear(message: Any) -> None:
            stored = source.jetstream is not None
            own_id = (message.headers or {}).get("Nats-Msg-Id")
            if own_id is None and stored:
                place = message.metadata
                own_id = f"{place.stream}:{place.sequence.stream}"
            done = self._acknowledge(message) if stored else lambda: None
            try:
                rows, labels = read_rows(message.data, message.subject, own_id)
            except BadMessage as error:
                self._refuse(message.subject, error)
                done()
                return
            found = Message(source.stream_of(message.subject), rows, labels, done)
            # In a thread, so that the event loop can answer pings while the service is slow.
            await self._loop.run_in_executor(None, self._put, found)

        return hear

    def _acknowledge(self, message: Any) -> Callable[[], None]:
        def done() -> None:
            # Unacknowledged messages are redelivered; their key makes them count once.
            if not self._loop.is_closed():
                asyncio.run_coroutine_threadsafe(message.ack(), self._loop)

        return done

    def _refuse(self, subject: str, error: BadMessage) -> None:
        self.bad += 1
        if self.bad & (self.bad - 1) == 0:  # the first, second, fourth, eighth …
            logger.error("subject %s: %s (%d such messages so far)", subject[:200], error, self.bad)


def _options(account: Account) -> dict[str, Any]:
    async def note(error: Exception) -> None:
        logger.warning("NATS: %s: %s", type(error).__name__, error)

    options: dict[str, Any] = {
        "servers": [account.url], "name": account.client_id, "max_reconnect_attempts": -1, "error_cb": note,
        "allow_reconnect": True, "connect_timeout": 5,
    }  # fmt: skip
    given = {"user": account.user, "password": account.password, "token": account.token}
    options |= {name: value for name, value in given.items() if value is not None}
    if account.credentials is not None:
        options["user_credentials"] = account.credentials
    if account.url.startswith("tls") or account.ca_file is not None:
        context = ssl.create_default_context(cafile=account.ca_file)
        if account.cert_file is not None:
            context.load_cert_chain(account.cert_file, account.key_file)
        options["tls"] = context
    return options
