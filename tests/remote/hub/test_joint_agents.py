"""The joint game with agents elsewhere: the same numbers as in one process, in one round a step."""

from pathlib import Path

import numpy as np
import pytest

import nashcast as nc
from nashcast.remote.hub.joint.joint_federation import JointHub
from nashcast.remote.wire.joint.joint_messages import ASKS, EVENTS, LogPart, Own, Said, Told, Traits
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
