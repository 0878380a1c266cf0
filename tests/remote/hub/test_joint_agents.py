"""The joint game with agents elsewhere: the same numbers as in one process, in one round a step."""

from pathlib import Path

import numpy as np
import pytest

import nashcast as nc
from nashcast.remote.hub.joint.joint_federation import JointHub
from nashcast.remote.hub.row_journal import RowJournal
from nashcast.remote.wire.format import pack, unpack
from nashcast.remote.wire.joint.joint_messages import (
    ASKS,
    EVENTS,
    FORECAST,
    NO_TERMS,
    NOTHING,
    RECALL,
    Label,
    LogPart,
    Own,
    Said,
    Sums,
    Told,
    Traits,
    read_event,
)
from support.remote.joint_teams import make_joint, make_owner, make_stream, make_team, make_twin, run


def assert_same(found, expected, most=1e-12):
    scale = np.maximum(1.0, np.abs(expected))
    assert np.abs((found - expected) / scale).max() <= most


@pytest.mark.parametrize(("horizon", "y_dim"), [(1, 1), (1, 2), (3, 1), (3, 2)])
def test_agents_elsewhere_forecast_as_in_one_process(horizon, y_dim):
    X, Y = make_stream(250, y_dim, missing=0.04)
    Y[120:] += 60.0  # in doubt, then confirmed
    Y[180] += 1e5  # suspect
    late = {t: {t - 5: np.nan_to_num(Y[t - 6]) + 0.1} for t in range(20, 240) if np.isnan(Y[t - 5]).any()}
    settings = {"horizon": horizon, "y_dim": y_dim, "start": np.zeros(y_dim)}
    hub, _ = make_joint(make_team(), **settings)
    found = run(hub.federation, X, Y, late)
    whole = nc.Federation(make_team(), **settings)
    expected = run(whole, X, Y, late)
    assert_same(found, expected)
    assert hub.federation.health["absences"] == {}
    assert hub.federation.health["suspect labels"] == whole.health["suspect labels"] > 0


def test_a_step_is_one_round():
    X, Y = make_stream(100)
    hub, line = make_joint(make_team(), start=0.0)
    run(hub.federation, X, Y)
    assert len(line.asked) == 1 + 100  # the opening, and one question a step


@pytest.mark.parametrize("horizon", [1, 3])
def test_lost_messages_and_answers_are_absences(horizon):
    """An agent that heard nothing reads the log; the others' numbers are those of a federation in which it sat out."""
    rng, steps = np.random.default_rng(5), 200
    lost = {(f"agent-{i:02}", t + 1): way for i in range(3) for t in range(70, 120)
            for way in ["before", "after"] if rng.random() < 0.1}  # fmt: skip
    X, Y = make_stream(steps)
    hub, line = make_joint(make_team(), lose=lambda name, q: lost.get((name, q)), start=0.0, horizon=horizon)
    found = run(hub.federation, X, Y)
    away = [{q - 1 for q in line.lost[f"agent-{i:02}"]} for i in range(4)]
    assert sum(map(len, away)) > 20
    assert hub.federation.health["absences"] == {f"agent-{i:02}": len(away[i]) for i in range(3)}
    twin = make_twin(make_team(), away, start=0.0, horizon=horizon)
    assert_same(found, run(twin, X, Y))


def test_a_saved_hub_and_restarted_owners_go_on(tmp_path):
    X, Y = make_stream(200, missing=0.05)
    late = {t: {t - 5: Y[t - 6] + 0.1} for t in range(20, 190) if np.isnan(Y[t - 5]).any() and not np.isnan(Y[t - 6])}
    whole, _ = make_joint(make_team(), start=0.0, horizon=2)
    expected = run(whole.federation, X, Y, late)
    agents = make_team()
    hub, line = make_joint(agents, start=0.0, horizon=2)
    line.owners = {a.name: make_owner(a, line, state=tmp_path / a.name) for a in agents}
    found = [run(hub.federation, X[:90], Y[:90], {t: s for t, s in late.items() if t < 90})]
    hub.federation.save(tmp_path / "hub")
    again, other = make_joint(make_team(), start=0.0, horizon=2)
    other.kept = line.kept
    other.owners = {a.name: make_owner(a, other, state=tmp_path / a.name) for a in make_team()}
    again.federation.load(tmp_path / "hub")
    later = {t - 90: own for t, own in late.items() if t >= 90}
    found.append(run(again.federation, X[90:], Y[90:], later))
    np.testing.assert_array_equal(np.concatenate(found), expected)
    assert again.federation.health["absences"] == {}


