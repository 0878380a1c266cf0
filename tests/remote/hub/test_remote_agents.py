"""Federations over bytes: the same numbers as in one process, whatever gets lost, whoever is killed."""

import numpy as np
import pytest

import nashcast as nc
from nashcast.agents.lookback.paper_agent import PaperAgent
from nashcast.federation.compiled.replay import replay
from nashcast.federation.lookback import placements
from nashcast.remote.hub.lookback.remote_agents import RemoteAgents
from nashcast.remote.hub.lookback.sent_once import LATE_LABEL
from nashcast.remote.hub.peer import MOST_LATE, Peer
from nashcast.remote.owner.owner import Owner
from nashcast.remote.wire.format import MalformedMessage, pack, unpack
from nashcast.remote.wire.messages import Receive, Reply, Turn, kind_of
from nashcast.remote.wire.transport import Failure
from support.remote.elsewhere import (
    MIXED,
    Abandoned,
    Gameless,
    LocalTransport,
    Twin,
    Unreliable,
    assert_same,
    make_agents,
    make_remote,
    make_stream,
    seen,
)

ALL = ("features",) * 6
GAMES = {
    "no game": {"game": None},
    "anchored": {"game": None, "anchored": True},
    "central": {"game": nc.LookbackGame(lookback=3)},
    "central, every 2": {"game": nc.LookbackGame(lookback=2, every=2)},
    "central, every 3": {"game": nc.LookbackGame(lookback=3, every=3)},
    "rewriting": {"game": nc.LookbackGame(lookback=2, every=2, rewrite_past=True)},
    "spread": {"game": nc.LookbackGame(lookback=3, placement="spread")},
    "spread, every 2": {"game": nc.LookbackGame(lookback=1, every=2, placement="spread")},
}


def settings_of(game, y_dim, **more):
    return {**GAMES[game], "y_dim": y_dim, "start": np.zeros(y_dim), "seed": 3, "ridge": 0.7, **more}


# The same numbers


@pytest.mark.parametrize("game", GAMES)
@pytest.mark.parametrize("y_dim", [1, 2])
@pytest.mark.parametrize("shares", [ALL, MIXED], ids=["features", "mixed"])
def test_a_federation_over_bytes_is_the_same_to_the_bit(game, y_dim, shares):
    X, Y = make_stream(y_dim)
    settings = settings_of(game, y_dim)
    remote, _ = make_remote(make_agents(y_dim, shares), X, settings)
    plain = nc.paper_federation(make_agents(y_dim, shares), **settings)
    assert_same(remote.federation.replay(X, Y), plain.replay(X, Y))
    assert remote.federation.health == plain.health
    assert remote.federation.weights == plain.weights
    assert (remote.federation.health["games"] > 15) == (settings["game"] is not None)


@pytest.mark.parametrize("game", ["anchored", "central", "spread"])
@pytest.mark.parametrize("forgetting", [None, 0.9])
def test_labels_that_are_missing_or_late_are_learnt_alike(game, forgetting):
    X, Y = make_stream(2, steps=40)
    settings = settings_of(game, 2, start=None)
    remote, transport = make_remote(make_agents(2, MIXED, forgetting), X, settings)
    plain = nc.paper_federation(make_agents(2, MIXED, forgetting), **settings)
    for t in range(40):
        late = t % 7 == 3 and t > 5
        for federation in (remote.federation, plain):
            federation.predict_one(X[t])
            if t % 8 == 0 and t > 5 and game == "anchored":  # between a forecast and its label
                federation.learn_late(federation.step - 2, Y[t - 1])
            federation.learn_one(X[t], None if late or t == 30 else Y[t])
            if late:
                federation.learn_late(federation.step - 1, Y[t])
        np.testing.assert_array_equal(remote.federation.predict_one(X[0]), plain.predict_one(X[0]))
        np.testing.assert_array_equal(remote.federation.interval(0.9), plain.interval(0.9))
    assert remote.federation.health == plain.health
    late_labels = 9 if game == "anchored" else 5
    assert remote.federation.health["late labels"] == late_labels
    turns = [turns["agent-0"] for turns in transport.turns if "agent-0" in turns]
    late = [call for turn in turns for call in turn.calls if kind_of(call) == "learn_late"]
    assert [call.number for call in late] == list(range(late_labels))  # each is told once where nothing goes wrong


