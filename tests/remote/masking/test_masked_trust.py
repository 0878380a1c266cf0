"""What a hub that looks at every byte sees of a masked game, and what owners do not let a hub do that lies."""

import logging
import struct

import numpy as np
import pytest

import nashcast as nc
from nashcast.remote.hub.lookback.remote_agents import RemoteAgents
from nashcast.remote.masking.masks import new_key, sign_key
from nashcast.remote.masking.owner import MaskSettings
from nashcast.remote.owner.owner import Owner
from nashcast.remote.wire import messages as m
from nashcast.remote.wire.fixed_point import encode
from nashcast.remote.wire.format import pack, unpack
from support.remote.elsewhere import make_remote, make_stream
from support.remote.masked_teams import (
    FEDERATION,
    LocalTransport,
    Watched,
    identity,
    make_masked,
    make_owner,
    make_team,
    name_of,
    settings_for,
    twin_of,
)

pytest.importorskip("cryptography")
SETTINGS = {"game": nc.LookbackGame(lookback=2, placement="spread"), "start": 0.0, "seed": 3}


# What crosses


class Tapped:
    """Every number that is an agent's own, as it comes to be."""

    def __init__(self, agents):
        self.terms, self.features, self.decoders, self.moments = set(), set(), set(), set()
        for agent in agents:
            self._tap(agent)

    def _tap(self, agent):
        backward, finish = agent.backward, agent.finish_game

        def tapped_backward(back):
            terms = backward(back)
            self.terms.update(numbers(*terms))
            self.features.update(numbers(agent._last(agent._features), agent.raw_features()))
            self.moments.update(numbers(*agent._window_moments))
            return terms

        def tapped_finish(totals):
            part = agent._part
            answer = finish(totals)
            self.decoders.update(numbers(part.decoders, agent._decoder))
            return answer

        agent.backward, agent.finish_game = tapped_backward, tapped_finish


def numbers(*arrays):
    found = {float(value) for array in arrays if array is not None for value in np.ravel(array)}
    # What is near 0 or a small whole number has bytes that occur by chance.
    return {value for value in found if abs(value) > 1e-6 and value != round(value)}


def shown(values, data):
    """Those of them whose bytes occur, as float64 or as the fixed point of masked sums."""
    found = set()
    for value in values:
        forms = (struct.pack("<d", value), struct.pack(">d", value), encode(np.array([value])).astype("<u8").tobytes())
        if any(form in data for form in forms):
            found.add(value)
    return found


def tapped_run(masked, kinds):
    X, Y = make_stream(1, steps=12)
    agents = [agent for agent in make_team(12) if type(agent._encoder).__name__ in kinds][:8]
    tap = Tapped(agents)
    if masked:
        remote, transport = make_masked(agents, X, SETTINGS, team=12)
    else:
        remote, transport = make_remote(agents, X, SETTINGS, Watched)
    for owner in transport.owners.values():
        transport.bytes.append(owner.hello())
        remote.greet(transport.bytes[-1])
    remote.federation.replay(X, Y)
    assert remote.federation.health["games"] == 10
    assert min(map(len, (tap.features, tap.decoders, tap.moments))) > 50
    assert len(tap.terms) > 500
    return tap, b"|".join(transport.bytes)


RANDOM = ("RandomFeatures", "EchoState")


def test_nothing_of_an_agent_but_masked_terms_crosses_between_hub_and_owners():
    tap, data = tapped_run(True, RANDOM)
    for kind, values in vars(tap).items():
        assert shown(values, data) == set(), kind


def test_the_search_finds_terms_where_they_are_sent_plainly():
    tap, data = tapped_run(False, RANDOM)
    assert len(shown(tap.terms, data)) > 0.99 * len(tap.terms)
    assert shown(tap.features | tap.decoders | tap.moments, data) == set()


def test_the_transcript_has_bytes_of_masked_terms_only():
    X, Y = make_stream(1, steps=5)
    remote, _ = make_masked(make_team(8), X, SETTINGS | {"transcript": True})
    remote.federation.replay(X, Y)
    sent = [
        message for message in remote.federation.transcript if message.sender != "server" and message.kind == "backward"
    ]
    # (1 + 1 + 2, and then 4 + 2 + 6 numbers) of 16 bytes, a 1 and a tag
    assert {(message.bytes, *message.contents["value"]) for message in sent} == {(96, 96), (224, 224)}
    assert len(sent) == 3 * 2 * 8
    assert {values.dtype for kind, values in remote.post.values if kind.startswith("backward")} == {np.dtype(np.uint8)}


# A hub that lies


