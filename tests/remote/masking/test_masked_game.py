"""Masked spread games over bytes: the numbers of one process, while the hub sees sums only, whoever is lost."""

import numpy as np
import pytest

import nashcast as nc
from nashcast.agents.lookback.paper_agent import PaperAgent
from nashcast.remote.hub.lookback.remote_agents import RemoteAgents
from nashcast.remote.masking.rule import least_present, next_present
from nashcast.remote.owner.owner import Owner
from nashcast.remote.wire.messages import JoinGame
from support.remote.elsewhere import make_stream, seen
from support.remote.masked_teams import Watched, assert_close, make_masked, make_owner, make_team, name_of, twin_of

pytest.importorskip("cryptography")


def settings_of(lookback, y_dim, every=1, **more):
    game = nc.LookbackGame(lookback=lookback, every=every, placement="spread")
    return {"game": game, "y_dim": y_dim, "start": np.zeros(y_dim), "seed": 3, "ridge": 0.7, **more}


def invitations(transport):
    """Every masking that was sent, with its step and to whom."""
    for turns in transport.turns:
        for name, turn in turns.items():
            for call in turn.calls:
                if isinstance(call, JoinGame):
                    yield turn.step, name, call.masking


# The same numbers


@pytest.mark.parametrize("random", [False, True], ids=["certain", "random"])
@pytest.mark.parametrize(("lookback", "y_dim"), [(1, 1), (1, 2), (2, 1), (2, 2)])
@pytest.mark.parametrize("seed", range(3))
def test_a_masked_game_has_the_numbers_of_one_in_this_process(lookback, y_dim, random, seed):
    count = least_present(lookback, y_dim, random) + seed
    X, Y = make_stream(y_dim, steps=15, seed=seed)
    settings = settings_of(lookback, y_dim, every=1 + seed % 2)
    remote, transport = make_masked(make_team(count, random, y_dim), X, settings)
    plain = nc.paper_federation(make_team(count, random, y_dim), **settings)
    assert_close(remote.federation.replay(X, Y), plain.replay(X, Y))
    assert remote.federation.health == plain.health
    due = range(lookback + lookback % settings["game"].every, 15, 1 + seed % 2)
    assert remote.federation.health["games"] == len(due)
    assert all(players == set(transport.owners) for players in transport.ended.values())


def test_a_masked_game_takes_no_more_turns_and_keys_are_told_once():
    count, (X, Y) = 9, make_stream(1, steps=12)
    remote, transport = make_masked(make_team(count), X, settings_of(2, 1))
    for t in range(12):
        before = remote.traffic["turns"]
        remote.federation.predict_one(X[t])
        remote.federation.learn_one(X[t], Y[t])
        assert remote.traffic["turns"] - before == (3 if t >= 2 else 1)
    told = [(step, len(masking.named)) for step, _, masking in invitations(transport)]
    assert told == [(step, count if step == 2 else 0) for step in range(2, 12) for _ in range(count)]


def test_agents_that_share_less_or_have_no_masks_are_mixed_but_do_not_play():
    X, Y = make_stream(1, steps=12)
    shares = {2: "forecasts", 6: "features"}

    def team():
        agents = make_team(10)
        return [make_team(10, share=shares[i])[i] if i in shares else agent for i, agent in enumerate(agents)]

    remote, transport = make_masked(team(), X, settings_of(1, 1))
    transport.owners[name_of(4)] = Owner(team()[4], inputs=seen(X))
    result = remote.federation.replay(X, Y)
    assert transport.ended[5] == set(transport.owners) - {name_of(2), name_of(4)}
    assert_close(result, twin_of(team(), transport, X, settings_of(1, 1)).replay(X, Y))
    assert remote.federation.health["games"] == 11


# Who is lost


LOST = [(17, turn, when) for turn in range(3) for when in ("before", "after")]
LOST += [(10, 0, "before"), (10, 1, "after"), (10, 2, "after")]


