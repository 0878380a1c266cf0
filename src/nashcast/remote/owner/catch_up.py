"""Reads what an agent missed from the hub's durable stream: inputs of steps, or events of a joint game."""

from __future__ import annotations

import json
from contextlib import aclosing
from typing import Any

import numpy as np

from nashcast.errors import NashcastError
from nashcast.remote.broker.rules import read_stream_subjects
from nashcast.remote.broker.steps import read_steps
from nashcast.remote.wire.format import MalformedMessage, unpack
from nashcast.remote.wire.joint.joint_messages import LogPart
from nashcast.remote.wire.messages import StepRecord
from nashcast.remote.wire.subjects import steps_subject


async def missed_inputs(
    client: Any, federation: str, run: int, first: int, last: int, timeout: float = 5.0
) -> list[np.ndarray | None]:
    """The inputs of steps first to last of a run; None for each that the stream does not contain (any more)."""
    found: dict[int, np.ndarray] = {}
    newest = await _newest(client, federation, timeout)
    if newest is not None:
        sequence, record = newest
        # A killed hub may store a step twice: the first wanted step is at or before this position.
        back = max(record.step - first, 0) + 1 if record.run == run else last - first + 1
        while True:
            start = max(sequence - back, 1)
            found = await _inputs_from(client, federation, run, start, last, timeout)
            if start == 1 or min(found, default=first + 1) <= first:
                break
            back *= 2
    return [found.get(s) for s in range(first, last + 1)]


async def missed_events(
    client: Any, federation: str, run: int, number: int, timeout: float = 5.0
) -> list[tuple[int, tuple[bytes, ...]]]:
    """The parts of a joint game's log from an event on, each with the number of its first one."""
    newest = await _newest(client, federation, timeout, LogPart)
    if newest is None:
        return []
    sequence, record = newest
    # A row has at least three events in one part, and a killed hub may store a part twice.
    # The wanted part may not be stored yet.
    back = max(record.number - number, 0) // 3 + 2 if record.run == run else sequence
    while True:
        start, found = max(sequence - back, 1), []
        async with aclosing(read_steps(client, federation, start, timeout=timeout)) as steps:
            async for _, data in steps:
                part = _read(data, LogPart)
                if part is not None and part.run == run and part.number + len(part.events) > number:
                    found.append((part.number, part.events))
        if start == 1 or (found and found[0][0] <= number):
            return found
        back *= 2


async def _inputs_from(
    client: Any, federation: str, run: int, start: int, last: int, timeout: float
) -> dict[int, np.ndarray]:
    found = {}
    async with aclosing(read_steps(client, federation, start, timeout=timeout)) as steps:
        async for _, data in steps:
            record = _read(data)
            if record is not None and record.run == run:
                if record.step > last:
                    break
                found[record.step] = record.x
    return found


async def _newest(client: Any, federation: str, timeout: float, kind: type = StepRecord) -> tuple[int, Any] | None:
    subject, _ = read_stream_subjects(federation)
    wanted = {"last_by_subj": steps_subject(federation)}
    message = await client.request(subject, json.dumps(wanted).encode(), timeout=timeout)
    headers = message.headers or {}
    if headers.get("Status") == "404":
        return None
    record = _read(message.data, kind)
    if "Nats-Sequence" not in headers or record is None:
        raise NashcastError("the broker sent something else than a step of the stream.")
    return int(headers["Nats-Sequence"]), record


def _read(data: bytes, kind: type = StepRecord) -> Any:
    """The message; None if it is of another kind."""
    try:
        return unpack(data, (kind,))
    except MalformedMessage:
        return None