@pytest.mark.parametrize("game", ["central", "spread"])
def test_a_late_label_between_a_forecast_and_its_label_ends_the_steps_game(game):
    """Another one would be more equations about the same agents: they would refuse it, and are not asked."""
    X, Y = make_stream(1, steps=20)
    remote, _ = make_remote(make_agents(1, MIXED), X, settings_of(game, 1))
    federation = remote.federation
    for t in range(20):
        federation.predict_one(X[t])
        federation.learn_one(X[t], None if t == 10 else Y[t])
        if t == 11:
            before = federation.predict_one(X[12])
            federation.learn_late(10, Y[10])
            assert federation.predict_one(X[12]) != before
    assert federation.health["fell back"] == {LATE_LABEL: 1}
    assert federation.health["games"] == 16
    assert not federation.health["absences"]


def test_asking_for_other_inputs_changes_nothing():
    X, Y = make_stream(1, steps=20)
    for game in ("anchored", "central", "spread"):
        settings = settings_of(game, 1)
        plain = nc.paper_federation(make_agents(1, MIXED), **settings)
        curious, _ = make_remote(make_agents(1, MIXED), X, settings)
        for x, y in zip(X, Y, strict=True):
            expected = plain.predict_one(x)
            curious.federation.predict_one(x + 1)
            assert curious.federation.predict_one(x) == expected
            plain.learn_one(x, y)
            curious.federation.predict_one(x - 1)
            curious.federation.learn_one(x, y)


PROMISED = [
    ("no game", MIXED, lambda due: 1),
    ("anchored", MIXED, lambda due: 1),
    ("central, every 2", ALL, lambda due: 1),
    ("central, every 2", MIXED, lambda due: 2 if due else 1),
    ("spread", MIXED, lambda due: 3 + 1 if due else 1),
    ("spread, every 2", ALL, lambda due: 1 + 1 if due else 1),
]


@pytest.mark.parametrize(("game", "shares", "turns"), PROMISED)
def test_a_step_takes_as_many_turns_as_promised(game, shares, turns):
    X, Y = make_stream(1, steps=12)
    remote, _ = make_remote(make_agents(1, shares), X, settings_of(game, 1))
    for t in range(12):
        before = remote.traffic["turns"]
        remote.federation.predict_one(X[t])
        remote.federation.predict_one(X[t])
        remote.federation.learn_one(X[t], Y[t])
        played = GAMES[game]["game"]
        due = played is not None and t >= played.lookback and t % played.every == 0
        assert remote.traffic["turns"] - before == turns(due)


def test_a_spread_game_takes_the_same_bytes_whatever_the_features():
    def traffic(features):
        encoders = [nc.encoders.RandomFeatures(features=features, seed=i) for i in range(3)]
        agents = [PaperAgent(encoder, name=f"agent-{i}") for i, encoder in enumerate(encoders)]
        X, Y = make_stream(1, steps=8)
        remote, _ = make_remote(agents, X, settings_of("spread", 1))
        steps = []
        for x, y in zip(X, Y, strict=True):
            remote.federation.predict_one(x)
            remote.federation.learn_one(x, y)
            steps.append(tuple(remote.traffic.values()))
        return steps

    assert traffic(1) == traffic(12)
    assert len(set(traffic(2))) == 8


