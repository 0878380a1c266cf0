"""The owner's side: what it lets out, what it does once, what it survives, and what it says of it."""

import gc
import struct
import tracemalloc
from typing import NamedTuple, get_args

import numpy as np
import pytest

import nashcast as nc
from nashcast.agents.lookback.paper_agent import PaperAgent
from nashcast.agents.protocol import PAPER_SHARES, Invitation, Sync
from nashcast.remote.hub.lookback.remote_agents import RemoteAgents
from nashcast.remote.owner import owner as owner_module
from nashcast.remote.owner.owner import Owner
from nashcast.remote.wire import messages as m
from nashcast.remote.wire.checks import check_turn
from nashcast.remote.wire.format import MalformedMessage, pack, unpack
from support.remote.drawn_messages import draw
from support.remote.elsewhere import LocalTransport, Twin, make_agents, make_remote, make_stream, seen

CALLS = get_args(m.Call)
ONE, TWO = np.ones(1), np.array([0.5, -0.3])
BEGIN = m.Begin(2, ONE, 5, 2, 77)
FORECAST = m.Forecast(TWO, True)
JOIN = m.JoinGame(Invitation(np.ones((2, 1)), np.ones(2), ONE, True))


def random_features(**settings):
    return PaperAgent(nc.encoders.RandomFeatures(features=3, seed=1), **{"name": "desk", "ridge": 1.7, **settings})


def asked(owner, step, *calls):
    return unpack(owner.answer(pack(m.Turn(step, calls))), (m.Reply,))


def begun(**settings):
    owner = Owner(random_features(**settings))
    assert asked(owner, 0, BEGIN).reason == ""
    return owner


def everything(owner):
    """All an owner's agent knows, to the bit."""
    if owner._begun is None:
        return None
    saved = {name: value.tobytes() for name, value in owner._agent.save().items()}
    return saved, owner._late, repr(owner._game._moves), repr(owner._begun)


# What leaves it


class Private(NamedTuple):
    features: set
    expected: set
    decoders: set
    settings: set


def numbers(*arrays):
    found = {float(value) for array in arrays if array is not None for value in np.ravel(array)}
    return {value for value in found if value not in (0.0, 1.0)}


def watched(share, settings, y_dim=1):
    """All bytes an owner has sent in a run, and all the numbers that are its own."""
    X, Y = make_stream(y_dim, steps=25)
    agents = make_agents(y_dim)
    agents[0] = random_features(name="agent-0", share=share, decay=0.3)
    remote, transport = make_remote(agents, X, {"y_dim": y_dim, "start": np.zeros(y_dim), **settings})
    private = Private(set(), set(), set(), {1.7, 0.3})
    agent = agents[0]
    for x, y in zip(X, Y, strict=True):
        remote.federation.predict_one(x)
        private.features.update(numbers(agent.raw_features(), agent._features))
        private.decoders.update(numbers(agent._decoder))
        if settings["game"] is not None:
            private.expected.update(numbers(*agent._moments(agent._last(agent._features))))
        remote.federation.learn_one(x, y)
    assert remote.federation.health["absences"] == {}
    assert min(len(private.features), len(private.decoders)) > 20
    return b"".join([transport.owners["agent-0"].hello(), *transport.sent["agent-0"]]), private


SPREAD, CENTRAL = {"game": nc.LookbackGame(lookback=2, placement="spread")}, {"game": nc.LookbackGame(lookback=2)}
NO_GAME, ANCHORED = {"game": None}, {"game": None, "anchored": True}
NOTHING = {"features": False, "expected": False, "decoders": False, "settings": False}
LEVELS = [
    *[(share, settings, NOTHING) for share in PAPER_SHARES for settings in (NO_GAME, ANCHORED, SPREAD)],
    ("forecasts", CENTRAL, NOTHING),
    ("sums", CENTRAL, NOTHING),
    ("moments", CENTRAL, {**NOTHING, "expected": True, "settings": True}),
    ("features", CENTRAL, {**NOTHING, "expected": True, "settings": True, "features": True}),
]


@pytest.mark.parametrize(("share", "settings", "leaves"), LEVELS)
def test_only_what_is_shared_leaves_an_agent(share, settings, leaves):
    sent, private = watched(share, settings)
    for field, may_leave in leaves.items():
        found = {v for v in getattr(private, field) if struct.pack("<d", v) in sent or struct.pack(">d", v) in sent}
        if not may_leave:
            assert found == set(), field
        elif field == "expected" and settings["game"]:
            assert len(found) > 0.9 * len(private.expected)
        else:
            assert len(found) > 0.8 * len(getattr(private, field))


