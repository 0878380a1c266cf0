"""A subject stored by JetStream, read in order from the first unacknowledged message.

JetStream redelivers unacknowledged messages out of order. To preserve the order of observations, a new consumer is
created at the start and after a lost delivery; it starts behind the last message up to which all are acknowledged or
taken. Duplicate messages have the same key.
"""

from __future__ import annotations

import hashlib
import secrets
from typing import Any

from nashcast.service.bridge.settings import Input

# Messages per fetch, seconds to wait for some, and seconds until an unacknowledged message is redelivered.
_FETCH, _FETCH_S, _ACK_S = 100, 2.0, 60.0


class OrderedQueue:
    """js: a JetStream context."""

    def __init__(self, js: Any, source: Input):
        self._js, self._source = js, source
        name = hashlib.sha256(f"{source.address} {source.stream}".encode()).hexdigest()[:16]
        self._prefix = f"nashcast-{name}-"
        self._taken = 0  # position in the stream of the last message taken
        self._expected = 1  # number of the next delivery
        self._subscription: Any = None

    async def open(self) -> None:
        """Continue where the last consumer ended, also that of another process."""
        known = [each for each in await self._js.consumers_info(self._source.jetstream) if self._is_ours(each.name)]
        self._taken = max((each.ack_floor.stream_seq for each in known), default=0)
        await self._renew([each.name for each in known])

    async def fetch(self) -> list[Any]:
        """The next messages, in order; empty after a timeout."""
        import nats.errors

        try:
            found = await self._subscription.fetch(_FETCH, timeout=_FETCH_S)
        except (TimeoutError, nats.errors.TimeoutError):
            return []
        numbers = [message.metadata.sequence.consumer for message in found]
        if numbers != list(range(self._expected, self._expected + len(found))):
            # Deliveries were lost, e.g. when a connection broke.
            name = (await self._subscription.consumer_info()).name
            await self._renew([name])
            return []
        self._expected += len(found)
        return found

    def taken(self, message: Any) -> None:
        """Record that the message was posted or is queued here."""
        self._taken = max(self._taken, message.metadata.sequence.stream)

    def _is_ours(self, name: str | None) -> bool:
        return name is not None and name.startswith(self._prefix)

    async def _renew(self, former: list[str]) -> None:
        from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy

        config = ConsumerConfig(
            ack_policy=AckPolicy.EXPLICIT, ack_wait=_ACK_S, max_ack_pending=2 * _FETCH,
            deliver_policy=DeliverPolicy.BY_START_SEQUENCE, opt_start_seq=self._taken + 1,
        )  # fmt: skip
        if self._subscription is not None:
            await self._subscription.unsubscribe()
        name, stream = self._prefix + secrets.token_hex(4), self._source.jetstream
        self._subscription = await self._js.pull_subscribe(
            self._source.address, durable=name, stream=stream, config=config
        )
        self._expected = 1
        # Deleted only after the new one exists: if killed in between, one of them has the position.
        for each in former:
            await self._js.delete_consumer(stream, each)