@pytest.mark.parametrize(("count", "turn", "when"), LOST)
def test_whoever_is_lost_in_a_game_is_hidden_by_others_or_there_is_no_game(count, turn, when):
    """17 agents can spare the 7 that hide one of them; 10 cannot, and go on without a game."""
    X, Y = make_stream(1, steps=8)
    settings, lost, asked = settings_of(2, 1), name_of(3), []

    def lose(name, told):
        if (name, told.step) != (lost, 4):
            return None
        asked.append(told)
        return when if len(asked) == turn + 1 else None

    remote, transport = make_masked(make_team(count), X, settings, lose=lose)
    result = remote.federation.replay(X, Y)
    everybody = frozenset(transport.owners)
    kept = next_present([everybody], {lost}, 4, least_present(2, 1, True))
    assert (kept is None) == (count == 10)
    assert transport.ended.get(4, set()) == (kept or set())
    assert transport.ended[3] == transport.ended[5] == everybody
    assert_close(result, twin_of(make_team(count), transport, X, settings).replay(X, Y))
    assert remote.federation.health["absences"] == {lost: 1}
    if kept is None:
        assert remote.federation.health["fell back"] == {"masks: 9 of 10 agents can play on; it takes more": 1}
    assert remote.federation.health["games"] == 6 - (kept is None)
    assert len(asked) == turn + 1


class Copes(nc.encoders.BuiltEncoder):
    """Takes a missing input for zero."""

    features, accepts_missing = 2, True

    def __init__(self, slope):
        self._slope = slope

    def build(self, x_dim, y_dim):
        return self

    def encode(self, context):
        return np.sin(self._slope * np.nan_to_num(context.x[None, :2]))


def test_who_may_be_missing_is_found_out_before_the_game():
    """One that is away for long, or sits out of itself, costs a turn each step and one game in all."""
    X, Y = make_stream(1, steps=30)
    X[12:15, 0] = np.nan
    away, sits_out = name_of(1), name_of(5)

    def team():
        agents = [PaperAgent(Copes(1 + i), name=name_of(i), share="sums") for i in range(5)]
        return [*agents, PaperAgent(nc.encoders.Linear(), name=sits_out, share="sums")]

    def lose(name, told):
        return "before" if name == away and 5 <= told.step < 9 else None

    remote, transport = make_masked(team(), X, settings_of(1, 1), lose=lose)
    turns, forecasts = [], []
    for x, y in zip(X, Y, strict=True):
        before = remote.traffic["turns"]
        forecasts.append(remote.federation.predict_one(x))
        remote.federation.learn_one(x, y)
        turns.append(remote.traffic["turns"] - before)
    everybody = set(transport.owners)
    expected = {
        t: everybody - ({away} if t in (6, 7, 8) else {sits_out} if t in (12, 13, 14) else set()) for t in range(1, 30)
    }
    assert transport.ended == {t: players for t, players in expected.items() if t != 5}
    assert {t for t in range(1, 30) if turns[t] == 3} == {6, 7, 8, 9, 12, 13, 14, 15}
    assert remote.federation.health["fell back"] == {"masks: 5 of 6 agents can play on; it takes more": 1}
    transport.away[sits_out] = set()  # its twin does so of itself
    np.testing.assert_allclose(
        forecasts, twin_of(team(), transport, X, settings_of(1, 1)).replay(X, Y).forecasts[:, 0], rtol=1e-12
    )


def test_a_step_in_which_few_were_weighed_is_in_no_game():
    """The hub knows the weights: among agents without any nobody is hidden."""
    X, Y = make_stream(1, steps=8)

    def lose(name, told):
        return "before" if told.step == 4 and name in map(name_of, range(4)) else None

    remote, transport = make_masked(make_team(6), X, settings_of(1, 1), lose=lose)
    result = remote.federation.replay(X, Y)
    assert transport.ended.keys() == {1, 2, 3, 6, 7}
    assert remote.federation.health["fell back"] == {
        "masks: 2 of 6 agents can play on; it takes more": 1,
        "masks: only 2 agents have a weight in some step of the window; it takes 3": 1,
    }
    assert_close(result, twin_of(make_team(6), transport, X, settings_of(1, 1)).replay(X, Y))