@pytest.mark.parametrize(("share", "said"), [
    ("forecasts", (None, False, False, "forecasts")), ("sums", (None, False, True, "sums")),
    ("moments", (3, False, True, "moments")), ("features", (3, False, True, "features")),
])  # fmt: skip
def test_an_introduction_says_no_more_than_is_needed(share, said):
    (introduced,) = asked(Owner(random_features(share=share)), 0, BEGIN).results
    assert introduced == (*said, None)
    relative = Owner(PaperAgent(nc.encoders.Forecaster(lambda x: x[:1]), name="vendor", share=share))
    assert asked(relative, 0, BEGIN).results[0].relative == (share == "features")


def test_features_leave_only_where_they_are_asked_for():
    owner = begun()
    assert asked(owner, 0, m.Forecast(TWO, False)).results[0].features is None
    assert asked(owner, 0, FORECAST).results[0].features.shape == (1, 3)
    assert asked(begun(share="moments"), 0, FORECAST).results[0].features is None


def test_the_log_says_what_was_sent_and_the_counts_add_up():
    lines, X = [], make_stream(1, steps=6)[0]
    agents = make_agents(1)
    remote, transport = make_remote(agents, X, {"game": nc.LookbackGame(lookback=2), "start": 0.0})
    transport.owners["agent-0"] = owner = Owner(agents[0], log=lines.append)
    remote.federation.replay(*make_stream(1, steps=6))
    owner.answer(b"")
    hello = owner.hello()
    sent = transport.sent["agent-0"]
    introduced = "begin (features 3, relative False, varies True, share features), forecast (forecast (1,))"
    assert lines[0] == f"step 0: {introduced}; {len(sent[0])} bytes"
    assert lines[4].startswith(
        "step 4: forecast (forecast (1,), features (1, 3)), view (features (2, 1, 3), means (2, 1, "
    )
    assert "ridge 0.8, decay 0.0); " in lines[4]
    assert lines[6].startswith("step 0: cut off after 0 bytes; ")
    assert lines[7].startswith("hello: agent-0, shares features, at step 5 of run ")
    assert len(lines) == 8
    total = sum(int(line.split()[-2]) for line in lines)
    assert sum(owner.sent.values()) == total
    assert total - int(lines[6].split()[-2]) == sum(map(len, sent)) + len(hello)
    assert owner.sent["forecast"] == 8 * (6 + 4 * 3)
    assert owner.sent["view"] == 4 * 8 * (2 * (3 + 3 + 9) + 2)


# Told again, done once


def test_the_end_of_a_step_is_done_once():
    owner = begun(forgetting=0.9)
    asked(owner, 0, FORECAST)
    close = m.Close(0, Sync(2 * ONE, np.ones(3)), 3 * ONE)
    assert asked(owner, 1, close).reason == ""
    after = everything(owner)
    for again in (
        (close,),
        (close, close),
        (m.Missed(0, 0),),
        (BEGIN, close, m.Missed(0, 0)),
        (BEGIN._replace(target=TWO[:1]),),
    ):
        assert asked(owner, 1, *again).reason == ""
        assert everything(owner) == after
    late = m.LearnLate(4, 0, ONE)
    assert asked(owner, 1, late, late, late._replace(number=3)).reason == ""
    learnt = everything(owner)
    assert learnt[0]["gram"] != after[0]["gram"]
    asked(owner, 1, late)
    assert everything(owner) == learnt
    asked(owner, 1, late._replace(number=5))
    assert everything(owner) != learnt


def test_missed_steps_are_sat_out_from_where_it_is():
    inputs = [np.full(2, float(t)) for t in range(9)]
    encoder = nc.encoders.EchoState(features=2, seed=1, noise=0.1)
    asked_for = []

    def fetch(first, last):
        asked_for.append((first, last))
        return [*inputs[first:last], None]  # the last is not to be had

    owner = Owner(PaperAgent(encoder, name="echo"), inputs=fetch)
    twin = PaperAgent(encoder, name="echo")
    twin.begin(*BEGIN[:4])
    asked(owner, 0, BEGIN, FORECAST)
    assert asked(owner, 6, m.Missed(0, 5)).reason == ""
    for t in range(6):
        if t < 5:
            twin.see(inputs[t])
        twin.learn(None)
    assert everything(owner)[0] == {name: value.tobytes() for name, value in twin.save().items()}
    assert asked_for == [(0, 5)]
    assert asked(owner, 6, m.Missed(0, 4), m.Missed(2, 5)).reason == ""
    assert asked_for == [(0, 5)]
    owner._inputs = lambda first, last: 1 / 0
    assert asked(owner, 8, m.Missed(0, 7)).reason == ""
    owner._inputs = lambda first, last: ["no", "numbers"]
    assert asked(owner, 9, m.Missed(0, 8)).reason == ""
    assert owner._agent.step == 9


