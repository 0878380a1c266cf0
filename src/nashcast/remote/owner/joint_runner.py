"""Messages of the joint game at an owner's: heard in their order, answered on the agent's own subject."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

from nashcast.remote.owner.joint_owner import Behind, JointOwner

# Seconds of a message after which the next is likely to be as quick.
QUICK_S = 0.05


class JointRunner:
    """owner: of the agent.   publish: sends an answer to the hub."""

    def __init__(self, owner: JointOwner, publish: Callable[[bytes], Awaitable[None]]):
        self._owner, self._publish = owner, publish
        self._lock, self._quick = asyncio.Lock(), False

    async def told(self, message: Any) -> None:
        """A message to all agents."""
        answer = await self._heard(message.data)
        if answer is not None:
            await self._publish(answer)

    async def asked(self, message: Any) -> None:
        """The same message to this agent alone: its answer did not come."""
        answer = await self._heard(message.data)
        if answer is not None:
            await message.respond(answer)

    async def _heard(self, data: bytes) -> bytes | None:
        """In a thread if it may take its time, so that the line is kept meanwhile; to change threads takes time too."""
        async with self._lock:
            began = time.monotonic()
            try:
                if self._quick:
                    return self._owner.hear(data, catch_up=False)
            except Behind:
                pass  # what was missed is read from the log, in a thread: the loop cannot wait for itself
            finally:
                self._quick = time.monotonic() - began < QUICK_S
            loop = asyncio.get_running_loop()
            answer = await loop.run_in_executor(None, self._owner.hear, data)
            self._quick = time.monotonic() - began < QUICK_S
            return answer
