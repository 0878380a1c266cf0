"""An agent's process: what it does with turns that come twice, a broker that is away, and a memory that is lost."""

import asyncio

import numpy as np
import pytest

import nashcast as nc
from nashcast.remote.owner import runner as runner_module
from nashcast.remote.owner.owner import Owner
from nashcast.remote.owner.runner import Runner, broker_and_federation
from nashcast.remote.wire.format import unpack
from nashcast.remote.wire.messages import Reply, Turn
from support.remote.absences import Mortal
from support.remote.elsewhere import LocalTransport, make_agents, make_remote, make_stream, seen


class Message:
    def __init__(self, data):
        self.data, self.replies = data, []

    async def respond(self, reply):
        self.replies.append(reply)


def turns_of(game, steps):
    """What a hub asks its first agent, and what it is answered."""
    X, Y = make_stream(1, steps=steps)
    remote, transport = make_remote(make_agents(1)[:2], X, {"game": game, "start": 0.0, "run": 7})
    asked, inner = [], transport.carry

    def carry(name, turn):
        reply = inner(name, turn)
        asked.extend([(turn, reply)] if name == "agent-0" else [])
        return reply

    transport.carry = carry
    remote.federation.replay(X, Y)
    return asked


def served(runner, messages):
    async def serve():
        runner._loop = asyncio.get_running_loop()
        work = asyncio.create_task(runner._answer_turns())
        for message in messages:
            await runner._asked(message)
            while not message.replies:
                await asyncio.sleep(0.001)
        runner.stop()
        await work

    asyncio.run(serve())


def same(one, other):
    """Replies but for the time they took."""
    return unpack(one, (Reply,))._replace(seconds=0.0), unpack(other, (Reply,))._replace(seconds=0.0)


def test_a_turn_that_comes_again_gets_the_same_reply_in_the_middle_of_a_game_too():
    asked = turns_of(nc.LookbackGame(lookback=2, placement="spread"), 6)
    said = []
    runner = Runner(make_agents(1)[0], "nats://127.0.0.1:1/tide", key="", sent=said.append)
    messages = [Message(turn) for turn, _ in asked for _ in range(3)]
    served(runner, messages)
    for k, (_, expected) in enumerate(asked):
        first, second, third = (message.replies for message in messages[3 * k : 3 * k + 3])
        assert first == second == third
        assert len(first) == 1
        np.testing.assert_equal(*same(first[0], expected))
        assert not unpack(first[0], (Reply,)).reason
    assert sum(": the same again; " in line for line in said) == 2 * len(asked)
    assert sum(runner.owner.sent.values()) == sum(len(message.replies[0]) for message in messages)


def test_of_turns_that_wait_only_the_last_is_wanted():
    asked = turns_of(None, 3)
    runner = Runner(make_agents(1)[0], "nats://127.0.0.1:1/tide", key="")
    messages = [Message(turn) for turn, _ in asked]

    async def serve():
        runner._loop = asyncio.get_running_loop()
        for message in messages:
            await runner._asked(message)
        work = asyncio.create_task(runner._answer_turns())
        while not messages[-1].replies:
            await asyncio.sleep(0.001)
        runner.stop()
        await work

    asyncio.run(serve())
    assert [len(message.replies) for message in messages] == [0, 0, 1]


def test_what_was_missed_is_looked_for_until_the_broker_is_back(monkeypatch):
    tries = []

    async def missed(client, federation, run, first, last, timeout):
        tries.append((federation, run, first, last))
        if len(tries) < 4:
            raise nc.NashcastError("away") if len(tries) % 2 else TimeoutError
        return [np.ones(3)] * (last - first + 1)

    monkeypatch.setattr(runner_module, "missed_inputs", missed)
    monkeypatch.setattr(runner_module, "RETRY_S", 0.001)
    runner = Runner(make_agents(1)[0], "nats://127.0.0.1:1/tide", key="")
    served(runner, [Message(turns_of(None, 1)[0][0])])
    runner._ended = None
    assert len(asyncio.run(runner._caught_up(3, 5))) == 3
    assert tries == [("tide", 7, 3, 5)] * 4
    tries.clear()
    monkeypatch.setattr(runner_module, "CATCH_UP_S", -1.0)
    with pytest.raises(nc.NashcastError, match="away"):
        asyncio.run(runner._caught_up(3, 5))


@pytest.mark.parametrize("lost_at", [1, 2, 5])
def test_a_lost_memory_sees_all_inputs_again_from_the_very_first(lost_at):
    """Between two steps, so that the hub has counted on it for the one before."""
    X, Y = make_stream(1, steps=12)
    settings = {"game": nc.LookbackGame(lookback=2), "start": 0.0, "seed": 3}
    remote, transport = make_remote(make_agents(1)[:2], X, settings, LocalTransport)
    births = [set(), {lost_at}]
    agents = [
        Mortal(lambda i=i: make_agents(1)[i], set(), births[i], X, lambda i=i: twin.loop.state.forecasts[i])
        for i in range(2)
    ]
    twin = nc.paper_federation(agents, **settings)
    for t in range(12):
        if t == lost_at:
            fresh = Owner(make_agents(1)[1], inputs=seen(X))
            transport.owners["agent-1"] = fresh
            remote.greet(fresh.hello())
        assert remote.federation.predict_one(X[t]) == twin.predict_one(X[t])
        remote.federation.learn_one(X[t], Y[t])
        twin.learn_one(X[t], Y[t])
    assert remote.federation.health["absences"] == {}
    assert isinstance(transport.turns[-1]["agent-1"], Turn)


@pytest.mark.parametrize("address", ["tls://here:4222", "tls://here:4222/", "tls://here/a/b", "", "tide"])
def test_an_address_without_a_federation_is_refused(address):
    with pytest.raises(nc.InvalidInput, match=r"hub: got .* Pass tls://HOST:PORT/FEDERATION"):
        broker_and_federation(address)
