"""What an agent missed, from the broker's stream, whatever else is in it."""

import asyncio

import numpy as np
import pytest

from nashcast import NashcastError
from nashcast.remote.broker.steps import open_steps
from nashcast.remote.owner import catch_up
from nashcast.remote.owner.catch_up import missed_inputs
from nashcast.remote.wire.format import pack
from nashcast.remote.wire.messages import StepRecord
from nashcast.remote.wire.subjects import steps_subject
from support.remote.brokers import FEDERATION, broker, found, join

RUN, OTHER = 77, 78


def x_of(run, step):
    return np.array([run, step, np.nan if step % 3 else 0.5])


async def keep(stream, steps, run=RUN):
    for step in steps:
        await stream.publish(steps_subject(FEDERATION), pack(StepRecord(run, step, x_of(run, step))))


def on_a_broker(folder, work):
    async def whole():
        hub, agent = await join(running, "hub"), await join(running, "a")
        try:
            stream = await open_steps(hub, FEDERATION)
            return await work(stream, agent)
        finally:
            await hub.close()
            await agent.close()

    with broker(found(folder, "a")) as running:
        return asyncio.run(whole())


def assert_found(found, first, last, lost=()):
    assert len(found) == last - first + 1
    for step, x in zip(range(first, last + 1), found, strict=True):
        if step in lost:
            assert x is None
        else:
            np.testing.assert_array_equal(x, x_of(RUN, step))


def test_it_finds_every_step_of_its_own_run_and_nothing_else(tmp_path, monkeypatch):
    async def work(stream, agent):
        async def missed(first, last):
            return await missed_inputs(agent, FEDERATION, RUN, first, last)

        assert await missed(0, 3) == [None] * 4  # an empty stream
        await keep(stream, range(30), OTHER)
        assert await missed(0, 3) == [None] * 4  # nothing of this run yet
        await keep(stream, range(10))
        await keep(stream, [9, 9, 10, 11])  # a hub that was killed stores its step again
        assert_found(await missed(0, 11), 0, 11)
        assert_found(await missed(9, 9), 9, 9)
        assert_found(await missed(10, 14), 10, 14, lost=(12, 13, 14))
        await keep(stream, [*range(13, 40), 42])  # gaps
        assert_found(await missed(0, 42), 0, 42, lost=(12, 40, 41))
        assert_found(await missed(12, 13), 12, 13, lost=(12,))
        assert_found(await missed(41, 42), 41, 42, lost=(41,))
        await keep(stream, range(600), OTHER)  # the newest is of another run, far from what is wanted
        assert_found(await missed(3, 5), 3, 5)
        await keep(stream, range(43, 50))
        await stream.publish(steps_subject(FEDERATION), b"no record")
        await keep(stream, [50])
        assert_found(await missed(44, 50), 44, 50)
        assert_found(await missed(0, 50), 0, 50, lost=(12, 40, 41))

    on_a_broker(tmp_path, work)


def test_it_reads_little_when_little_is_missed(tmp_path, monkeypatch):
    read, inner = [], catch_up.read_steps

    def counted(client, federation, first, **options):
        read.append(first)
        return inner(client, federation, first, **options)

    monkeypatch.setattr(catch_up, "read_steps", counted)

    async def work(stream, agent):
        await keep(stream, range(400))
        assert_found(await missed_inputs(agent, FEDERATION, RUN, 396, 398), 396, 398)

    on_a_broker(tmp_path, work)
    assert len(read) == 1
    assert read[0] > 390


def test_more_than_one_batch(tmp_path):
    async def work(stream, agent):
        await keep(stream, range(700))
        assert_found(await missed_inputs(agent, FEDERATION, RUN, 0, 699), 0, 699)

    on_a_broker(tmp_path, work)


def test_a_last_message_that_is_no_step_is_refused(tmp_path):
    async def work(stream, agent):
        await stream.publish(steps_subject(FEDERATION), b"no record")
        with pytest.raises(NashcastError, match="something else than a step"):
            await missed_inputs(agent, FEDERATION, RUN, 0, 1)

    on_a_broker(tmp_path, work)
