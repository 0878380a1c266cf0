"""The joint game's line to its agents, over the hub's connection to the broker."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from nashcast.remote.hub.bus import Bus
from nashcast.remote.hub.joint_answers import ReadAnswer
from nashcast.remote.wire.joint_messages import Said
from nashcast.remote.wire.subjects import everybody_subject
from nashcast.remote.wire.transport import Failure

# Turns of the event loop in which the client writes what was published.
_TURNS = 3


class BusLine:
    """greet: reads the hellos that have come.   store: keeps the bytes of a step in the durable stream."""

    def __init__(self, bus: Bus, federation: str, greet: Callable[[], None], store: Callable[[int, bytes], None]):
        self._bus, self._federation, self._greet, self._store = bus, federation, greet, store
        self.traffic = {"down": 0, "up": 0}

    def ask(self, data: bytes, names: Sequence[str], read: ReadAnswer) -> dict[str, Said | Failure]:
        self._greet()
        self.traffic["down"] += len(data)

        def counted(name: str, answer: bytes) -> Said | Failure | None:
            self.traffic["up"] += len(answer)
            return read(name, answer)

        return self._bus.announce(data, names, counted)

    def tell(self, data: bytes, now: bool = False) -> None:
        """Else it leaves with the next message, or soon, while the caller does something else."""
        self.traffic["down"] += len(data)
        if now:
            self._bus.run(self._published(data))
        else:
            self._bus.start(self._bus.client.publish(everybody_subject(self._federation), data))

    async def _published(self, data: bytes) -> None:
        client = self._bus.client
        if client.is_connected:  # else it is read from the log
            await client.publish(everybody_subject(self._federation), data)
            for _ in range(_TURNS):  # until the client's own task has written it
                await asyncio.sleep(0)

    def keep(self, step: int, data: bytes) -> None:
        self._store(step, data)
