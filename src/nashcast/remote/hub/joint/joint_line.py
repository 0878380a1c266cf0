"""The joint game's line to its agents, over the hub's connection to the broker."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence

from nashcast.remote.hub.bus import Bus, Together
from nashcast.remote.hub.joint.joint_answers import ReadAnswer
from nashcast.remote.hub.row_journal import RowJournal
from nashcast.remote.wire.joint.joint_messages import Said
from nashcast.remote.wire.subjects import everybody_subject
from nashcast.remote.wire.transport import Failure

# Iterations of the event loop in which the client writes published messages.
_TURNS = 3


class BusLine:
    """greet: reads received hellos.   store: writes the bytes of a step to the durable stream.

    journal: of the present row.
    """

    def __init__(
        self,
        bus: Bus,
        federation: str,
        greet: Callable[[], None],
        store: Callable[[int, bytes], None],
        journal: RowJournal,
    ):
        self.journal = journal
        self._bus, self._federation, self._greet, self._store = bus, federation, greet, store
        self.traffic = {"down": 0, "up": 0}
        self._waiting: deque[bytes] = deque()

    def ask(self, data: bytes, names: Sequence[str], read: ReadAnswer) -> dict[str, Said | Failure]:
        self._greet()
        self.traffic["down"] += len(data)

        def counted(name: str, answer: bytes) -> Said | Failure | None:
            self.traffic["up"] += len(answer)
            return read(name, answer)

        return self._bus.announce(names, Together(data, counted, self._publish))

    def tell(self, data: bytes, now: bool = False) -> None:
        """Unless `now`, it is sent in the background, at the latest with the next message."""
        self.traffic["down"] += len(data)
        self._waiting.append(data)
        if now:
            self._bus.run(self._written())
        else:
            self._bus.start(self._publish())

    async def _publish(self) -> None:
        """Publish all waiting messages, in order, before any later one."""
        client = self._bus.client
        while self._waiting and client.is_connected:  # agents read lost messages from the log
            await client.publish(everybody_subject(self._federation), self._waiting.popleft())

    async def _written(self) -> None:
        await self._publish()
        for _ in range(_TURNS):  # until the client's own task has written it
            await asyncio.sleep(0)

    def keep(self, step: int, data: bytes) -> None:
        self._store(step, data)