def test_a_long_absence_is_made_up_for_over_several_turns(monkeypatch):
    monkeypatch.setattr(owner_module, "AT_ONCE", 3)
    owner = begun()
    told = [asked(owner, 8, m.Missed(0, 7), FORECAST).reason for _ in range(3)]
    assert told == ["at step 3, not 8", "at step 6, not 8", ""]


def test_a_step_is_refused_unless_the_agent_is_at_it():
    owner = begun()
    before = everything(owner)
    for call in (FORECAST, m.View(), m.Adopt(Sync(ONE, None)), JOIN, m.Backward(0), m.FinishGame(np.ones(2))):
        assert asked(owner, 3, call).reason == "at step 0, not 3"
    assert asked(owner, 3, m.Close(1, None, ONE), m.LearnLate(0, 2, ONE)).reason == ""
    assert everything(owner)[0] == before[0]
    assert asked(Owner(random_features()), 1, m.Missed(0, 0)).reason == "missed before the stream has begun"


def test_a_run_begins_once_and_another_begins_anew():
    owner = begun()
    asked(owner, 0, FORECAST)
    asked(owner, 1, m.Close(0, None, ONE))
    for other in (BEGIN._replace(key=6), BEGIN._replace(lookback=3), BEGIN._replace(x_dim=3)):
        told = asked(owner, 1, other, m.Missed(0, 0)).reason
        assert told == "begin: got other dimensions or another key than this run has begun with"
    assert unpack(owner.hello(), (m.Hello,))[2:] == ("features", None, 1, 77)
    assert asked(owner, 0, BEGIN._replace(run=78, x_dim=3)).reason == ""
    assert unpack(owner.hello(), (m.Hello,))[4:] == (0, 78)


def test_a_step_that_it_forgot_is_one_it_sat_out():
    owner = begun()
    assert asked(owner, 1, m.Close(0, Sync(ONE, np.ones(3)), ONE), FORECAST).reason == ""
    assert owner._agent._took_part[-1] == False  # noqa: E712 NumPy's


# A game's order is its own


def test_the_moves_of_a_game_are_made_in_order():
    owner = begun()
    asked(owner, 0, FORECAST)
    asked(owner, 2, m.Missed(0, 1), FORECAST)
    assert asked(owner, 2, m.Backward(0)).reason == "got backward 0, expected join_game"
    assert asked(owner, 2, JOIN, m.Backward(1)).reason == "got backward 1, expected backward 0"
    assert asked(owner, 2, m.Backward(0)).reason == ""
    assert asked(owner, 2, m.Backward(0)).reason == ""  # the very same turn: its reply may have got lost
    assert asked(owner, 2, m.Missed(0, 0), m.Backward(0)).reason == "got backward 0, expected receive 0"
    assert asked(owner, 2, m.FinishGame(np.ones(2))).reason == "got finish_game, expected receive 0"
    quiet = m.JoinGame(JOIN.invitation._replace(noisy=False))
    told = asked(owner, 2, quiet).reason
    assert told == "join_game.noisy: got False, expected True: this agent's features vary"
    asked(owner, 3, m.Missed(0, 2), FORECAST)
    assert asked(owner, 3, m.Backward(1)).reason == "got backward 1, expected join_game"


@pytest.mark.parametrize("share", PAPER_SHARES)
def test_a_decoder_of_another_size_never_reaches_the_agent(share):
    owner = Owner(random_features(share=share))
    private = share in ("forecasts", "sums")
    words = "nothing where features are private" if private else "3"
    for size in (0, 2, 4, 50, *([3] if private else [])):
        sync = Sync(ONE, np.ones(size))
        told = asked(owner, 0, BEGIN._replace(run=size), FORECAST, m.Adopt(sync)).reason
        assert told == f"adopt.decoder: got {size} numbers, expected {words}"
        forecast = owner._agent._pending.forecast.copy()
        told = asked(owner, 1, m.Begin(*BEGIN[:4], size), m.Close(0, sync, ONE)).reason
        if private:  # it shared more when that was asked
            assert told == ""
            np.testing.assert_array_equal(owner._agent._present, forecast)
        else:
            assert told == f"adopt.decoder: got {size} numbers, expected {words}"
            assert owner._agent.step == 0