CHANGED = m.JoinGame | m.Receive | m.FinishGame


def lied_to(change, count=9, steps=6, at=4, settings=SETTINGS, random=False):
    """A run in which from one step on agents are told something else; the hub's and the owners' words on it."""
    X, Y = make_stream(1, steps=steps)

    def changed(name, turn):
        if turn.step != at:
            return turn
        calls = tuple(change(name, call) if isinstance(call, CHANGED) else call for call in turn.calls)
        return turn._replace(calls=calls)

    remote, transport = make_masked(make_team(count, random), X, settings, change=changed)
    result = remote.federation.replay(X, Y)
    assert remote.federation.health["absences"] == {}
    twin = twin_of(make_team(count, random), transport, X, settings)
    np.testing.assert_allclose(result.forecasts, twin.replay(X, Y).forecasts, rtol=1e-12)
    refusals = {
        name: {result.reason for reply in replies for result in unpack(reply, (m.Reply,)).results
               if isinstance(result, m.Refused)}
        for name, replies in transport.sent.items()
    }  # fmt: skip
    return remote, transport, refusals


def in_masking(**change):
    """Everybody's invitation with something else in it."""
    return lambda name, call: call._replace(
        masking=call.masking._replace(**{key: make(call, name) for key, make in change.items()})
    ) if isinstance(call, m.JoinGame) else call  # fmt: skip


HUB = identity(99)


def forged(seed, name="agent-01", federation=FEDERATION):
    signed = sign_key(federation, name, new_key(), seed)
    return signed.public_key + signed.signature


def with_key(key):
    return {"named": lambda call, name: (name_of(1),), "keys": lambda call, name: (key,)}


def only(name, change):
    """Only one agent is told so."""
    return lambda told, call: change(told, call) if told == name else call


def without(left_out):
    """Some are said not to be there, and who is asked is told so."""

    def change(name, call):
        masking = call.masking
        kept = [place for place, other in enumerate(masking.present) if other not in left_out]
        present = tuple(masking.present[place] for place in kept)
        return call._replace(masking=masking._replace(present=present, weights=masking.weights[:, kept].copy()))

    return lambda name, call: change(name, call) if isinstance(call, m.JoinGame) else call


def thin(call, name):
    weights = np.zeros_like(call.masking.weights)
    weights[:, call.masking.present.index(name)] = call.invitation.weights
    return weights


LIES = {
    "signed by the hub": (in_masking(**with_key(forged(HUB[0]))), "it is not signed by the nkey enrolled under that"),
    "unsigned": (in_masking(**with_key(b"k" * 32)), "the key of 'agent-01': it is not signed by the nkey enrolled"),
    "of another federation": (in_masking(**with_key(forged(identity(1)[0], federation="heat"))), "it is not signed"),
    "nobody enrolled": (
        in_masking(named=lambda call, name: ("hub",), keys=lambda call, name: (forged(HUB[0], "hub"),)),
        "the key of 'hub': nobody of that name is enrolled",
    ),
    "a stranger is present": (
        in_masking(
            present=lambda call, name: (*call.masking.present, "hub"),
            weights=lambda call, name: np.column_stack([call.masking.weights, np.ones(2)]),
        ),
        "it has no verified key of hub",
    ),
    "too few": (without([name_of(i) for i in range(6)]), "a sum over 3 agents hides too little; it takes 4"),
    "only one has a weight": (in_masking(weights=thin), "only 1 agents have a weight in some step of the window"),
    "other weights than its own": (
        in_masking(weights=lambda call, name: 2 * call.masking.weights), "its own weights are not those that all are"
    ),
    "other totals": (
        lambda name, call: call._replace(totals=2 * call.totals) if isinstance(call, m.FinishGame) else call,
        "the total weights are not those of the weights that all are told",
    ),
    "too many attempts": (in_masking(attempt=lambda call, name: 3), "there are only 3 attempts for a step"),
}  # fmt: skip


@pytest.mark.parametrize("lie", LIES)
def test_an_owner_refuses_with_a_reason_and_its_forecast_stands(lie, caplog):
    change, words = LIES[lie]
    with caplog.at_level(logging.WARNING):
        remote, transport, refusals = lied_to(change)
    told_so = [name for name, reasons in refusals.items() if any(words in reason for reason in reasons)]
    assert len(told_so) >= (3 if lie == "too few" else 8)
    assert all(refusals.values())
    if "key of 'agent-01'" in str(refusals):
        assert refusals[name_of(1)] == {"'agent-01': the hub takes another key for its own."}
    assert {step for step, players in transport.ended.items() if players} == {2, 3, 5}
    assert remote.federation.health["fallbacks"] == 1
    assert any(words in why for why in remote.federation.health["fell back"]) or lie == "too few"
    assert "refused: " in caplog.text
    assert "plays no game" in caplog.text