def test_after_an_event_that_was_told_otherwise_nothing_is_taken_until_the_log_fits():
    """Else an agent would learn from other sums than all others, and nothing would show it."""
    X, Y = make_stream(40)
    hub, line = make_joint(make_team(3), start=0.0)
    run(hub.federation, X[:20], Y[:20])
    published = []
    tell = line.tell

    def twice(data, now=False):
        tell(data)
        told = unpack(data, (Told,))
        sums = read_event(told.events[-1])
        if not published and isinstance(sums, Sums):
            published.append(data)
            other = pack(sums._replace(said=2.0 * sums.said))
            line.owners["agent-00"].hear(pack(told._replace(events=(*told.events[:-1], other))))

    line.tell = twice
    run(hub.federation, X[20:25], Y[20:25])
    assert hub.federation.health["absences"] == {"agent-00": 4}
    assert "is not what was told before" in hub.federation.health["reasons"]["agent-00"]
    line.owners["agent-00"].hear(published[0])
    found = run(hub.federation, X[25:], Y[25:])
    assert hub.federation.health["absences"] == {"agent-00": 4}
    twin = make_twin(make_team(3), [set(range(21, 25)), set(), set()], start=0.0)
    assert_same(found, run(twin, X, Y)[25:])


@pytest.mark.parametrize("answered", [True, False])
def test_a_hub_killed_between_forecast_and_label_plays_the_row_again(tmp_path, answered):
    """From its journal: an agent that answers only now, or no longer, changes nothing of what was published."""
    X, Y = make_stream(30)
    away = {("agent-00", 21)}  # the question of step 20
    lose = {True: lambda name, q: "after" if (name, q) in away else None, False: lambda name, q: None}[answered]
    hub, line = make_joint(make_team(3), lose=lose, start=0.0)
    line.journal = RowJournal(tmp_path / "row")
    run(hub.federation, X[:20], Y[:20])
    hub.federation.save(tmp_path / "hub")
    if answered:
        said = hub.federation.predict_one(X[20])
    else:  # killed while it waits for answers
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(hub.agents._answers, "collect", _killed)
            patch.setattr(type(line.journal), "keep", _keeps_questions(line.journal))
            with pytest.raises(KeyboardInterrupt):
                hub.federation.predict_one(X[20])
    line.lose = lambda name, q: None
    again = JointHub(list(line.owners), line, start=0.0)
    again.federation.load(tmp_path / "hub")
    if answered:
        assert again.federation.predict_one(X[20]) == said
    found = run(again.federation, X[20:], Y[20:])
    assert again.federation.health["absences"] == ({"agent-00": 1} if answered else {})
    twin = make_twin(make_team(3), [{20} if answered else set(), set(), set()], start=0.0)
    assert_same(found, run(twin, X, Y)[20:])


def _killed(*_):
    raise KeyboardInterrupt


def _keeps_questions(journal):
    keep = journal.keep
    return lambda self, row: None if row.names else keep(row)


def test_an_owner_killed_without_memory_reads_the_log_and_comes_back():
    X, Y = make_stream(120)
    hub, line = make_joint(make_team(), start=0.0)
    run(hub.federation, X[:60], Y[:60])
    line.owners["agent-01"] = make_owner(make_team()[1], line)
    run(hub.federation, X[60:], Y[60:])
    assert hub.federation.health["absences"] == {}
    whole = run(nc.Federation(make_team(), start=0.0), X, Y)
    hub, line = make_joint(make_team(), start=0.0)
    found = [run(hub.federation, X[:60], Y[:60])]
    line.owners["agent-01"] = make_owner(make_team()[1], line)
    found.append(run(hub.federation, X[60:], Y[60:]))
    assert_same(np.concatenate(found), whole)  # it learns from the log what it had learnt before


