"""Messages that are not what they should be, from a seeded generator: of any kind, from ones that are."""

from __future__ import annotations

import msgpack
import numpy as np

from nashcast.remote.wire.format import PROTOCOL, VERSION, pack, unpack
from nashcast.remote.wire.messages import Hello, Reply

EXTREME = (1e308, -1e308, 1.7e308, 1e200, 1e100, -1e60, 1e16, 5e-324, -5e-324, 2.3e-308, 0.0, 1.0)
NEVER = (float("nan"), float("inf"), float("-inf"))


def damaged(rng, data: bytes) -> bytes:
    """Bytes that are no message any more, or another one: cut, longer, changed, repeated, anything."""
    way = rng.integers(6)
    if way == 0:
        return data[: rng.integers(len(data))]
    if way == 1:
        return data + rng.bytes(int(rng.integers(1, 50)))
    if way == 2:
        return rng.bytes(int(rng.integers(0, 400)))
    if way == 3:
        return data + data
    changed = bytearray(data)
    for _ in range(int(rng.integers(1, 8))):
        changed[rng.integers(len(data))] = rng.integers(256)
    return bytes(changed)


def bomb(rng) -> bytes:
    """Bytes that claim, nest or are more than anybody should read."""
    depth, length = int(rng.integers(9, 5000)), int(rng.integers(1 << 20, 1 << 32))
    return [
        lambda: b"\x91" * depth,
        lambda: b"\x81\xa1a" * depth,
        lambda: b"\xdd" + length.to_bytes(4, "big"),
        lambda: b"\xdf" + length.to_bytes(4, "big"),
        lambda: b"\xc6" + length.to_bytes(4, "big") + b"x",
        lambda: b"\xdb" + length.to_bytes(4, "big") + b"x",
        lambda: b"\xc7\x08\x05" + bytes(8),
        lambda: b"\x90" * depth,
        lambda: msgpack.packb({"v": 1, "type": "reply", "step": 2**63, "results": [[]] * 4000}),
    ][rng.integers(9)]()


def strange_map(rng, kind: str) -> bytes:
    """Well-formed msgpack that is another map than a message of this kind."""
    words = ["", "a\nb", "\x1b[31mred\x1b[0m", "x" * 5000, "‮evil", kind, "nan", "\x00"]
    pick = lambda: words[rng.integers(len(words))]  # noqa: E731
    values = [None, True, -1, 2**64 - 1, 0.5, float("nan"), pick(), b"bytes", [], {}, [1, [2, [3]]], {"type": pick()}]
    made = {"v": [VERSION, 0, 2, -1, "1", None][rng.integers(6)], "type": [kind, pick()][rng.integers(2)]}
    for field in ("step", "results", "reason", "seconds", "name", "share", "at", "run", "version", pick()):
        if rng.random() < 0.7:
            made[field] = values[rng.integers(len(values))]
    return msgpack.packb(made)


def bad_hello(rng, name: str, others: list[str], run: int) -> bytes:
    """A hello that must be refused."""
    good = Hello(PROTOCOL, name, "sums", None, -1, -1)
    changes = [
        {"name": others[rng.integers(len(others))]},
        {"name": ["", "a b", "x" * 65, "a\nhub: step 3", "\x1b[2J", "*", ">", name.upper()][rng.integers(8)]},
        {"share": ["all", "", "Features", "sums "][rng.integers(4)]},
        {"version": int(rng.integers(3, 1000))},
        {"at": 3},
        {"at": -2, "run": -2},
        {"run": run},
        {"public_key": b""},
        {"public_key": rng.bytes(513)},
    ]
    way = rng.integers(5)
    if way == 0:
        return strange_map(rng, "hello")
    if way == 1:
        return bomb(rng)
    if way == 2:
        return refused(rng, pack(good), Hello)
    if way == 3 and rng.random() < 0.05:
        return rng.bytes(int(rng.integers(3000, 1 << 20)))
    return pack(good._replace(**changes[rng.integers(len(changes))]))


def refused(rng, data: bytes, kind) -> bytes:
    """Damaged bytes that are no message of this kind: damage may happen to give another good one."""
    from nashcast.remote.wire.format import MalformedMessage

    while True:
        made = damaged(rng, data)
        try:
            unpack(made, (kind,))
        except MalformedMessage:
            return made


def bad_reply(rng, data: bytes, old: list[bytes]) -> bytes:
    """Something else than the good reply `data`, which must be refused. old: good ones of earlier turns."""
    good = unpack(data, (Reply,))
    way = int(rng.integers(9))
    if way == 0:
        return strange_map(rng, "reply")
    if way == 1:
        return bomb(rng)
    if way == 2:
        return pack(good._replace(step=good.step + int(rng.integers(1, 2**40))))
    if way == 3:
        earlier = [reply for reply in old if unpack(reply, (Reply,)).step != good.step]
        return earlier[rng.integers(len(earlier))] if earlier else b""
    if way == 4:
        return pack(good._replace(results=(*good.results, *good.results, np.zeros(3))))
    if way == 5:
        return pack(good._replace(seconds=[-1.0, *NEVER][rng.integers(4)]))
    if way == 6 and rng.random() < 0.05:
        return rng.bytes((1 << 20) - int(rng.integers(2)))
    if way in (6, 7):
        return spoilt(rng, good)
    return refused(rng, data, Reply)


def spoilt(rng, good: Reply) -> bytes:
    """Numbers that are none, too large or of another shape, or no numbers, in one of the results."""
    results = list(good.results)
    places = [i for i, result in enumerate(results) if _arrays(result)]
    if not places:
        return pack(good._replace(results=(*results, *results, np.zeros(2))))
    place = places[rng.integers(len(places))]
    changes = [
        lambda a: np.full_like(a, NEVER[rng.integers(3)]),
        lambda a: np.zeros((*a.shape, 2)),
        lambda a: np.zeros(1 + a.size),
        lambda a: np.zeros((90, 90)),
        lambda a: np.zeros(0),
    ]
    results[place] = changed(results[place], changes[rng.integers(len(changes))])
    return pack(good._replace(results=tuple(results)))


def extreme(rng, data: bytes) -> bytes:
    """A reply as good as the one given, but for the size of its numbers."""
    good = unpack(data, (Reply,))

    def wild(array):
        made, where = array.copy(), rng.random(array.shape) < rng.choice([0.2, 1.0])
        values = np.full(array.shape, rng.choice(EXTREME)) if rng.random() < 0.3 else rng.choice(EXTREME, array.shape)
        made[where] = values[where]
        return made

    results = [changed(result, wild) if rng.random() < 0.5 else result for result in good.results]
    return pack(good._replace(results=tuple(results)))


def changed(result, change):
    if isinstance(result, np.ndarray):
        return change(result)
    if not isinstance(result, tuple):
        return result
    return type(result)(*[change(part) if isinstance(part, np.ndarray) else part for part in result])


def _arrays(result):
    parts = result if isinstance(result, tuple) else [result]
    return [part for part in parts if isinstance(part, np.ndarray) and part.size]