def doubled_sums(name, call):
    return call._replace(sums=call.sums._replace(shift=2 * call.sums.shift)) if isinstance(call, m.Receive) else call


def other_targets(name, call):
    if not isinstance(call, m.JoinGame):
        return call
    return call._replace(invitation=call.invitation._replace(targets=call.invitation.targets + 1))


def other_weights(name, call):
    if not isinstance(call, m.JoinGame):
        return call
    weights = call.masking.weights.copy()
    weights[:, call.masking.present.index(name) - 1] *= 2
    return call._replace(masking=call.masking._replace(weights=weights))


@pytest.mark.parametrize("change", [doubled_sums, other_targets, other_weights])
def test_whoever_is_told_something_else_is_not_added_up(change):
    """Its masks are of something else; the game goes on without it where there are enough to hide it."""
    remote, transport, refusals = lied_to(only(name_of(4), change), count=9)
    assert remote.federation.health["fallbacks"] == 0
    assert len(transport.ended[4]) == 5
    assert name_of(4) not in transport.ended[4]
    assert refusals == {name: set() for name in transport.owners}
    remote, transport, _ = lied_to(only(name_of(4), change), count=7)
    why = "masks: 6 of 7 agents can play on; it takes more (agent-04: its message is not of the others' round)"
    assert remote.federation.health["fell back"] == {why: 1}


def test_false_sums_in_the_last_round_are_not_noticed():
    """No masked round follows them: the hub gets the forecast that they lead to, and no second one."""
    X, Y = make_stream(1, steps=5)

    def changed(name, turn):
        last = SETTINGS["game"].lookback - 1
        lie = (
            name == name_of(4)
            and turn.step == 4
            and isinstance(turn.calls[0], m.Receive)
            and turn.calls[0].back == last
        )
        return turn._replace(calls=(doubled_sums(name, turn.calls[0]), *turn.calls[1:])) if lie else turn

    remote, transport = make_masked(make_team(9, False), X, SETTINGS, change=changed)
    remote.federation.replay(X[:4], Y[:4])
    honest = twin_of(make_team(9, False), transport, X, SETTINGS)
    honest.replay(X[:4], Y[:4])
    transport.ended[4] = set(transport.owners)
    assert abs(remote.federation.predict_one(X[4]) - honest.predict_one(X[4])) > 1e-6
    assert remote.federation.health["fallbacks"] == 0


def test_told_apart_in_halves_nothing_is_opened():
    halves = [name_of(i) for i in range(4)]

    def change(name, call):
        return other_targets(name, call) if name in halves else call

    remote, _, _ = lied_to(change, count=8)
    ((why, _),) = remote.federation.health["fell back"].items()
    assert why.startswith("masks: not of the round, shapes, agents and context of the others")
    assert remote.federation.health["games"] == 3


def asked_again(owner, turn, **change):
    """The same agent asked again in the same step, for another attempt."""
    (join,) = (call for call in turn.calls if isinstance(call, m.JoinGame))
    masking = join.masking._replace(**{key: value for key, value in change.items() if key in m.Masking._fields})
    invitation = join.invitation._replace(
        **{key: value for key, value in change.items() if key in join.invitation._fields and key != "weights"}
    )
    calls = (m.JoinGame(invitation, masking), m.Backward(0))
    (result,) = unpack(owner.answer(pack(m.Turn(turn.step, calls))), (m.Reply,)).results
    return result


def middle_of_a_game(count=9):
    X, Y = make_stream(1, steps=6)
    remote, transport = make_masked(make_team(count, False), X, SETTINGS)
    remote.federation.replay(X, Y)
    remote.federation.predict_one(X[0])
    name = name_of(4)
    first = next(turns[name] for turns in reversed(transport.turns) if isinstance(turns[name].calls[-1], m.Backward)
                 and turns[name].calls[-1].back == 0)  # fmt: skip
    return transport.owners[name], first, transport.sent[name]


