"""The hub's line: turns to agents behind a real broker, some of whom are not there, late, or not themselves."""

import asyncio
import threading
import time

import pytest

from nashcast import NashcastError
from nashcast.remote.broker.running.server import connect
from nashcast.remote.hub import bus as bus_module
from nashcast.remote.hub.bus import LATE, Bus
from nashcast.remote.hub.deadlines import Learned
from nashcast.remote.hub.event_loop import Loop
from nashcast.remote.wire.subjects import ask_subject
from nashcast.remote.wire.transport import Failure
from support.remote.brokers import FEDERATION, broker, found, join, settle

NAMES = ("a", "b", "c")


class Agents:
    """Connected agents, in a thread of their own. answers: what each does with a turn, by name."""

    def __init__(self, running):
        self._running, self._loop = running, Loop("agents")
        self.clients, self.asked = {}, {name: [] for name in NAMES}

    def add(self, name, answer):
        async def open_it():
            async def asked(message):
                self.asked[name].append(message.data)
                await answer(message)

            client = self.clients[name] = await join(self._running, name)
            await client.subscribe(ask_subject(FEDERATION, name), cb=asked)
            await settle(client)

        self._loop.run(open_it(), 30.0)

    def remove(self, name):
        self._loop.run(self.clients.pop(name).close(), 30.0)

    def run(self, work):
        return self._loop.run(work, 30.0)

    def close(self):
        for name in list(self.clients):
            self.remove(name)
        self._loop.close()


def echo(name):
    async def answer(message):
        await message.respond(f"{name} got {message.data.decode()}".encode())

    return answer


def after(seconds, name):
    async def answer(message):
        async def later():
            await asyncio.sleep(seconds)
            await message.respond(name.encode())

        answer.tasks.append(asyncio.create_task(later()))

    answer.tasks = []
    return answer


@pytest.fixture
def running(tmp_path):
    with broker(found(tmp_path, *NAMES)) as running:
        yield running


@pytest.fixture
def agents(running):
    agents = Agents(running)
    yield agents
    agents.close()


def dial(running):
    async def connected(on_reconnect):
        return await connect(
            running.url, seed_file=running.folder / "hub.seed", name="hub", patience=0.0, on_reconnect=on_reconnect
        )

    return connected


@pytest.fixture
def bus(running):
    bus = Bus(FEDERATION, dial(running))
    yield bus
    bus.close()


def test_turns_go_out_together_and_each_to_its_own(bus, agents):
    for name in NAMES:
        agents.add(name, echo(name))
    replies = bus.exchange({name: name.upper().encode() for name in NAMES}, 30.0)
    assert replies == {"a": b"a got A", "b": b"b got B", "c": b"c got C"}
    assert agents.asked == {"a": [b"A"], "b": [b"B"], "c": [b"C"]}
    assert bus.exchange({}, 30.0) == {}


def test_who_is_not_connected_costs_no_deadline(bus, agents):
    agents.add("b", echo("b"))
    began = time.monotonic()
    replies = bus.exchange(dict.fromkeys(NAMES, b"x"), 60.0)
    assert replies == {"a": Failure("not connected"), "b": b"b got x", "c": Failure("not connected")}
    assert time.monotonic() - began < 30.0
    agents.remove("b")
    agents.add("a", echo("a"))
    assert bus.exchange(dict.fromkeys("ab", b"y"), 60.0) == {"a": b"a got y", "b": Failure("not connected")}


def test_a_blink_of_one_who_has_just_answered_is_no_absence(bus, agents, monkeypatch):
    monkeypatch.setattr(bus_module, "RETRIES", 500)  # a busy machine may take longer to bring it back
    agents.add("a", echo("a"))
    assert bus.exchange({"a": b"1"}, deadline=30.0) == {"a": b"a got 1"}
    agents.remove("a")
    back = threading.Timer(0.03, agents.add, ("a", echo("a")))
    back.start()
    assert bus.exchange({"a": b"2"}, deadline=30.0) == {"a": b"a got 2"}
    back.join()


def test_who_is_late_is_not_waited_for_and_its_old_reply_is_nobody_s(bus, agents):
    slow = after(0.6, "late")
    agents.add("a", slow)
    agents.add("b", echo("b"))
    replies = bus.exchange({"a": b"1", "b": b"1"}, 0.2)
    assert replies == {"a": Failure(f"{LATE} 0.2 s"), "b": b"b got 1"}
    agents.run(asyncio.wait(slow.tasks))
    agents.remove("a")
    agents.add("a", echo("a"))
    assert bus.exchange({"b": b"2", "a": b"2"}, 30.0) == {"a": b"a got 2", "b": b"b got 2"}


def test_an_old_reply_does_not_answer_for_a_new_turn(bus, agents):
    kept = []

    async def keep(message):
        kept.append(message)
        if message.data == b"2":
            await kept[0].respond(b"old")  # of the first round, in the middle of the second
            await asyncio.sleep(0.1)
            await message.respond(b"new")

    agents.add("a", keep)
    assert bus.exchange({"a": b"1"}, 0.2) == {"a": Failure(f"{LATE} 0.2 s")}
    assert bus.exchange({"a": b"2"}, 30.0) == {"a": b"new"}