def test_the_transcript_has_every_call_and_result():
    X, Y = make_stream(1, steps=5)
    remote, _ = make_remote(make_agents(1), X, settings_of("spread", 1, transcript=True))
    remote.federation.replay(X, Y)
    sent = {message.kind for message in remote.federation.transcript if message.sender == "agent-0"}
    assert sent == {"begin", "forecast", "backward", "finish_game"}
    told = {message.kind for message in remote.federation.transcript if message.receiver == "agent-0"}
    assert told == {"begin", "forecast", "close", "join_game", "backward", "receive", "finish_game"}


# Whatever gets lost


def run_with_late_labels(federation, X, Y):
    """Every fifth label comes two steps later than the others."""
    forecasts = []
    for t in range(len(X)):
        forecasts.append(federation.predict_one(X[t]))
        federation.learn_one(X[t], None if t % 5 == 2 else Y[t])
        if t % 5 == 4:
            federation.learn_late(t - 2, Y[t - 2])
    return np.array(forecasts)


def twin_of(away, X, settings, y_dim, shares, forgetting=None, abandoned=frozenset()):
    agents = [Twin(agent, away[agent.name], X) for agent in make_agents(y_dim, shares, forgetting)]
    return nc.paper_federation(agents, make_post=lambda opening: Gameless(opening, abandoned), **settings)


@pytest.fixture
def abandoned(monkeypatch):
    """Steps whose game has lost an agent in its middle: it is not played again."""
    noted = type("Noted", (Abandoned,), {"steps": set()})
    monkeypatch.setattr("nashcast.remote.hub.lookback.batched_transport.ToldOnce", noted)
    return noted.steps


def alike(health):
    """Without the words for what went wrong."""
    return {**health, "reasons": {}, "fell back": sum(health["fell back"].values())}


@pytest.mark.parametrize("game", [game for game in GAMES if game != "central, every 3"])
@pytest.mark.parametrize("seed", range(3))
def test_whoever_does_not_answer_is_as_good_as_sitting_out(game, seed, abandoned):
    y_dim, shares = 1 + seed % 2, ALL if seed == 1 else MIXED
    X, Y = make_stream(y_dim, seed=seed)
    settings = settings_of(game, y_dim)
    often = (0.02 if "spread" in game else 0.1) * (1 + seed)
    remote, transport = make_remote(make_agents(y_dim, shares), X, settings, Unreliable, seed=seed, often=often)
    result = remote.federation.replay(X, Y)
    twin = twin_of(transport.away, X, settings, y_dim, shares, abandoned=abandoned)
    assert_same(result, twin.replay(X, Y))
    assert remote.federation.health["absences"] == {name: len(steps) for name, steps in transport.away.items() if steps}
    assert alike(remote.federation.health) == alike(twin.health)
    assert len(transport.ways) > 5
    assert sum(map(len, transport.away.values())) > 10


@pytest.mark.parametrize("game", ["central", "spread"])
def test_late_labels_reach_who_was_away(game, abandoned):
    X, Y = make_stream(1)
    settings = settings_of(game, 1)
    agents = make_agents(1, MIXED, forgetting=0.95)
    remote, transport = make_remote(agents, X, settings, Unreliable, seed=2, often=0.05)
    forecasts = run_with_late_labels(remote.federation, X, Y)
    twin = twin_of(transport.away, X, settings, 1, MIXED, 0.95, abandoned)
    np.testing.assert_array_equal(forecasts, run_with_late_labels(twin, X, Y))
    assert sum(map(len, transport.away.values())) > 15