# Black boxes that fail


class Breaks(nc.encoders.BuiltEncoder):
    """Fails where it is told to, in a way that is hard to print."""

    features = 2

    def __init__(self, where=()):
        self.where = set(where)

    class Unprintable(Exception):
        def __str__(self):
            raise RuntimeError

    def build(self, x_dim, y_dim):
        self._fail("build")
        return self

    def start(self):
        self._fail("start")
        return 0.0

    def advance(self, context):
        return context.state + 1.0

    def encode(self, context):
        self._fail("encode")
        return np.array([[context.x[0], context.state - 1.0]])

    def moments(self, inputs, features, noise):
        self._fail("moments")
        return None

    def _fail(self, where):
        if where in self.where:
            raise (self.Unprintable if where == "moments" else RuntimeError)("the vendor\nis down")


def test_a_call_that_fails_is_told_and_leaves_the_agent_as_it_was():
    encoder = Breaks()
    owner = Owner(PaperAgent(encoder, name="vendor"))
    for where, words in (("build", "RuntimeError: the vendor is down"), ("moments", "Unprintable")):
        encoder.where = {where}
        assert asked(owner, 0, BEGIN, FORECAST).reason == words
        assert unpack(owner.hello(), (m.Hello,)).at == -1
    encoder.where = set()
    asked(owner, 0, BEGIN, FORECAST)
    before = everything(owner)
    for where in ("build", "start", "moments"):
        encoder.where = {where}
        assert asked(owner, 0, BEGIN._replace(run=78)).reason != ""
        assert everything(owner) == before
    assert asked(owner, 0, m.View()).reason == "Unprintable"
    assert asked(owner, 0, JOIN).reason == "Unprintable"
    assert everything(owner) == before
    # What came before it in the turn is done.
    assert asked(owner, 1, m.Close(0, None, ONE), m.View()).reason == "Unprintable"
    assert owner._agent.step == 1
    encoder.where = {"encode"}
    reply = asked(owner, 1, FORECAST, m.View(), m.Adopt(Sync(ONE, None)))
    assert reply.reason == ""
    assert reply.results == (m.RemoteAnswer(None, "RuntimeError: the vendor is down"),)


@pytest.mark.parametrize("placement", ["central", "spread"])
def test_a_black_box_that_fails_in_a_game_sits_the_step_out(placement):
    X, Y = make_stream(1, steps=30)
    settings = {"game": nc.LookbackGame(lookback=2, placement=placement), "start": 0.0}
    failing = {"moments": {5, 6, 11}, "encode": {8, 20}}
    encoder = Breaks()

    def agents(vendor):
        return [*make_agents(1)[:3], PaperAgent(vendor, name="vendor")]

    remote, transport = make_remote(agents(encoder), X, settings)
    away = set().union(*failing.values())
    # After a step at which it fails in anything but the forecast its memory is taken further by what it sees.
    twin = nc.paper_federation([*make_agents(1)[:3], Twin(agents(Breaks())[3], away, X)], **settings)
    for t in range(30):
        encoder.where = {where for where, steps in failing.items() if t in steps}
        forecast = remote.federation.predict_one(X[t])
        encoder.where = set()
        assert forecast == twin.predict_one(X[t])
        remote.federation.learn_one(X[t], Y[t])
        twin.learn_one(X[t], Y[t])
    assert remote.federation.health["absences"] == twin.health["absences"] == {"vendor": 5}
    assert remote.federation.health["reasons"] == {"vendor": "RuntimeError: the vendor is down"}
    assert len(transport.turns) > 30


def test_a_reply_too_large_to_be_sent_is_told():
    encoder = nc.encoders.RandomFeatures(features=300, seed=1)
    owner = Owner(PaperAgent(encoder, name="large"))
    reply = asked(owner, 0, BEGIN, FORECAST, m.View())
    assert reply.reason.startswith("reply: got what cannot be sent (")
    assert asked(owner, 0, FORECAST).reason == ""


# Its file


def test_a_state_that_cannot_be_written_or_read_is_told(tmp_path):
    owner = Owner(random_features(), state=tmp_path / "no folder" / "state.state")
    assert asked(owner, 0, BEGIN).reason.startswith("path: got state.state: No such file or directory. Choose a folder")
    path = tmp_path / "state.state"
    owner = Owner(random_features(), state=path)
    asked(owner, 0, BEGIN, FORECAST)
    for other, words in [
        (random_features(name="other"), "state: got state.state, of agent 'desk'. Pass the file that this agent wrote"),
        (
            PaperAgent(nc.encoders.Linear(lags=2), name="desk"),
            "saved features: got shape (5, 1, 3). Pass shape (5, 1, 5)",
        ),
    ]:
        with pytest.raises(nc.InvalidInput) as caught:
            Owner(other, state=path)
        assert words in str(caught.value)
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(nc.InvalidInput, match="cannot be read"):
        Owner(random_features(), state=path)


