"""Parties with valid credentials that send whatever they like: ten thousand messages, and nobody else is hurt."""

import asyncio
import re
import threading

import numpy as np
import pytest

import nashcast as nc
from nashcast.agents.lookback.paper_agent import PaperAgent
from nashcast.remote.broker.running.server import connect
from nashcast.remote.hub import hub as hub_module
from nashcast.remote.owner.owner import Owner
from nashcast.remote.wire.checks import check_turn
from nashcast.remote.wire.format import PROTOCOL, MalformedMessage, pack, unpack
from nashcast.remote.wire.messages import Begin, Close, FinishGame, Forecast, Hello, Missed, Notice, Reply, Turn
from nashcast.remote.wire.rate_limited_log import Complaints
from nashcast.remote.wire.subjects import ask_subject, everybody_subject, tell_subject
from support.remote import fuzz, spies
from support.remote.brokers import FEDERATION, broker, found, soon
from support.remote.elsewhere import Gameless, LocalTransport, Twin, make_remote, make_stream, seen
from support.remote.elsewhere import make_agents as families
from support.remote.parties import agents_running, hub_running, said

HOSTILE = ("mal-0", "mal-1", "mal-2")
HONEST = {0: "ada", 2: "cyd"}
SHARES = ("sums",) * 4
STEPS, LOOKBACK, MESSAGES = 200, 2, 10_000
MOST_BYTES = 1 << 20
UNREADABLE = (
    b"NATS/1.0 \xff\xff\xff\r\n\r\n",
    b"NATS/1.0 200 \xff\r\n\r\n",
    b"NATS/1.0\r\n\xff:\x00\r\n\r\n",
    b"NATS/1.0 503\r\n\r\n",
)


def hostile_agents():
    return [
        PaperAgent(nc.encoders.RandomFeatures(features=2, seed=70 + i, noise=0.2 * (i > 0)), name=name, share="sums")
        for i, name in enumerate(HOSTILE)
    ]


class Hostile:
    """Answers turns, but once in every step not with what it was asked for; and says hello all the time."""

    def __init__(self, agent, X, seed):
        self.name, self._rng = agent.name, np.random.default_rng(seed)
        self._owner = Owner(agent, inputs=seen(X))
        self.away, self.replies, self.hellos = set(), 0, 0
        self._old, self._last = [], None
        self._asked, self._answer = b"", b""

    async def join(self, running):
        self._client = await connect(
            running.url, seed_file=running.folder / f"{self.name}.seed", name=self.name, patience=30.0
        )
        self._begun = asyncio.Event()
        await self._client.subscribe(ask_subject(FEDERATION, self.name), cb=self.asked)
        await self._client.subscribe(everybody_subject(FEDERATION), cb=self.noticed)

    async def noticed(self, message):
        if unpack(message.data, (Notice,)).kind == "begins":
            await self.hello(self._owner.hello())
            self._begun.set()

    async def hello(self, data):
        await self._client.publish(tell_subject(FEDERATION, self.name), data)

    async def asked(self, message):
        if (
            message.data == self._asked
        ):  # on a busy machine a turn is asked again: the same, or the hub takes the better
            await self._client.publish(message.reply, self._answer)
            return
        turn = unpack(message.data, (Turn,))
        good = self._owner.answer(message.data)
        self._asked, self._answer = message.data, good
        if self._last is not None and self._rng.random() < 0.1:
            late = good if self._rng.random() < 0.5 else fuzz.bad_reply(self._rng, good, self._old)
            await self._client.publish(self._last.reply, late)  # to an address that was answered before
        self._last = message
        if turn.step in self.away or not self._now(turn):
            await message.respond(good)
            self._old = [*self._old[-5:], good]
        else:
            self.away.add(turn.step)
            self.replies += 1
            self._answer = fuzz.bad_reply(self._rng, good, self._old)
            await self.raw(message.reply, self._answer)
            if self._rng.random() < 0.2:
                await message.respond(good)  # a second reply
        await self.bother()

    def _now(self, turn):
        """Whether this is the turn to spoil: any one of a step, the last if none before it."""
        if turn.step < LOOKBACK or any(isinstance(call, FinishGame) for call in turn.calls):
            return True
        return self._rng.random() < 0.3

    async def bother(self):
        rng = self._rng
        others = [*HONEST.values(), *(name for name in HOSTILE if name != self.name), "hub", "nobody"]
        for _ in range(int(rng.integers(4, 10))):
            self.hellos += 1
            await self.raw(tell_subject(FEDERATION, self.name), fuzz.bad_hello(rng, self.name, others, 5))
        for _ in range(int(rng.integers(3))):  # good ones, over and over, of which only some are true
            at, share = int(rng.integers(-1, 1)), ("forecasts", "features")[rng.integers(2)]
            await self.hello(rng.choice([self._owner.hello(), pack(Hello(PROTOCOL, self.name, share, None, at, at))]))

    async def raw(self, subject, data):
        """Now and then with headers that nobody can read."""
        client = self._client
        # One that is too large with its headers would cost the sender its connection, and end the nuisance.
        if self._rng.random() > 0.02 or len(data) > MOST_BYTES - 100:
            await client.publish(subject, data)
            return
        head = UNREADABLE[self._rng.integers(len(UNREADABLE))] if "tell" in subject else UNREADABLE[0]
        line = f"HPUB {subject} {len(head)} {len(head) + len(data)}\r\n".encode()
        await client._send_command(line + head + data + b"\r\n")
        await client._flush_pending()

    async def flood(self, hellos):
        """So many at once, as soon as there is a hub."""
        await self._begun.wait()
        while self.hellos < hellos:
            await self.bother()
        await self._client.flush()

    async def leave(self):
        await self._client.close()