@pytest.mark.parametrize(("way", "words"), [
    ("dead", "not connected"),
    ("lost", "no answer within 1 s"),
    ("cut", "malformed reply: a number that claims 8 of the 7 bytes left"),
    ("longer", "malformed reply: 1 bytes too many"),
    ("stale", "malformed reply: step 4, expected 5 (stale)"),
    ("ahead", "malformed reply: step 6, expected 5 (ahead)"),
    ("old", "malformed reply: step 4, expected 5 (stale)"),
    ("not a number", "malformed reply: view.features[0, 0, 0] is nan"),
    ("shape", "malformed reply: view.features: got shape (2, 1, 3), expected (3, 1, 3)"),
    ("more", "malformed reply: got 3 results, expected 2: forecast, view"),
    ("less", "malformed reply: got 1 results, expected 2: forecast, view"),
])  # fmt: skip
def test_the_reason_is_told(way, words):
    X, Y = make_stream(1, steps=6)

    class Once(Unreliable):
        WAYS = (way,)

        def carry(self, name, turn):
            self._often = 1.0 if name == "agent-0" and len(self.turns) == 6 else 0.0
            return super().carry(name, turn)

    remote, _ = make_remote(make_agents(1), X, settings_of("central", 1), Once, seed=0, often=0.0)
    remote.federation.replay(X, Y)
    assert remote.federation.health["absences"] == {"agent-0": 1}
    assert words in remote.federation.health["reasons"]["agent-0"]


def test_nobody_there_means_the_last_target_and_then_all_begin():
    X, Y = make_stream(1, steps=20)
    settings = settings_of("central", 1)
    remote, transport = make_remote(make_agents(1), X, settings)
    carry, transport.carry = transport.carry, lambda name, turn: Failure("not connected")
    assert [remote.federation.replay(X[t : t + 1], Y[t : t + 1]).forecasts[0, 0] for t in range(9)] == [0.0, *Y[:8, 0]]
    transport.carry = carry
    away = dict.fromkeys(transport.owners, range(9))
    twin = twin_of(away, X, settings, 1, ALL)
    twin.replay(X[:9], Y[:9])
    assert_same(remote.federation.replay(X[9:], Y[9:]), twin.replay(X[9:], Y[9:]))


# A game that was abandoned


@pytest.mark.parametrize(("game", "shares"), [("spread", MIXED), ("rewriting", ("moments",) * 6)])
def test_after_an_abandoned_and_then_a_singular_game_everybody_is_where_the_server_thinks(game, shares, monkeypatch):
    X, Y = make_stream(1, steps=15)
    settings = settings_of(game, 1)
    remote, transport = make_remote(make_agents(1, shares), X, settings)
    lost, last_call = [], "finish_game" if game == "spread" else "adopt"
    inner = transport.carry

    def carry(name, turn):
        reply = inner(name, turn)
        asked = transport.turns[-1][name]
        if name == "agent-1" and asked.step == 8 and kind_of(asked.calls[-1]) == last_call:
            lost.append(asked.step)
            return Failure("gone")
        return reply

    transport.carry = carry
    play = placements.PLACEMENTS["spread" if game == "spread" else "central"]

    def singular(players, window, post, rewrite_past):
        if singular.at == 8 and len(players) < singular.players:
            raise nc.SingularGame(0, np.inf)
        return play(players, window, post, rewrite_past)

    monkeypatch.setitem(placements.PLACEMENTS, "spread" if game == "spread" else "central", singular)
    twin = twin_of({name: {8} if name == "agent-1" else set() for name in transport.owners}, X, settings, 1, shares)
    singular.players = sum(share not in ("forecasts",) for share in shares)
    results = []
    for federation in (remote.federation, twin):
        forecasts = []
        for t in range(15):
            singular.at = t
            forecasts.append(federation.predict_one(X[t]))
            federation.learn_one(X[t], Y[t])
        results.append(forecasts)
    assert lost == [8]
    assert results[0] == results[1]
    assert remote.federation.health["fallbacks"] == twin.health["fallbacks"] == 1


# Owners that are killed


def reborn(tmp_path, X, make):
    """Every owner from its state file, with an agent that has learnt nothing yet."""
    return {agent.name: Owner(agent, inputs=seen(X), state=tmp_path / f"{agent.name}.npz") for agent in make()}