@pytest.mark.parametrize("seed", range(2))
def test_games_with_those_who_are_there_whatever_gets_lost(seed):
    X, Y = make_stream(1, steps=40, seed=seed)
    settings, rng = settings_of(1, 1, every=1 + seed % 2), np.random.default_rng(seed)

    def lose(name, told):
        return str(rng.choice(["before", "after"])) if rng.random() < 0.03 else None

    remote, transport = make_masked(make_team(9), X, settings, lose=lose)
    result = remote.federation.replay(X, Y)
    assert_close(result, twin_of(make_team(9), transport, X, settings).replay(X, Y))
    assert remote.federation.health["absences"] == {name: len(steps) for name, steps in transport.away.items() if steps}
    sizes = [len(players) for players in transport.ended.values()]
    assert {9, 6} <= set(sizes)  # everybody, and those who were left of them with those who hide the lost one
    health = remote.federation.health
    assert health["games"] == sum(size > 0 for size in sizes)
    assert health["games"] + health["fallbacks"] == len(range(1 + seed % 2, 40, 1 + seed % 2))
    assert sum(health["fell back"].values()) == health["fallbacks"] > 0


# A step that is done again


def test_other_inputs_in_the_same_step_are_forecast_with_the_same_game():
    X, Y = make_stream(1, steps=7)
    plain = nc.paper_federation(make_team(6), **settings_of(1, 1))
    curious, transport = make_masked(make_team(6), X, settings_of(1, 1))
    for x, y in zip(X, Y, strict=True):
        for other in (x + 1, x - 1, x + 2, x - 2, x):
            found, expected = curious.federation.predict_one(other), plain.predict_one(other)
            assert abs(found - expected) <= 1e-12 * max(1, abs(expected))
        curious.federation.learn_one(x, y)
        plain.learn_one(x, y)
    assert curious.federation.health == plain.health
    assert {masking.attempt for *_, masking in invitations(transport)} == {0}


def test_a_window_that_changes_within_a_step_is_not_played_twice():
    """Sums of the same terms under other weights would tell more of each agent than its rule allows."""
    X, Y = make_stream(1, steps=14)
    remote, _ = make_masked(make_team(6), X, settings_of(1, 1))
    for t in range(14):
        remote.federation.predict_one(X[t])
        if t == 9:
            remote.federation.learn_late(8, Y[8])
        remote.federation.learn_one(X[t], None if t == 8 else Y[t])
    why = "masks: a late label has changed the window since this step's first game"
    assert remote.federation.health["fell back"] == {why: 1}
    assert remote.federation.health["games"] == 12


def test_labels_that_are_missing_or_late_are_learnt_alike():
    X, Y = make_stream(1, steps=30)
    remote, _ = make_masked(make_team(6), X, settings_of(1, 1))
    plain = nc.paper_federation(make_team(6), **settings_of(1, 1))
    for t in range(30):
        found, expected = remote.federation.predict_one(X[t]), plain.predict_one(X[t])
        assert abs(found - expected) <= 1e-12 * max(1, abs(expected))
        for federation in (remote.federation, plain):
            federation.learn_one(X[t], None if t % 5 == 2 else Y[t])
            if t % 5 == 4:
                federation.learn_late(t - 2, Y[t - 2])
    assert remote.federation.health == plain.health
    assert remote.federation.health["games"] == 29


# Agents that are started anew


def reborn(tmp_path, X, count, only=None):
    """Owners from their state files, with agents that have learnt nothing yet."""
    return {
        agent.name: make_owner(agent, count, X, state=tmp_path / f"{agent.name}.npz")
        for agent in make_team(count, forgetting=0.95)
        if only in (None, agent.name)
    }