def test_only_what_changed_is_written(tmp_path):
    path = tmp_path / "state.state"
    owner = Owner(random_features(), state=path)
    for calls in ((m.Missed(0, 0),), (BEGIN._replace(x_dim=0),)):
        asked(owner, 1, *calls)
        assert not path.exists()
    asked(owner, 0, BEGIN, FORECAST)
    written = path.stat().st_mtime_ns
    for calls in ((BEGIN, m.View()), (m.View(),), ()):
        asked(owner, 0, *calls)
        assert path.stat().st_mtime_ns == written
    again = Owner(random_features(), state=path)
    assert everything(again) == everything(owner)
    assert again.hello() == owner.hello()


def test_a_name_that_cannot_be_sent_is_refused():
    with pytest.raises(nc.InvalidInput, match=r"name: got 'a b'\. Name the agent with 1 to 64 letters, digits, - or _"):
        Owner(random_features(name="a b"))


# Ten thousand malformed turns


def recorded_turns():
    """The turns of real runs, by agent's share."""
    turns = []
    for settings in (SPREAD, CENTRAL, ANCHORED):
        X, Y = make_stream(1, steps=6, x_dim=2)
        remote, transport = make_remote(make_agents(1), X, {"start": 0.0, **settings})
        remote.federation.replay(X, Y)
        turns += [pack(turns["agent-0"]) for turns in transport.turns if "agent-0" in turns]
    return turns


def test_malformed_turns_change_nothing_and_leave_no_memory_behind():
    rng, turns = np.random.default_rng(7), recorded_turns()
    owner = begun(share="sums")
    asked(owner, 2, m.Missed(0, 1), FORECAST, JOIN, m.Backward(0))
    before, counts = everything(owner), {"unread": 0, "refused": 0}

    def malformed():
        data = turns[rng.integers(len(turns))]
        way = rng.integers(4)
        if way == 0:
            return data[: rng.integers(len(data))]
        if way == 1:
            return rng.bytes(int(rng.integers(0, 200)))
        if way == 2:
            step, *kinds = (int(rng.integers(4)), *rng.choice(len(CALLS), size=rng.integers(1, 4)))
            return pack(m.Turn(step, tuple(draw(rng, CALLS[kind]) for kind in kinds)))
        changed = bytearray(data)
        for _ in range(int(rng.integers(1, 6))):
            changed[rng.integers(len(data))] = rng.integers(256)
        return bytes(changed)

    def feed(count):
        while count:
            data = malformed()
            kind = "unread"
            try:
                turn = unpack(data, (m.Turn,))
                kind = "refused"
                check_turn(turn, "sums", owner._dimensions())
                if turn.step == 2 or any(
                    isinstance(call, m.Begin | m.Close | m.Missed | m.LearnLate) for call in turn.calls
                ):
                    continue  # something that may be asked
            except MalformedMessage:
                pass
            counts[kind] += 1
            count -= 1
            reply = unpack(owner.answer(data), (m.Reply,))
            assert reply.results == ()
            assert reply.reason or not turn.calls
            assert everything(owner) == before

    feed(2000)
    tracemalloc.start()
    try:
        feed(200)
        gc.collect()
        size = tracemalloc.get_traced_memory()[0]
        feed(400)
        gc.collect()
        assert tracemalloc.get_traced_memory()[0] - size < 50_000
    finally:
        tracemalloc.stop()
    assert min(counts.values()) > 250
    assert everything(owner) == before


def test_turns_that_are_odd_but_may_be_asked_are_survived():
    rng, turns = np.random.default_rng(8), recorded_turns()
    owner = Owner(random_features(name="agent-0"), inputs=seen(np.zeros((10, 2))))
    replies = 0
    for _ in range(3000):
        changed = bytearray(turns[rng.integers(len(turns))])
        changed[rng.integers(len(changed))] = rng.integers(256)
        reply = unpack(owner.answer(bytes(changed)), (m.Reply,))
        replies += reply.reason == ""
    assert replies > 100
    remote = RemoteAgents(["agent-0"], LocalTransport({"agent-0": owner}), start=0.0)
    remote.federation.replay(*make_stream(1, steps=8, x_dim=2))
    assert remote.federation.health["absences"] == {}