@pytest.mark.parametrize("game", ["anchored", "central", "rewriting", "spread"])
@pytest.mark.parametrize("often", [0.0, 0.03])
def test_a_killed_owner_goes_on_from_its_file_between_any_two_turns(game, often, tmp_path, abandoned):
    """Only who is killed inside a spread game sits its step out."""
    X, Y = make_stream(2, steps=22)
    settings, rng = settings_of(game, 2), np.random.default_rng(1)
    killed, killed_in_game, not_asked_since = [], [], set()

    def kill(transport, turns):
        if rng.random() < 0.3:
            fresh = reborn(tmp_path, X, lambda: make_agents(2, MIXED, 0.95))
            kills = [name for name in fresh if rng.random() < 0.5]
            transport.owners |= {name: fresh[name] for name in kills}
            killed.extend(kills)
            not_asked_since.update(kills)
        # Some of a game's turns go to a part of its players: those that are killed meanwhile are missed at their next.
        for name in not_asked_since & turns.keys():
            turn = unpack(turns[name], (Turn,))
            if isinstance(turn.calls[0], Receive):
                transport.away[name].add(turn.step)
                killed_in_game.append(name)
        not_asked_since.difference_update(turns)

    owners = reborn(tmp_path, X, lambda: make_agents(2, MIXED, 0.95))
    transport = Unreliable(owners, 4, often, before=kill)
    remote = RemoteAgents(list(owners), transport, **settings)
    forecasts = run_with_late_labels(remote.federation, X, Y)
    twin = twin_of(transport.away, X, settings, 2, MIXED, 0.95, abandoned)
    np.testing.assert_array_equal(forecasts, run_with_late_labels(twin, X, Y))
    assert len(killed) > 10
    assert (len(killed_in_game) > 10) == (game == "spread")
    assert any(transport.away.values()) == (often > 0 or game == "spread")
    assert not list(tmp_path.glob("*.partial"))


@pytest.mark.parametrize("greeted", [True, False])
@pytest.mark.parametrize("game", ["anchored", "central", "spread"])
def test_an_owner_that_lost_its_memory_begins_anew_and_the_rest_goes_on(game, greeted):
    X, Y = make_stream(1, steps=40)
    settings, lost_at = settings_of(game, 1), {"agent-1": 12, "agent-2": 20}
    remote, transport = make_remote(make_agents(1), X, settings)

    class Reborn(Twin):
        """Begins anew at one step, from where the server thinks it stands."""

        def begin(self, x_dim, target, key, lookback):
            self._begun = x_dim, key, lookback
            return self._agent.begin(x_dim, target, key, lookback)

        def forecast(self, x):
            if self.name in lost_at and self._agent.step == lost_at[self.name] + (not greeted):
                i = twin.members.index(self.name)
                x_dim, key, lookback = self._begun
                self._agent = make_agents(1)[i]
                self._agent.begin(x_dim, twin.loop.state.forecasts[i], key, lookback)
                for s in range(twin.step):
                    self._agent.see(X[s])
                    self._agent.learn(None)
            return super().forecast(x)

    away = {agent.name: set() for agent in make_agents(1)}
    if not greeted:  # that it has to begin anew is noticed when it cannot answer
        away |= {name: {step} for name, step in lost_at.items()}
    twin = nc.paper_federation([Reborn(agent, away[agent.name], X) for agent in make_agents(1)], **settings)
    for t in range(40):
        for name, step in lost_at.items():
            if t == step:
                fresh = make_agents(1)[int(name[-1])]
                transport.owners[name] = Owner(fresh, inputs=seen(X))
                if greeted:
                    hello = remote.greet(transport.owners[name].hello())
                    assert (hello.at, hello.run) == (-1, -1)
        assert remote.federation.predict_one(X[t]) == twin.predict_one(X[t])
        remote.federation.learn_one(X[t], Y[t])
        twin.learn_one(X[t], Y[t])
    assert remote.federation.health["absences"] == {} if greeted else {"agent-1": 1, "agent-2": 1}
    if not greeted:
        assert "before the stream has begun" in remote.federation.health["reasons"]["agent-1"]


