"""The durable stream of steps: created by the hub, read by agents that missed some of it."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from typing import Any, NamedTuple

from nashcast.errors import NashcastError
from nashcast.remote.broker.files import needed
from nashcast.remote.broker.rules import Settings, read_stream_subjects
from nashcast.remote.wire.subjects import steps_subject, stream_name

BATCH = 256
# The broker's error code for a stream of this name with other settings.
IN_USE = 10058


class Stored(NamedTuple):
    """sequence: the broker's own number of the message, from 1."""

    sequence: int
    data: bytes


class Bounds(NamedTuple):
    """The limits of a stream: bytes, days, and number of messages (None for any number)."""

    bytes: int = Settings().stream_bytes
    days: float = Settings().stream_days
    messages: int | None = None


async def open_steps(client: Any, federation: str, bounds: Bounds | None = None) -> Any:
    """At the hub: open the stream, or create it, with these bounds or the default ones.

    Returns nats-py's JetStream context: publish to `steps_subject(federation)` with it. All agents can read all of it.
    """
    needed("nats.js")
    from nats.js.api import DiscardPolicy, StreamConfig
    from nats.js.errors import BadRequestError

    context, bounds = client.jetstream(), bounds or Bounds()
    config = StreamConfig(
        name=stream_name(federation), subjects=[steps_subject(federation)], allow_direct=True,
        max_msgs=bounds.messages or -1, max_bytes=bounds.bytes, max_age=bounds.days * 86400.0,
        discard=DiscardPolicy.OLD,
    )  # fmt: skip
    try:
        await context.add_stream(config)
    except BadRequestError as error:
        if error.err_code != IN_USE:
            raise
        await context.update_stream(config)  # created with other bounds before
    return context


async def read_steps(
    client: Any, federation: str, first: int = 1, *, batch: int = BATCH, timeout: float = 5.0
) -> AsyncGenerator[Stored, None]:
    """At an agent: the messages of the stream from sequence `first` on, in order, up to the present end."""
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
                    break  # a nats-server before 2.11 sends one at a time, without a final message
                if status == "503":
                    raise NashcastError("there is no stream yet. The hub makes it when it begins.")
                if status not in ("204", "404"):
                    raise NashcastError(f"the broker refused to read the stream: {headers.get('Description', status)}.")
                more = status == "204" and int(headers.get("Nats-Num-Pending", 0)) > 0
                break
    finally:
        await replies.unsubscribe()
