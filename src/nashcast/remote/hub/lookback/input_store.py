"""Stores inputs at the broker for agents that miss a step.

A step waits until its input is stored: a hub may be killed in between. An outage of the broker is waited for as
elsewhere. A broker that answers but cannot store, as with a full disk, costs a few seconds once: from then on steps do
not wait, and each one retries in the background until an input is stored again.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from nashcast.remote.broker.steps import Bounds, open_steps
from nashcast.remote.hub.bus import Bus
from nashcast.remote.wire.subjects import steps_subject

log = logging.getLogger("nashcast.remote")
# Timeout of the broker's store, and delay between attempts.
ANSWER_S, RETRY_S = 1.0, 0.05
# Attempts with a broker that answers pings, before steps continue without stored inputs.
TRIES = 3


class KeptInputs:
    """The hub's side of the durable stream. line: to the broker; raises when it is closed.   bounds: of the stream.

    warning: why inputs are not stored now; None while they are.   lost: number of inputs not stored.
    """

    def __init__(self, line: Callable[[], Bus], federation: str, bounds: Bounds):
        self._line, self._federation, self._bounds = line, federation, bounds
        self._stream: Any = None
        self._keeping: Future | None = None
        self.warning: str | None = None
        self.lost = 0

    async def open(self) -> None:
        from nats.errors import Error

        try:
            self._stream = await open_steps(self._line().client, self._federation, self._bounds)
        except (Error, TimeoutError) as error:
            self._degraded(error)

    def keep(self, step: int, data: bytes) -> None:
        """Start storing an input, while the agents are asked."""
        self.wait()
        if self.warning is None:
            self._keeping = self._line().start(self._kept(step, data))
        else:
            self.lost += 1
            if self._keeping is None or self._keeping.done():
                self._keeping = self._line().start(self._tried_again(step, data))

    def wait(self) -> None:
        """Wait until the last input is stored or has failed."""
        if self._keeping is not None and self.warning is None:
            self._line().finish(self._keeping)
            self._keeping = None

    async def _kept(self, step: int, data: bytes) -> None:
        from nats.errors import Error

        # The message id makes retries idempotent; of two inputs of the same step, the last one counts.
        headers, failures = {"Nats-Msg-Id": secrets.token_hex(16)}, 0
        while True:
            await self._line().wait_for_broker()
            try:
                await self._publish(data, headers)
                return
            except (Error, TimeoutError) as error:
                # A broker that does not answer pings is away; its disk need not be full.
                failures += await self._line().answers()
                if failures >= TRIES:
                    self.lost += 1
                    self._degraded(error)
                    return
                await asyncio.sleep(RETRY_S)

    async def _tried_again(self, step: int, data: bytes) -> None:
        from nats.errors import Error

        try:
            await self._publish(data, {})
        except (Error, TimeoutError):
            return
        self.lost -= 1
        self.warning = None
        log.warning("hub: inputs are kept again from step %d on; %d are not, in all", step, self.lost)

    async def _publish(self, data: bytes, headers: dict[str, str]) -> None:
        if self._stream is None:
            self._stream = await open_steps(self._line().client, self._federation, self._bounds)
        await self._stream.publish(steps_subject(self._federation), data, timeout=ANSWER_S, headers=headers)

    def _degraded(self, error: Exception) -> None:
        said = str(error) or "no answer"
        remedy = "Look at the broker's log, and make space on its disk."
        self.warning = f"the broker stores no inputs ({said}): agents that miss a step miss its input too. {remedy}"
        log.warning("hub: %s", self.warning)