def test_an_agent_that_shares_less_than_before_is_asked_for_less():
    X, Y = make_stream(1, steps=12)
    remote, transport = make_remote(make_agents(1), X, settings_of("central", 1))
    remote.federation.replay(X[:6], Y[:6])
    transport.owners["agent-0"] = Owner(make_agents(1, ("forecasts",) * 6)[0])
    remote.federation.replay(X[6:], Y[6:])
    assert remote.federation.health["absences"] == {"agent-0": 1}
    assert all(kind_of(call) != "view" for turns in transport.turns[7:] for call in turns["agent-0"].calls)
    remote.federation.replay(X[:1], Y[:1])
    assert remote.post.players() == {1, 2, 3, 4, 5}


def test_an_owner_that_shares_less_but_remembers_ends_the_step_it_took_part_in(tmp_path):
    X, Y = make_stream(1, steps=12)
    owners = reborn(tmp_path, X, lambda: make_agents(1))
    remote = RemoteAgents(list(owners), LocalTransport(owners), **settings_of("central", 1))
    remote.federation.replay(X[:6], Y[:6])
    owners["agent-0"] = Owner(make_agents(1, ("sums",) * 6)[0], state=tmp_path / "agent-0.npz")
    remote.federation.replay(X[6:9], Y[6:9])
    assert remote.federation.health["absences"] == {"agent-0": 1}
    assert "expected nothing where features are private" in remote.federation.health["reasons"]["agent-0"]
    # Steps 5, 6 and 7; the end of step 8 comes with the next turn.
    assert owners["agent-0"]._agent._took_part[-3:].tolist() == [True, False, True]


# A hub that is killed


class Crash(Exception):
    pass


class Crashing(LocalTransport):
    """The hub dies: before a turn, when some of its agents have it, or when all have."""

    def __init__(self, owners, seed):
        super().__init__(owners)
        self.rng, self.crashes = np.random.default_rng(seed), 0

    def exchange(self, turns, deadline):
        if self.rng.random() < 0.25:
            self.crashes += 1
            for name, turn in turns.items():
                if self.rng.random() < 0.6:
                    self.owners[name].answer(turn)
            raise Crash
        return super().exchange(turns, deadline)


@pytest.mark.parametrize("game", ["no game", "anchored", "central", "rewriting", "spread, every 2"])
@pytest.mark.parametrize("seed", range(2))
def test_a_hub_killed_at_any_moment_goes_on_from_its_last_save(game, seed, tmp_path):
    X, Y = make_stream(2, steps=22)
    settings, path = settings_of(game, 2, run=None), tmp_path / "hub.npz"
    # What a game's window weighed a late label by is in the history, which is not saved.
    late = settings["game"] is None
    transport = Crashing(reborn(tmp_path, X, lambda: make_agents(2, MIXED, 0.95)), seed)
    rng = np.random.default_rng(seed)
    remote, forecasts = RemoteAgents(list(transport.owners), transport, **settings), []
    run = remote.run
    while len(forecasts) < len(X):
        t = len(forecasts)
        try:
            forecast = remote.federation.predict_one(X[t])
            if rng.random() < 0.1:
                raise Crash  # between the forecast and its target
            remote.federation.learn_one(X[t], None if late and t % 5 == 2 else Y[t])
            if late and t % 5 == 4:
                remote.federation.learn_late(t - 2, Y[t - 2])
            if rng.random() < 0.1:
                raise Crash  # before it is saved
            remote.federation.save(path)
            forecasts.append(forecast)
        except Crash:
            if rng.random() < 0.3:  # the owners with it
                transport.owners = reborn(tmp_path, X, lambda: make_agents(2, MIXED, 0.95))
            remote = RemoteAgents(list(transport.owners), transport, **{**settings, "run": None if t else run})
            if t:
                remote.federation.load(path)
            assert remote.run == run
            assert remote.federation.step == t
    whole = nc.paper_federation(make_agents(2, MIXED, 0.95), **{k: v for k, v in settings.items() if k != "run"})
    expected = run_with_late_labels(whole, X, Y) if late else whole.replay(X, Y).forecasts
    np.testing.assert_array_equal(forecasts, expected)
    assert transport.crashes > 2
    assert remote.federation.health["absences"] == {}