def test_who_dies_with_a_turn_costs_no_deadline_either(bus, agents):
    async def die(message):
        agents.dying = asyncio.create_task(agents.clients.pop("a").close())

    agents.add("a", die)
    agents.add("b", after(0.3, "b"))
    began = time.monotonic()
    assert bus.exchange({"a": b"x", "b": b"x"}, 60.0) == {"a": Failure("not connected"), "b": b"b"}
    assert time.monotonic() - began < 30.0


def test_a_turn_that_got_lost_is_asked_again(bus, agents):
    async def second(message):
        if len(agents.asked["a"]) > 1:
            await message.respond(message.data)

    agents.add("a", second)
    assert bus.exchange({"a": b"x"}, 60.0) == {"a": b"x"}
    assert agents.asked["a"] == [b"x", b"x"]


def test_only_the_first_of_two_replies_counts(bus, agents):
    async def twice(message):
        await message.respond(b"one")
        await message.respond(b"two")

    agents.add("a", twice)
    agents.add("b", after(0.2, "b"))
    assert bus.exchange({"a": b"", "b": b""}, 30.0) == {"a": b"one", "b": b"b"}


def test_a_turn_longer_than_the_broker_takes_is_told_and_hurts_nobody(bus, agents):
    agents.add("a", echo("a"))
    agents.add("b", echo("b"))
    replies = bus.exchange({"a": bytes((1 << 20) + 1), "b": b"x"}, 30.0)
    assert replies["b"] == b"b got x"
    assert replies["a"].reason.startswith("cannot be asked: nats: maximum payload")
    assert bus.exchange({"a": b"y"}, 30.0) == {"a": b"a got y"}


def test_deadlines_are_learnt_from_the_answers(running, agents):
    deadlines = Learned(least=0.2, most=20.0)
    bus = Bus(FEDERATION, dial(running), deadlines)
    try:
        agents.add("a", echo("a"))
        assert deadlines.of("a") == 20.0
        for _ in range(Learned.MINIMUM):
            bus.exchange({"a": b"x"})
        assert deadlines.of("a") < 20.0
        agents.remove("a")
        agents.add("a", after(3.0, "a"))
        before = deadlines.of("a")
        assert bus.exchange({"a": b"x"})["a"].reason.startswith(LATE)
        assert deadlines.of("a") == 2 * before
    finally:
        bus.close()


@pytest.mark.parametrize("moment", ["before", "while waiting"])
def test_a_broker_that_comes_back_is_waited_for_and_nobody_is_late(running, bus, agents, moment):
    """The deadline is shorter than the broker is away; and agents may be slower than the hub to find it."""
    kept = threading.Event()

    async def only_later(message):
        if message.data == b"2" and not kept.is_set():
            kept.set()  # its reply is lost with the broker
            return
        await message.respond(message.data)

    agents.add("a", only_later)
    agents.add("b", echo("b"))
    assert bus.exchange({"a": b"1", "b": b"1"}, 30.0)["a"] == b"1"

    def restart():
        if moment == "while waiting":
            kept.wait(30.0)
        running.stop()
        time.sleep(0.6)
        running.start()

    thread = threading.Thread(target=restart)
    thread.start()
    if moment == "before":
        kept.set()
        time.sleep(0.2)
    replies = bus.exchange({"a": b"2", "b": b"2", "c": b"2"}, 0.4 if moment == "before" else 1.0)
    thread.join()
    assert replies == {"a": b"2", "b": b"b got 2", "c": Failure("not connected")}
    assert agents.asked["b"].count(b"2") >= 1


def test_a_broker_that_stays_away_is_given_up_with_a_remedy(running, bus, monkeypatch):
    monkeypatch.setattr(bus_module, "OUTAGE_S", 0.3)
    running.stop()
    with pytest.raises(NashcastError, match=r"has been away for 0\.3 s\. Start it; then start the hub again"):
        bus.exchange({"a": b""}, 0.1)


def test_a_line_that_is_silently_cut_makes_nobody_late(bus, agents, monkeypatch):
    """As long as the broker does not even answer a ping, it says nothing of an agent that it does not answer."""
    agents.add("a", echo("a"))
    client, healed = bus.client, []
    flush = client.flush

    async def cut(timeout):
        if not healed:
            await asyncio.sleep(1.2)
            healed.append(True)
            await client.publish(ask_subject(FEDERATION, "a"), b"x", reply=f"{bus._inbox}.{bus._rounds}.0")
        await flush(timeout)

    async def lost(now, names):
        return None

    monkeypatch.setattr(bus, "_send", lost)
    monkeypatch.setattr(client, "flush", cut)
    assert bus.exchange({"a": b"x"}, 0.2) == {"a": b"a got x"}
    assert healed


def test_a_hub_that_is_shut_out_says_so(running, bus):
    bus.run(bus.client.close())
    with pytest.raises(NashcastError, match="the broker has shut the hub out"):
        bus.exchange({"a": b""}, 0.1)


def test_ctrl_c_leaves_it_usable(bus, agents):
    agents.add("a", echo("a"))
    with pytest.raises(NashcastError, match=r"the broker did not answer within 0.05 s"):
        bus.run(asyncio.sleep(10.0), 0.05)
    assert bus.start(asyncio.sleep(0.0, "done")).result(30.0) == "done"
    assert bus.exchange({"a": b"x"}, 30.0) == {"a": b"a got x"}


def test_a_bus_that_cannot_connect_leaves_no_thread(running):
    running.stop()
    before = threading.active_count()
    with pytest.raises(NashcastError, match="cannot be reached"):
        Bus(FEDERATION, dial(running))
    assert threading.active_count() == before