def test_a_hub_that_has_gone_back_begins_another_run(tmp_path):
    X, Y = make_stream(200)
    hub, line = make_joint(make_team(), start=0.0)
    run(hub.federation, X[:60], Y[:60])
    hub.federation.save(tmp_path / "hub")
    run(hub.federation, X[60:80], Y[60:80])
    back = JointHub(list(line.owners), line, start=0.0)
    back.federation.load(tmp_path / "hub")
    before = back.run
    run(back.federation, X[60:61], Y[60:61])
    assert set(back.federation.health["absences"].values()) == {1}
    assert "the log goes on to event" in back.federation.health["reasons"]["agent-00"]
    back.renew()
    assert back.run != before
    assert back.federation.step == 61
    found = run(back.federation, X[61:], Y[61:])
    assert set(back.federation.health["absences"].values()) == {1}
    whole = nc.Federation(make_team(), start=0.0)
    run(whole, X[:61], Y[:61])
    learnt = nc.Federation(make_team(), start=0.0)
    run(learnt, X[:61], Y[:61])
    whole.begin_anew(Y[60])
    assert_same(found, run(whole, X[61:], Y[61:]))
    assert np.abs(found - run(learnt, X[61:], Y[61:])).max() > 0.1  # which has forgotten nothing
    line.owners["agent-01"] = make_owner(make_team()[1], line)  # without memory: the log of the new run is enough
    run(back.federation, X[:5], Y[:5])
    assert set(back.federation.health["absences"].values()) == {1}


def test_before_the_stream_begins_there_is_no_run_to_renew():
    hub, _ = make_joint(make_team())
    with pytest.raises(nc.NashcastError, match="the stream has not begun"):
        hub.renew()


@pytest.mark.parametrize("horizon", [1, 2])
def test_an_agent_that_plays_no_part_in_the_game_leaves_its_terms_out(horizon):
    """As if all of them were 0."""

    class Outsider:
        """Forecasts the last target. leave_out: its terms; else they are 0, in the shapes of the agent before."""

        def __init__(self, line, leave_out):
            self.line, self.leave_out, self.level = line, leave_out, 0.0

        def hear(self, data):
            told = unpack(data, (Told,))
            for event in map(read_event, told.events):
                if isinstance(event, Label) and event.target is not None:
                    self.level = event.target[0]
            own, terms, number = None, NO_TERMS, told.number + len(told.events)
            if told.ask == FORECAST:
                own = Own(np.full((1, horizon, 1), self.level), np.zeros((1, 1)), None)
            if told.ask in (FORECAST, RECALL) and not self.leave_out:
                _, before = self.line.answers[-1]
                terms = tuple(0.0 * term for term in unpack(before, (Said,)).terms)
            said = Said(told.run, "outsider", number, Traits(1, False), own, terms, "", 0.0)
            return pack(said) if told.ask != NOTHING else None

    def forecasts(leave_out):
        hub, line = make_joint(make_team(3), start=0.0, horizon=horizon)
        line.owners["outsider"] = Outsider(line, leave_out)
        hub = JointHub(list(line.owners), line, start=0.0, horizon=horizon)
        X, Y = make_stream(60)
        Y[27], late = np.nan, {30: {27: Y[27].copy()}}
        found = run(hub.federation, X, Y, late)
        assert hub.federation.health["absences"] == {}
        assert hub.federation.weights["outsider"] > 0.0
        return found

    assert forecasts(leave_out=True).tobytes() == forecasts(leave_out=False).tobytes()


def test_a_second_input_in_a_step_is_not_published():
    X, Y = make_stream(40)
    hub, line = make_joint(make_team(), start=0.0)
    run(hub.federation, X[:30], Y[:30])
    first = hub.federation.predict_one(X[30])
    asked = len(line.asked)
    hub.federation.predict_one(X[31])
    assert len(line.asked) == asked
    assert len(hub.federation.present.absent) == 4
    assert hub.federation.predict_one(X[30]) == first
    hub.federation.learn_one(X[30], Y[30, 0])
    assert hub.federation.health["absences"] == {}
    run(hub.federation, X[31:], Y[31:])
    assert hub.federation.health["absences"] == {}


def test_the_page_names_every_message_event_and_field():
    page = (Path(__file__).parents[3] / "docs" / "reference" / "remote-protocol.md").read_text()
    rows = {cells[1].strip(): line for line in page.splitlines() if len(cells := line.split("|")) > 2}
    for kind in (Told, Said, LogPart, *EVENTS):
        assert all(f"`{field}`" in rows[f"`{kind.__name__}`"] for field in kind._fields)
    assert all(f"`{field}`" in rows["`Said`"] for field in (*Traits._fields, *Own._fields))
    assert all(f'"{ask}"' in rows["`Told`"] for ask in ASKS)