def test_a_hub_that_forgot_more_than_a_step_goes_on_when_it_has_caught_up(tmp_path):
    X, Y = make_stream(1, steps=20)
    remote, transport = make_remote(make_agents(1), X, settings_of("central", 1))
    remote.federation.replay(X[:8], Y[:8])
    remote.federation.save(tmp_path / "hub.npz")
    remote.federation.replay(X[8:12], Y[8:12])
    again = RemoteAgents(list(transport.owners), transport, **settings_of("central", 1))
    again.federation.load(tmp_path / "hub.npz")
    again.federation.replay(X[8:], Y[8:])
    assert again.federation.health["absences"] == dict.fromkeys(transport.owners, 3)
    assert "at step 11, not 10" in again.federation.health["reasons"]["agent-0"]


def test_what_was_saved_by_another_hub_is_refused(tmp_path):
    X, Y = make_stream(1, steps=4)
    remote, transport = make_remote(make_agents(1), X, settings_of("central", 1))
    remote.federation.replay(X, Y)
    remote.federation.save(tmp_path / "hub.npz")
    names = list(transport.owners)
    for other in (
        RemoteAgents(names[1:], transport, **settings_of("central", 1)),
        RemoteAgents(names, transport, **settings_of("central, every 2", 1)),
        RemoteAgents(names, transport, **settings_of("central", 1), run=5),
    ):
        with pytest.raises(nc.InvalidInput, match="the state of another federation"):
            other.federation.load(tmp_path / "hub.npz")
    plain = nc.paper_federation(make_agents(1), **settings_of("central", 1))
    with pytest.raises(nc.InvalidInput, match="the state of another federation"):
        plain.load(tmp_path / "hub.npz")


# What is told


def test_what_ends_steps_is_told_in_order_and_stays_short():
    peer, one = Peer("a"), np.ones(1)
    peer.begin(2, one, 5, 3)
    assert [kind_of(call) for call in peer.opening(one, 1)] == ["begin"]
    peer.close(None, one)
    peer.learn_late(1, one)
    for _ in range(3):
        peer.miss()
    peer.learn_late(2, one)
    peer.miss()
    assert [(kind_of(call), *call[:2]) for call in peer.unsaid] == [
        ("close", 0, None), ("learn_late", 0, 0), ("missed", 0, 3), ("learn_late", 1, 2), ("missed", 0, 4),
    ]  # fmt: skip
    assert [kind_of(call) for call in peer.opening(one, 1)][0::5] == ["begin", "missed"]
    for _ in range(5 * MOST_LATE):
        peer.learn_late(1, one)
        peer.miss()
    assert len(peer.unsaid) == 2 + 2 * MOST_LATE
    assert peer.unsaid[-2].number == 1 + 5 * MOST_LATE
    assert pack(Reply(1, (), "", 0.0))
    other = Peer("a")
    other.begin(2, one, 5, 3)
    other.restore(peer.save())
    assert repr(other.unsaid) == repr(peer.unsaid)


def test_hellos_of_strangers_are_refused():
    X, Y = make_stream(1, steps=2)
    remote, transport = make_remote(make_agents(1), X, settings_of("central", 1), LocalTransport)
    assert remote.traffic == {"turns": 0, "down": 0, "up": 0}
    stranger = Owner(PaperAgent(nc.encoders.Linear(), name="stranger"))
    with pytest.raises(MalformedMessage, match=r"hello\.name: got 'stranger', which is no agent of this federation"):
        remote.greet(stranger.hello())
    with pytest.raises(MalformedMessage, match="cut off"):
        remote.greet(b"")
    remote.federation.replay(X, Y)
    hello = remote.greet(transport.owners["agent-0"].hello())
    assert (hello.at, hello.run) == (1, remote.run)  # the last step ends with the next turn
    assert remote.peers[0].introduced is not None


