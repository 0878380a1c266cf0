"""The durable stream of steps: made by the hub, read by agents that missed some of it."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from typing import Any, NamedTuple

from nashcast.errors import NashcastError
from nashcast.remote.broker.files import needed
from nashcast.remote.broker.rules import read_stream_subjects
from nashcast.remote.wire.subjects import steps_subject, stream_name

BATCH = 256


class Stored(NamedTuple):
    """sequence: the broker's own number of the message, from 1."""

    sequence: int
    data: bytes


async def open_steps(client: Any, federation: str, *, keep: int | None = None) -> Any:
    """At the hub: the stream, made unless it is there. keep: how many of the latest messages; all by default.

    Returns nats-py's JetStream context: publish to `steps_subject(federation)` with it. All agents can read all of it.
    """
    needed("nats.js")
    from nats.js.api import StreamConfig

    context = client.jetstream()
    config = StreamConfig(
        name=stream_name(federation), subjects=[steps_subject(federation)], allow_direct=True, max_msgs=keep or -1
    )
    await context.add_stream(config)
    return context


async def read_steps(
    client: Any, federation: str, first: int = 1, *, batch: int = BATCH, timeout: float = 5.0
) -> AsyncGenerator[Stored, None]:
    """At an agent: what the stream holds from sequence `first` on, in order, as far as it goes now."""
    from nats.errors import TimeoutError as NoAnswer

    subject, _ = read_stream_subjects(federation)
    inbox = client.new_inbox()
    replies = await client.subscribe(inbox)
    try:
        more = True
        while more:
            wanted = {"seq": first, "batch": batch, "next_by_subj": steps_subject(federation)}
            await client.publish(subject, json.dumps(wanted).encode(), reply=inbox)
            while True:
                try:
                    message = await replies.next_msg(timeout)
                except NoAnswer:
                    raise NashcastError(f"the broker sent no more of the stream within {timeout:g} s.") from None
                headers = message.headers or {}
                status = headers.get("Status")
                if status is None:
                    first = int(headers["Nats-Sequence"]) + 1
                    yield Stored(first - 1, message.data)
                    if "Nats-Num-Pending" in headers:
                        continue
                    break  # a nats-server before 2.11 sends one at a time, and nothing to say that it is the last
                if status == "503":
                    raise NashcastError("there is no stream yet. The hub makes it when it begins.")
                if status not in ("204", "404"):
                    raise NashcastError(f"the broker refused to read the stream: {headers.get('Description', status)}.")
                more = status == "204" and int(headers.get("Nats-Num-Pending", 0)) > 0
                break
    finally:
        await replies.unsubscribe()
