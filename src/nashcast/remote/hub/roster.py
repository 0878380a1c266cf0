"""The agents of a joint game: the last hello of each, and the keys that were published."""

from __future__ import annotations

from collections.abc import Sequence

from nashcast.remote.wire.format import MalformedMessage
from nashcast.remote.wire.joint.joint_messages import Keys
from nashcast.remote.wire.messages import Hello

MASKED = "joint"


class Roster:
    """names: of the agents, in their order."""

    def __init__(self, names: Sequence[str]):
        self.names = tuple(names)
        self._hellos: dict[str, Hello] = {}
        self._published: dict[str, bytes] = {}

    def greet(self, hello: Hello) -> None:
        if hello.name not in self.names:
            raise MalformedMessage(f"hello.name: got {hello.name!r}, which is no agent of this federation")
        self._hellos[hello.name] = hello

    def share_of(self, name: str) -> str | None:
        """What the agent shares; None before its first hello."""
        hello = self._hellos.get(name)
        return None if hello is None else hello.share

    def is_masked(self, name: str) -> bool:
        return self.share_of(name) == MASKED

    def begin_run(self) -> None:
        """Keys will be published again."""
        self._published = {}

    def unpublished_keys(self) -> Keys | None:
        """New keys of masked agents since the last call, if any. They count as published from then on."""
        keys = {name: hello.public_key for name, hello in self._hellos.items() if self.is_masked(name)}
        new = {name: key for name, key in keys.items() if key is not None and self._published.get(name) != key}
        self._published |= new
        return Keys(tuple(new), tuple(new.values())) if new else None

    def republish(self, keys: Keys) -> None:
        """Mark keys as published: this hub published them before it was killed."""
        self._published |= dict(zip(keys.names, keys.keys, strict=True))

    def has_key(self, name: str) -> bool:
        hello = self._hellos.get(name)
        return hello is not None and hello.public_key is not None