BAD = [
    (lambda: RemoteAgents([], None), "agents: got list []. Pass a list of at least one agent"),
    (lambda: RemoteAgents(["a", "a"], None), "names: got one name twice among a, a. Name each agent differently."),
    (lambda: RemoteAgents(["a b"], None), "names: got str 'a b'. Name each agent with 1 to 64 letters, digits"),
    (lambda: RemoteAgents([3], None), "names: got int 3"),
    (lambda: RemoteAgents(["a"], None, run=-1), "run: got int -1. Pass a whole number ≥ 0."),
    (lambda: RemoteAgents(["a"], None, run=2**63), "run: got 9223372036854775808. Pass a whole number below 2^63."),
    (lambda: RemoteAgents(["a"], None, ridge=0), "ridge: got 0"),
]


@pytest.mark.parametrize(("call", "words"), BAD)
def test_bad_configuration_names_the_argument_and_the_remedy(call, words):
    with pytest.raises(nc.InvalidInput) as caught:
        call()
    assert words in str(caught.value)


def test_it_cannot_be_replayed_by_the_compiled_engine():
    remote = RemoteAgents("a", None)
    with pytest.raises(nc.InvalidInput, match=r"agents: got .*Peer.*\. Replay them online: Federation\.replay"):
        replay(remote.federation, np.zeros((2, 1)), np.zeros((2, 1)))


# Malformed replies; ten thousand of them, with a broker, in test_hostile.py


@pytest.mark.slow
def test_malformed_replies_hurt_nobody_and_leave_no_memory_behind():
    import gc
    import tracemalloc

    rng = np.random.default_rng(9)
    X, Y = make_stream(1, steps=300, x_dim=1)
    game = {"game": nc.LookbackGame(lookback=2, every=5), "start": 0.0, "history": 10}

    def agents():
        return [PaperAgent(nc.encoders.Linear(), name=f"a{i}", ridge=1 + i) for i in range(12)]

    class Hostile(LocalTransport):
        count = 0

        def exchange(self, turns, deadline):
            return {name: self.carry(name, turn) for name, turn in turns.items()}

        def carry(self, name, turn):
            data = self.owners[name].answer(turn)
            if name in ("a0", "a1"):
                return data
            self.count += 1
            changed = bytearray(data)
            for _ in range(int(rng.integers(1, 4))):
                changed[rng.integers(len(data))] = rng.integers(256)
            try:
                return pack(unpack(bytes(changed), (Reply,))._replace(step=2**40))
            except MalformedMessage:
                return [bytes(changed), data[: rng.integers(len(data))], rng.bytes(60)][rng.integers(3)]

    transport = Hostile({agent.name: Owner(agent) for agent in agents()})
    remote = RemoteAgents(list(transport.owners), transport, **game)
    one = remote.federation.replay(X[:240], Y[:240])
    gc.collect()
    tracemalloc.start()
    try:
        two = remote.federation.replay(X[240:260], Y[240:260])
        gc.collect()
        before = tracemalloc.get_traced_memory()[0]
        three = remote.federation.replay(X[260:], Y[260:])
        gc.collect()
        assert tracemalloc.get_traced_memory()[0] - before < 60_000
    finally:
        tracemalloc.stop()
    away = [range(10**6) if i > 1 else () for i in range(12)]
    twin = nc.paper_federation([Twin(agent, gone, X) for agent, gone in zip(agents(), away, strict=True)], **game)
    np.testing.assert_array_equal(np.concatenate([r.forecasts for r in (one, two, three)]), twin.replay(X, Y).forecasts)
    assert transport.count == 10 * len(X)
    assert remote.federation.health["absences"] == {f"a{i}": len(X) for i in range(2, 12)}