def test_a_round_sent_before_is_sent_again_to_the_byte_and_never_differently():
    owner, first, sent = middle_of_a_game()
    (before,) = (r for reply in sent for r in unpack(reply, (m.Reply,)).results[1:2] if reply is sent[-3])
    assert asked_again(owner, first) == before
    fresh = asked_again(owner, first, attempt=1)
    assert isinstance(fresh, bytes)
    assert fresh != before
    assert asked_again(owner, first, attempt=1) == fresh
    assert asked_again(owner, first) == before  # known to the hub already
    present = tuple(name_of(i) for i in range(9))
    for change, words in [
        ({"noisy": True}, "told other targets or weights in this step before"),
        ({"targets": first.calls[-2].invitation.targets + 1, "attempt": 2}, "told other targets or weights in this"),
        ({"attempt": 2, "present": present[1:], "weights": first.calls[-2].masking.weights[:, 1:].copy()},
         "it leaves out 1 of the agents, whose terms would show; leave out at least 4"),
        ({"attempt": 1, "present": present[::-1], "weights": first.calls[-2].masking.weights[:, ::-1].copy()},
         "sent before, and a mask is used once"),
    ]:  # fmt: skip
        assert words in asked_again(owner, first, **change).reason


def test_the_very_same_turn_is_answered_alike_anywhere_in_a_game():
    X, Y = make_stream(1, steps=8)

    class Twice(Watched):
        def carry(self, name, turn):
            first, second = super().carry(name, turn), self.owners[name].answer(turn)
            results = [unpack(reply, (m.Reply,)).results for reply in (first, second)]
            assert repr(results[0]) == repr(results[1])
            return second

    owners = {agent.name: make_owner(agent, 8, X) for agent in make_team(8)}
    transport = Twice(owners)
    remote = RemoteAgents(list(owners), transport, masked=True, **SETTINGS)
    once, _ = make_masked(make_team(8), X, SETTINGS)
    np.testing.assert_array_equal(remote.federation.replay(X, Y).forecasts, once.federation.replay(X, Y).forecasts)
    assert remote.federation.health["games"] == 6


# What owners have


def test_an_owner_with_masks_never_sends_plain_terms():
    X, Y = make_stream(1, steps=6)
    transport = LocalTransport({agent.name: make_owner(agent, 6) for agent in make_team(6)})
    remote = RemoteAgents(list(transport.owners), transport, **SETTINGS)
    remote.federation.replay(X, Y)
    assert remote.federation.health["games"] == 0
    assert "the terms of this agent are sent under masks only" in remote.federation.health["reasons"][name_of(0)]
    results = [r for sent in transport.sent.values() for reply in sent for r in unpack(reply, (m.Reply,)).results]
    assert {type(result) for result in results} == {m.Introduced, m.RemoteAnswer}


def test_every_run_and_every_start_has_its_own_key():
    X, Y = make_stream(1, steps=6)
    remote, transport = make_masked(make_team(8), X, SETTINGS)
    owner = transport.owners[name_of(0)]

    def key():
        return unpack(owner.hello(), (m.Hello,)).public_key

    first = key()
    assert len(first) == 96
    remote.federation.replay(X, Y)
    assert key() == first
    other = RemoteAgents(list(transport.owners), transport, masked=True, **SETTINGS)
    other.federation.replay(X, Y)
    assert other.federation.health["games"] == 4
    assert key() != first
    assert unpack(make_owner(make_team(8)[0], 8).hello(), (m.Hello,)).public_key != key()


def test_what_an_owner_is_given_is_checked_and_its_seed_is_not_shown():
    agent, good = make_team(3)[1], settings_for(name_of(1), 3)
    seed = identity(1)[0]
    assert seed not in repr(good)
    bad = [
        (
            MaskSettings(FEDERATION, identity(2)[0], good.enrolled),
            "masks: got the key of 'agent-01': it is not signed by",
        ),
        (MaskSettings(FEDERATION, seed, {}), "masks: got the key of 'agent-01': nobody of that name is enrolled"),
        (MaskSettings(FEDERATION, "SUNONE", good.enrolled), "seed: got nkeys: invalid seed"),
        (MaskSettings(FEDERATION, seed, good.enrolled, least=2), "least: got int 2. Pass a whole number ≥ 3."),
        (seed, "masks: got str. Pass MaskSettings(federation, seed, enrolled)."),
    ]
    for settings, words in bad:
        with pytest.raises(nc.InvalidInput) as caught:
            Owner(agent, masks=settings)
        assert words in str(caught.value)
    assert seed not in str(caught.value)


def test_an_owner_may_ask_for_more_agents_than_the_game_does():
    X, Y = make_stream(1, steps=6)
    remote, transport = make_masked(make_team(9, False), X, SETTINGS)
    wary = name_of(0)
    transport.owners[wary] = Owner(make_team(9, False)[0], masks=settings_for(wary, 9, least=10))
    remote.federation.replay(X, Y)
    assert all(wary not in players for players in transport.ended.values())
    assert [len(players) for players in transport.ended.values()] == [5] * 4
