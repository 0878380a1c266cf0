"""The hub's record of one remote agent: its declared properties, and the calls not sent to it yet."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nashcast.agents.protocol import Hello, Sync
from nashcast.errors import InvalidInput
from nashcast.fields import Fields
from nashcast.remote.wire.format import MalformedMessage, pack, unpack
from nashcast.remote.wire.messages import Begin, Call, Close, Introduced, LearnLate, Missed, Turn

# Maximum number of late labels stored for an absent agent; the oldest are dropped.
MOST_LATE = 100


class Peer:
    """Represents a remote agent in the federation; `HubPost` exchanges the messages.

    introduced: its last declared properties; None if they must be asked for (again), as after any failure.
    public_key: its last public key for masks, if any.
    unsaid: the calls that end its last steps, in order. They are idempotent.
    """

    def __init__(self, name: str):
        self.name = name
        self.introduced: Introduced | None = None
        self.public_key: bytes | None = None
        self.unsaid: list[Call] = []
        self._stream = (0, 0, 0)
        self._step, self._late = 0, 0  # steps that are over, and late labels, both counted from the beginning

    def begin(self, x_dim: int, target: np.ndarray, key: int, lookback: int) -> Hello:
        """Only recorded: the agent receives it with its first turn, and then declares what it shares."""
        self._stream, self._step, self._late = (x_dim, key, lookback), 0, 0
        self.introduced, self.unsaid = None, []
        return Hello(self.name, 0, "forecasts")

    def forecast(self, x: np.ndarray) -> None:
        raise NotImplementedError

    def learn(self, target: np.ndarray | None) -> None:
        raise NotImplementedError

    def save(self) -> dict[str, np.ndarray]:
        """The hub's part of the state; the agent saves the rest."""
        unsaid = np.frombuffer(pack(Turn(0, tuple(self.unsaid))), dtype=np.uint8)
        return {"unsaid": unsaid, "counts": np.array([self._step, self._late])}

    def restore(self, saved: dict[str, np.ndarray]) -> None:
        self.unsaid = list(unpack(saved["unsaid"].tobytes(), (Turn,)).calls)
        self._step, self._late = map(int, saved["counts"])

    def opening(self, stand: np.ndarray, run: int) -> list[Call]:
        """The first calls of a turn. stand: the agent's present forecast, as known to the hub."""
        if self.introduced is not None:
            return list(self.unsaid)
        x_dim, key, lookback = self._stream
        missed = [Missed(0, self._step - 1)] if self._step else []
        return [Begin(x_dim, stand, key, lookback, run), *_tidied([*self.unsaid, *missed])]

    def close(self, sync: Sync | None, target: np.ndarray | None) -> None:
        """End a step in which the agent took part."""
        self.unsaid.append(Close(self._step, sync, target))
        self._step += 1

    def miss(self) -> None:
        """End a step that was played without the agent."""
        self.unsaid = _tidied([*self.unsaid, Missed(0, self._step)])
        self._step += 1

    def learn_late(self, steps_ago: int, target: np.ndarray) -> None:
        late = [call for call in self.unsaid if isinstance(call, LearnLate)]
        kept = [call for call in self.unsaid if len(late) < MOST_LATE or call is not late[0]]
        self.unsaid = [*_tidied(kept), LearnLate(self._late, self._step - steps_ago, target)]
        self._late += 1


def save_peers(peers: Sequence[Peer]) -> dict[str, np.ndarray]:
    """All peers in two arrays: a hub saves after every step, and each array of a file costs time."""
    saved = [peer.save() for peer in peers]
    counts = np.array([[*own["counts"], own["unsaid"].size] for own in saved])
    return {"unsaid": np.concatenate([own["unsaid"] for own in saved]), "counts": counts}


def restore_peers(peers: Sequence[Peer], fields: Fields) -> None:
    counts = fields.take("counts", (len(peers), 3), dtype=np.int64, min=0, max=1 << 40)
    unsaid, sizes = fields.take("unsaid", (None,), dtype=np.uint8), counts[:, 2]
    fields.require("unsaid", int(sizes.sum()) == unsaid.size, f"{unsaid.size} bytes")
    fields.done()
    parts = np.split(unsaid, np.cumsum(sizes[:-1]))
    try:
        for peer, own, said in zip(peers, counts, parts, strict=True):
            peer.restore({"counts": own[:2], "unsaid": said})
    except MalformedMessage as error:
        raise InvalidInput("saved unsaid", f"what cannot be read ({error})", "Use an earlier copy.") from None


def _tidied(calls: list[Call]) -> list[Call]:
    """Merge consecutive `Missed` calls: the later one includes the earlier."""
    kept = []
    for call in calls:
        if kept and isinstance(kept[-1], Missed) and isinstance(call, Missed):
            kept.pop()
        kept.append(call)
    return kept
