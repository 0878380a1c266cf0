"""Processes messages of the joint game in order, and answers on the agent's own subject."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

from nashcast.remote.owner.joint_owner import Behind, JointOwner

# A message processed within this time makes the next likely to be as quick.
QUICK_S = 0.05


class JointRunner:
    """owner: of the agent.   publish: sends an answer to the hub."""

    def __init__(self, owner: JointOwner, publish: Callable[[bytes], Awaitable[None]]):
        self._owner, self._publish = owner, publish
        self._lock, self._quick = asyncio.Lock(), False

    async def told(self, message: Any) -> None:
        """Process a message to all agents."""
        answer = await self._heard(message.data)
        if answer is not None:
            await self._publish(answer)

    async def asked(self, message: Any) -> None:
        """Process the same message, sent to this agent alone because its answer did not arrive."""
        answer = await self._heard(message.data)
        if answer is not None:
            await message.respond(answer)

    async def _heard(self, data: bytes) -> bytes | None:
        """The answer. Slow messages use a thread, so that the connection stays alive; quick ones avoid its overhead."""
        async with self._lock:
            began = time.monotonic()
            try:
                if self._quick:
                    return self._owner.hear(data, catch_up=False)
            except Behind:
                pass  # missed events are read from the log in a thread: the loop cannot wait for itself
            finally:
                self._quick = time.monotonic() - began < QUICK_S
            loop = asyncio.get_running_loop()
            answer = await loop.run_in_executor(None, self._owner.hear, data)
            self._quick = time.monotonic() - began < QUICK_S
            return answer
