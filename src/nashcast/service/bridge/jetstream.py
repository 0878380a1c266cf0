"""A subject that JetStream keeps, read in its order from the first message that was not acknowledged.

JetStream delivers again what was not acknowledged, but later than what came after it. So that streams see observations
in their order, a consumer is made anew at the start, and where a delivery went missing, from the place up to which
everything is acknowledged or taken; messages that come twice have the same key.
"""

from __future__ import annotations

import hashlib
import secrets
from typing import Any

from nashcast.service.bridge.settings import Input

# Messages taken at once, seconds to wait for some, and after which one that was not acknowledged comes again.
_FETCH, _FETCH_S, _ACK_S = 100, 2.0, 60.0


class OrderedQueue:
    """js: a JetStream context."""

    def __init__(self, js: Any, source: Input):
        self._js, self._source = js, source
        name = hashlib.sha256(f"{source.address} {source.stream}".encode()).hexdigest()[:16]
        self._prefix = f"nashcast-{name}-"
        self._taken = 0  # place in the stream of the last message that was taken
        self._expected = 1  # the next delivery's number
        self._subscription: Any = None

    async def open(self) -> None:
        """From where the last one ended, be it another process's."""
        known = [each for each in await self._js.consumers_info(self._source.jetstream) if self._is_ours(each.name)]
        self._taken = max((each.ack_floor.stream_seq for each in known), default=0)
        await self._renew([each.name for each in known])

    async def fetch(self) -> list[Any]:
        """The next messages, in order; none where there are none for a while."""
        import nats.errors

        try:
            found = await self._subscription.fetch(_FETCH, timeout=_FETCH_S)
        except (TimeoutError, nats.errors.TimeoutError):
            return []
        numbers = [message.metadata.sequence.consumer for message in found]
        if numbers != list(range(self._expected, self._expected + len(found))):
            # Some were lost on the way, as when a connection breaks.
            name = (await self._subscription.consumer_info()).name
            await self._renew([name])
            return []
        self._expected += len(found)
        return found

    def taken(self, message: Any) -> None:
        """It is with the service, or waits for it here."""
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
        # After the new one is there: whatever is killed in between, one of them knows the place.
        for each in former:
            await self._js.delete_consumer(stream, each)
