"""The joint game's line to its agents, over the hub's connection to the broker."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from nashcast.remote.hub.bus import Bus
from nashcast.remote.hub.joint_answers import ReadAnswer
from nashcast.remote.wire.joint_messages import Said
from nashcast.remote.wire.subjects import everybody_subject
from nashcast.remote.wire.transport import Failure


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

    def tell(self, data: bytes) -> None:
        """It leaves with the next question, or before it, while the caller does something else."""
        self.traffic["down"] += len(data)
        self._bus.start(self._bus.client.publish(everybody_subject(self._federation), data))

    def keep(self, step: int, data: bytes) -> None:
        self._store(step, data)
