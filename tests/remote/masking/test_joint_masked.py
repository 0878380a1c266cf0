"""The joint game under masks: hub, broker and other agents see sums, and the numbers are those of one process."""

import numpy as np
import pytest

import nashcast as nc
from nashcast.errors import InvalidInput
from nashcast.remote.owner.joint_owner import JointOwner
from nashcast.remote.wire.format import unpack
from nashcast.remote.wire.joint.joint_messages import Said
from support.remote.joint_teams import make_joint, make_owner, make_stream, make_team, run
from support.remote.masked_teams import settings_for


def masks(count):
    return lambda name: settings_for(name, count)


def masked_team(count=4, **settings):
    """A federation whose agents share sums only."""
    return make_joint(make_team(count, share="joint"), masks=masks(count), start=0.0, **settings)


@pytest.mark.parametrize("horizon", [1, 2])
def test_masked_joint_experts_are_those_of_one_process(horizon):
    """The experts of the joint game, before they are mixed: all that agents under masks add to a federation."""
    X, Y = make_stream(150)
    hub, _ = masked_team(horizon=horizon)
    whole = nc.Federation(make_team(), start=0.0, horizon=horizon)
    for x, y in zip(X, Y[:, 0], strict=True):
        hub.federation.predict_one(x)
        whole.predict_one(x)
        for federation in (hub.federation, whole):  # single agents are judged in one process, groups under masks
            federation.loop._server._judge.judge = lambda *arguments: None
        found, expected = (f.loop._now[0].experts[..., -5:] for f in (hub.federation, whole))
        assert np.abs(found - expected).max() <= 1e-12 * max(1.0, np.abs(expected).max())
        hub.federation.learn_one(x, y)
        whole.learn_one(x, y)
    assert hub.federation.health["absences"] == {}


def test_answers_hold_nothing_but_masked_bytes():
    X, Y = make_stream(60)
    hub, line = masked_team()
    run(hub.federation, X, Y)
    answers = [unpack(data, (Said,)) for _, data in line.answers[4:]]
    assert all(isinstance(said.terms, bytes) and said.own is None for said in answers)
    assert all(said.traits.experts == 0 for said in answers)
    sizes = {len(said.terms) for said in answers}
    assert len(sizes) == 2  # with and without what blocks stop saying; whatever the number of features


def test_a_lost_answer_costs_one_step():
    X, Y = make_stream(80)
    lost = {("agent-01", 41): "after", ("agent-02", 61): "before"}
    agents = make_team(4, share="joint")
    hub, _ = make_joint(agents, lose=lambda name, q: lost.get((name, q)), masks=masks(4), start=0.0)
    run(hub.federation, X, Y)
    # Nobody is in the sums of that step; the one that was lost is not in the next one's either, as it is just back.
    assert hub.federation.health["absences"] == {"agent-00": 2, "agent-01": 3, "agent-02": 3, "agent-03": 2}


def test_with_two_agents_there_is_no_masked_sum():
    X, Y = make_stream(20)
    hub, _ = masked_team(2)
    run(hub.federation, X, Y)
    assert hub.federation.health["absences"] == {"agent-00": 20, "agent-01": 20}


def test_masked_and_open_agents_play_in_one_game():
    X, Y = make_stream(120)
    agents = [*make_team(5, share="joint")[:4], make_team(5)[4]]
    hub, _ = make_joint(agents, masks=masks(5), start=0.0)
    found = run(hub.federation, X, Y)
    assert hub.federation.health["absences"] == {}
    assert np.abs(found[60:, 0] - Y[60:, 0]).mean() < 0.5 * np.abs(np.diff(Y[59:, 0])).mean()


def test_sharing_sums_only_takes_masks():
    with pytest.raises(InvalidInput, match="without masks"):
        JointOwner(make_team(share="joint")[0])


def test_an_owner_that_starts_again_has_another_key_and_sits_out_what_it_may_have_sent():
    X, Y = make_stream(60)
    agents = make_team(4, share="joint")
    hub, line = make_joint(agents, masks=masks(4), start=0.0)
    run(hub.federation, X[:30], Y[:30])
    line.owners["agent-01"] = make_owner(make_team(4, share="joint")[1], line, masks(4))
    hub.greet(line.owners["agent-01"].hello())
    run(hub.federation, X[30:], Y[30:])
    assert all(count <= 2 for count in hub.federation.health["absences"].values())


def test_numbers_of_extreme_units_come_through_the_masks():
    """Terms are in usual changes, so the stream's unit does not matter to the fixed point."""
    X, Y = make_stream(100)
    forecasts = []
    for unit in (1e-70, 1.0, 1e70):
        hub, _ = masked_team()
        forecasts.append(run(hub.federation, X, unit * Y) / unit)
        assert hub.federation.health["absences"] == {}
    np.testing.assert_allclose(forecasts[0], forecasts[1], rtol=1e-9)
    np.testing.assert_allclose(forecasts[2], forecasts[1], rtol=1e-9)