@pytest.mark.parametrize("greeted", [True, False])
@pytest.mark.parametrize("turn", range(3))
def test_an_owner_killed_in_a_game_keeps_its_forecast_and_plays_the_next(turn, greeted, tmp_path):
    """Turns 0 and 2: between two steps. Turn 1: within a game, which it cannot end with new masks."""
    X, Y = make_stream(1, steps=12)
    count, killed, asked = 6, name_of(2), []

    def kill(transport):
        asked.append(remote.federation.step)
        if remote.federation.step == 6 and asked.count(6) == turn + 1 and turn < 2:
            transport.owners[killed] = reborn(tmp_path, X, count, killed)[killed]
        if turn == 2 and remote.federation.step == 7 and asked.count(7) == 1:  # after the last turn of step 6, untold
            transport.owners[killed] = reborn(tmp_path, X, count, killed)[killed]

    transport = Watched(reborn(tmp_path, X, count), before=None if greeted and turn in (0, 2) else kill)
    remote = RemoteAgents(list(transport.owners), transport, masked=True, **settings_of(1, 1))
    forecasts = []
    for t in range(12):
        if greeted and ((turn == 0 and t == 6) or (turn == 2 and t == 7)):
            transport.owners[killed] = reborn(tmp_path, X, count, killed)[killed]
            remote.greet(transport.owners[killed].hello())
        forecasts.append(remote.federation.predict_one(X[t]))
        remote.federation.learn_one(X[t], Y[t])
    twin = twin_of(make_team(count, forgetting=0.95), transport, X, settings_of(1, 1))
    np.testing.assert_allclose(forecasts, twin.replay(X, Y).forecasts[:, 0], rtol=1e-12)
    assert remote.federation.health["absences"] == {}
    missed = greeted is False or turn == 1
    assert remote.federation.health["games"] == 11 - missed
    assert transport.ended[8] == set(transport.owners)
    if missed:
        ((why, times),) = remote.federation.health["fell back"].items()
        assert times == 1
        assert why.startswith(f"masks: 5 of 6 agents can play on; it takes more ({killed}: '{killed}': ")
        assert ("no verified key of" in why) == (turn in (0, 2))
        assert ("begun before the agent was started" in why) == (turn == 1)


@pytest.mark.parametrize("greeted", [True, False])
def test_an_owner_that_lost_its_memory_begins_anew_with_a_new_key(greeted):
    X, Y = make_stream(1, steps=14)
    remote, transport = make_masked(make_team(6), X, settings_of(1, 1))
    fresh = name_of(2)
    before = remote.federation.replay(X[:6], Y[:6])
    transport.owners[fresh] = make_owner(make_team(6)[2], 6, X)
    if greeted:
        remote.greet(transport.owners[fresh].hello())
    after = remote.federation.replay(X[6:], Y[6:])
    assert np.isfinite(np.concatenate([before.forecasts, after.forecasts])).all()
    # What it may have sent in the step it came back in it does not know: it plays from the next on.
    assert [t for t in range(1, 14) if fresh not in transport.ended.get(t, ())] == ([6] if greeted else [6, 7])
    assert remote.federation.health["absences"] == ({} if greeted else {fresh: 1})
    assert transport.ended[8] == set(transport.owners)


def test_owners_killed_between_any_two_turns_go_on(tmp_path):
    X, Y = make_stream(1, steps=25)
    rng, kills = np.random.default_rng(2), []

    def kill(transport):
        if rng.random() < 0.25:
            name = name_of(rng.integers(9))
            transport.owners[name] = reborn(tmp_path, X, 9, name)[name]
            kills.append(name)
            if rng.random() < 0.5:
                remote.greet(transport.owners[name].hello())

    transport = Watched(reborn(tmp_path, X, 9), before=kill)
    remote = RemoteAgents(list(transport.owners), transport, masked=True, **settings_of(1, 1))
    result = remote.federation.replay(X, Y)
    assert_close(result, twin_of(make_team(9, forgetting=0.95), transport, X, settings_of(1, 1)).replay(X, Y))
    assert remote.federation.health["absences"] == {}
    assert len(kills) > 8
    assert {6, 9} <= {len(players) for players in transport.ended.values()}
    health = remote.federation.health
    assert 24 - len(kills) <= health["games"] < 24 == health["games"] + health["fallbacks"]


# A hub that is killed


class Crash(Exception):
    pass