class Gang:
    """All of them, in a thread of their own."""

    def __init__(self, X):
        self.members = [Hostile(agent, X, seed) for seed, agent in enumerate(hostile_agents())]
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def do(self, verb, *arguments):
        for each in self.members:
            asyncio.run_coroutine_threadsafe(getattr(each, verb)(*arguments), self._loop).result(120)

    def close(self):
        self.do("leave")
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


@pytest.mark.slow
def test_ten_thousand_hostile_messages(tmp_path):
    names, X, Y = [*HONEST.values(), *HOSTILE], *make_stream(1, steps=STEPS)
    folder = found(tmp_path, *names)
    settings = {"game": nc.LookbackGame(lookback=LOOKBACK, placement="spread"), "start": 0.25, "seed": 3, "run": 5}
    with broker(folder) as running:
        gang = Gang(X)
        try:
            gang.do("join", running)
            arguments = (folder, running.url, None, names, settings, X, Y)
            hub_url = f"{running.url}/{FEDERATION}"
            with (
                agents_running(folder, hub_url, "support.remote.spies:make_agents", [SHARES], HONEST),
                hub_running(folder, *arguments) as hub,
            ):
                gang.do("flood", MESSAGES // 10)
                hub.join(300)
                assert hub.exitcode == 0, said(folder, ("hub",))
        finally:
            gang.close()
    found_there = np.load(folder / "hub.npz")
    sent = {each.name: each.hellos for each in gang.members}
    total = sum(each.hellos + each.replies for each in gang.members)
    assert total >= MESSAGES
    # A game that one of them spoils in its middle is not played again: the others' turn to spoil it does not come.
    abandoned = set(np.flatnonzero(np.diff(found_there["fallbacks"])).tolist())
    assert min(len(each.away | abandoned) for each in gang.members) > 0.9 * STEPS
    assert min(each.replies for each in gang.members) > 0.5 * STEPS
    # The others' results, and the federation's, to the bit: as if those had sat out the same steps.
    twins = [Twin(agent, each.away, X) for agent, each in zip(hostile_agents(), gang.members, strict=True)]
    honest = [agent for agent in spies.make_agents(SHARES) if agent.name in HONEST.values()]
    twin = nc.paper_federation(
        [*honest, *twins], make_post=lambda opening: Gameless(opening, abandoned),
        **{k: v for k, v in settings.items() if k != "run"},
    )  # fmt: skip
    expected = twin.replay(X, Y)
    for field in ("forecasts", "weights", "agents"):
        np.testing.assert_array_equal(found_there[field], getattr(expected, field))
    assert dict(zip(names, found_there["absences"], strict=True)) == {
        name: twin.health["absences"].get(name, 0) for name in names
    }
    assert found_there["reconnects"] == 0
    # Memory: flat while two thirds of the steps are made; more came in than that.
    first, last = found_there["memory"]
    assert last - first < 12 << 20, (first, last)
    # A reason for everything, and few lines.
    log = (folder / "hub.err").read_text()
    for place, name in enumerate(names):
        lines = re.findall(rf"hub: {name}: (?:(\d+) more, the last: )?(.*)", log)
        assert sum(int(count or 1) for count, _ in lines) == found_there["refused"][place]
        assert all(reason for _, reason in lines)
        if name in sent:
            assert found_there["refused"][place] >= sent[name]
            assert len(lines) < 0.1 * sent[name]
            assert found_there["reasons"][place]
        else:
            assert lines == []
    assert "\x1b" not in log
    assert "Traceback" not in log


@pytest.mark.parametrize("game", ["none", "anchored", "central", "rewriting", "spread"])
@pytest.mark.parametrize("y_dim", [1, 3])
def test_extreme_numbers_stay_numbers_and_bench_nobody_else(game, y_dim):
    settings = {
        "none": {"game": None},
        "anchored": {"game": None, "anchored": True},
        "central": {"game": nc.LookbackGame(lookback=3)},
        "rewriting": {"game": nc.LookbackGame(lookback=2, every=2, rewrite_past=True)},
        "spread": {"game": nc.LookbackGame(lookback=3, placement="spread")},
    }[game] | {"y_dim": y_dim, "start": np.zeros(y_dim), "seed": 3}
    wild = ("agent-1", "agent-4")

    class Extreme(LocalTransport):
        def __init__(self, owners, seed):
            super().__init__(owners)
            self._rng = np.random.default_rng(seed)

        def carry(self, name, turn):
            reply = super().carry(name, turn)
            return fuzz.extreme(self._rng, reply) if name in wild else reply

    X, Y = make_stream(y_dim, steps=40)
    plain = nc.paper_federation(families(y_dim), **settings).replay(X, Y)
    for shares in (("features",) * 6, ("moments",) * 6):
        for seed in range(3):
            remote, _ = make_remote(families(y_dim, shares), X, settings, Extreme, seed=seed)
            got = remote.federation.replay(X, Y)
            assert all(np.isfinite(part).all() for part in got[:3])
            assert remote.federation.health["absences"].keys() <= set(wild)
            assert remote.federation.health["absences"], "nothing was too large"
            if game in ("none", "anchored"):
                np.testing.assert_array_equal(got.agents[:, [0, 2, 3, 5]], plain.agents[:, [0, 2, 3, 5]])


def test_a_hello_in_anothers_name_is_refused_before_anything_is_done():
    X, Y = make_stream(1, steps=3)
    remote, _ = make_remote(families(1), X, {"start": 0.0})
    remote.federation.replay(X, Y)
    before = remote.peers[0].introduced
    hello = pack(Hello(PROTOCOL, "agent-0", "forecasts", None, -1, -1))
    with pytest.raises(MalformedMessage, match=r"hello.name: got 'agent-0' from 'agent-1'"):
        remote.greet(hello, "agent-1")
    assert remote.peers[0].introduced is before is not None
    with pytest.raises(MalformedMessage, match="3000 bytes, at most 2048 are read"):
        remote.greet(bytes(3000))
    assert remote.greet(hello, "agent-0").share == "forecasts"
    assert remote.peers[0].introduced is None
    assert len(pack(Hello(PROTOCOL, "n" * 64, "forecasts", b"k" * 512, 2**63 - 1, 2**63 - 1))) < 1024


def test_complaints_are_few_and_all_are_counted():
    lines, now = [], [0.0]
    complaints = Complaints(lines.append, most=2, every=10.0, clock=lambda: now[0])
    for i in range(1000):
        complaints.add("mal", f"reason {i}")
    complaints.add("ada", "late")
    assert lines == ["mal: reason 0", "mal: reason 1", "ada: late"]
    now[0] = 10.0
    complaints.add("mal", "again")
    complaints.flush()
    complaints.flush()
    assert lines[3:] == ["mal: 998 more, the last: reason 999", "mal: again"]
    assert complaints.counts == {"mal": 1001, "ada": 1}
    assert hub_module.MOST_WAITING < 1 << 23


# A hub that is not what it should be


def turns_of_a_run():
    """The turns of real runs to agent-0, with calls of every kind."""
    turns = []
    for settings in ({"game": nc.LookbackGame(lookback=2, placement="spread")}, {"game": nc.LookbackGame(lookback=2)}):
        X, Y = make_stream(1, steps=6)
        remote, transport = make_remote(families(1), X, {"start": 0.0, **settings})
        remote.federation.replay(X, Y)
        turns += [pack(each["agent-0"]) for each in transport.turns if "agent-0" in each]
    return turns


def bad_turn(rng, turns, share, dimensions):
    """A turn that an agent which shares so much must refuse."""
    while True:
        way = rng.integers(4)
        data = turns[rng.integers(len(turns))]
        made = [lambda: fuzz.bomb(rng), lambda: fuzz.strange_map(rng, "turn")][way]() if way < 2 else None
        made = fuzz.damaged(rng, data) if made is None else made
        try:
            turn = unpack(made, (Turn,))
            check_turn(turn, share, dimensions)
            if turn.step != 3 and not any(isinstance(call, Begin | Close | Missed) for call in turn.calls):
                return made  # of another step
        except MalformedMessage:
            return made


def test_a_hostile_hub_gets_reasons_and_nothing_else(tmp_path):
    """An agent in its own process, in the middle of a game; its twin here says what it is to go on with."""
    folder, rng, turns = found(tmp_path, "ada"), np.random.default_rng(4), turns_of_a_run()
    X, Y = make_stream(1, steps=6)
    begin = Begin(3, np.zeros(1), 11, 2, 7)
    start = [Turn(0, (begin, Forecast(X[0], False)))]
    start += [Turn(t, (Close(t - 1, None, Y[t - 1]), Forecast(X[t], False))) for t in (1, 2, 3)]
    twin = Owner(spies.make_agents(SHARES)[0])

    async def scenario(running):
        hub = await connect(running.url, seed_file=folder / "hub.seed", name="hub", patience=30.0)
        hellos = []

        async def hear(message):
            hellos.append(message.data)

        await hub.subscribe(tell_subject(FEDERATION, "*"), cb=hear)
        assert await soon(lambda: hellos, 60.0)
        ask = ask_subject(FEDERATION, "ada")

        async def asked(data, headers=b""):
            return unpack((await hub.request(ask, data, timeout=60.0)).data, (Reply,))

        for turn in start:
            got, expected = await asked(pack(turn)), unpack(twin.answer(pack(turn)), (Reply,))
            np.testing.assert_array_equal(got.results[-1].forecast, expected.results[-1].forecast)
        before = (folder / "ada.npz").read_bytes()
        for i in range(1500):
            reply = await asked(bad_turn(rng, turns, "sums", twin._dimensions()))
            assert reply.results == ()
            assert reply.reason
            if i % 50 == 0:  # notices that are none, and headers that nobody can read
                await hub.publish(everybody_subject(FEDERATION), fuzz.damaged(rng, pack(Notice(1, "late", ("ada",)))))
                head = UNREADABLE[rng.integers(len(UNREADABLE))]
                line = f"HPUB {everybody_subject(FEDERATION)} {len(head)} {len(head) + 1}\r\n".encode()
                await hub._send_command(line + head + b"x\r\n")
                await hub._flush_pending()
        assert (folder / "ada.npz").read_bytes() == before
        last = pack(Turn(4, (Close(3, None, Y[3]), Forecast(X[4], True))))
        got, expected = await asked(last), unpack(twin.answer(last), (Reply,))
        np.testing.assert_array_equal(got.results[-1].forecast, expected.results[-1].forecast)
        assert got.results[-1].features is None
        await hub.close()

    with broker(folder) as running:
        url = f"{running.url}/{FEDERATION}"
        with agents_running(folder, url, "support.remote.spies:make_agents", [SHARES], {0: "ada"}) as processes:
            asyncio.run(scenario(running))
            assert processes["ada"].is_alive()
    log = (folder / "ada.err").read_text()
    assert "Traceback" not in log
    assert "\x1b" not in log