@pytest.mark.parametrize("seed", range(2))
def test_a_hub_killed_at_any_moment_goes_on_and_is_answered_alike(seed, tmp_path):
    """What was sent in a step is sent again as it was, so the game is the same."""
    X, Y = make_stream(2, steps=16)
    settings, rng, crashes = settings_of(1, 2), np.random.default_rng(seed), []

    class Crashing(Watched):
        def exchange(self, turns, deadline):
            if rng.random() < 0.25:
                crashes.append(len(forecasts))
                for name, turn in turns.items():
                    if rng.random() < 0.6:
                        self.owners[name].answer(turn)
                raise Crash
            return super().exchange(turns, deadline)

    owners = {agent.name: make_owner(agent, 5, X) for agent in make_team(5, y_dim=2)}
    transport, path, forecasts = Crashing(owners), tmp_path / "hub.npz", []
    remote = RemoteAgents(list(owners), transport, masked=True, **settings)
    run = remote.run
    while len(forecasts) < 16:
        t = len(forecasts)
        try:
            forecast = remote.federation.predict_one(X[t])
            remote.federation.learn_one(X[t], Y[t])
            remote.federation.save(path)
            forecasts.append(forecast)
        except Crash:
            remote = RemoteAgents(list(owners), transport, masked=True, **{**settings, "run": None if t else run})
            if t:
                remote.federation.load(path)
    whole = nc.paper_federation(make_team(5, y_dim=2), **settings).replay(X, Y)
    np.testing.assert_allclose(forecasts, whole.forecasts, rtol=1e-12)
    assert len(crashes) > 8
    assert {masking.attempt for *_, masking in invitations(transport)} == {0}


def test_a_hub_killed_in_a_second_attempt_has_no_game_in_that_step(tmp_path):
    X, Y = make_stream(1, steps=8)
    lost, asked, settings = name_of(3), [], settings_of(2, 1)

    def lose(name, told):
        asked.append(told.step)
        return "before" if (name, told.step) == (lost, 4) and asked.count(4) > 17 else None

    def before(transport):
        if max((masking.attempt for *_, masking in invitations(transport)), default=0) == 1:
            transport.before = None
            raise Crash

    remote, transport = make_masked(make_team(17), X, settings, lose=lose, before=before)
    forecasts, crashes = [], 0
    while len(forecasts) < 8:
        t = len(forecasts)
        try:
            forecast = remote.federation.predict_one(X[t])
            remote.federation.learn_one(X[t], Y[t])
            remote.federation.save(tmp_path / "hub.npz")
            forecasts.append(forecast)
        except Crash:
            crashes += 1
            remote = RemoteAgents(list(transport.owners), transport, masked=True, **settings)
            remote.federation.load(tmp_path / "hub.npz")
    assert crashes == 1
    assert transport.ended.keys() == {2, 3, 5, 6, 7}
    twin = twin_of(make_team(17), transport, X, settings)
    np.testing.assert_allclose(forecasts, twin.replay(X, Y).forecasts[:, 0], rtol=1e-12)
    ((why, times),) = remote.federation.health["fell back"].items()
    assert times == 1
    assert why.startswith("masks: nobody is there who could play (agent-0")


# A configuration that cannot be


@pytest.mark.parametrize(("settings", "words"), [
    ({"game": nc.LookbackGame()}, "masked: got True with a central game. Pass game=LookbackGame(placement='spread')"),
    ({"game": None}, "masked: got True without a game. Pass game=LookbackGame(placement='spread')"),
    ({"game": nc.LookbackGame(placement="spread")},
     "masked: got True with 5 agents, a look-back of 3 and y_dim 1. It takes 6"),
    ({"game": nc.LookbackGame(placement="spread"), "y_dim": 3},
     "and y_dim 3. It takes 8 agents: have more of them, or a"),
])  # fmt: skip
def test_a_game_that_cannot_be_masked_is_refused(settings, words):
    names = [name_of(i) for i in range(5)]
    with pytest.raises(nc.InvalidInput) as caught:
        RemoteAgents(names, None, masked=True, **settings)
    assert words in str(caught.value)
    assert RemoteAgents(names, None, masked=True, game=nc.LookbackGame(2, placement="spread"))


def test_too_few_agents_are_told_in_health_and_nobody_is_asked_for_terms():
    X, Y = make_stream(1, steps=8)
    remote, transport = make_masked(make_team(6), X, settings_of(2, 1))  # random features take 8
    plain = nc.paper_federation(make_team(6), **settings_of(2, 1) | {"game": None})
    assert_close(remote.federation.replay(X, Y), plain.replay(X, Y))
    assert remote.federation.health["fell back"] == {"masks: 6 agents can play; it takes 7": 6}
    assert list(invitations(transport)) == []
    none = make_team(6, share="forecasts")
    remote, transport = make_masked(none, X, settings_of(2, 1))
    remote.federation.replay(X, Y)
    assert remote.federation.health["fell back"] == {"masks: nobody is there who could play": 6}
