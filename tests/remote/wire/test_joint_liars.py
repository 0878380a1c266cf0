"""An agent of the joint game whose numbers no honest agent has: it sits out, and the others go on as if it did."""

import numpy as np
import pytest

from nashcast.remote.hub.joint.joint_federation import JointHub
from nashcast.remote.wire.format import pack, unpack
from nashcast.remote.wire.joint.joint_messages import Said
from support.remote.joint_teams import LocalLine, make_owner, make_stream, make_team, make_twin, run
from support.remote.masked_teams import settings_for

LIAR, FIRST = "agent-01", 25


class LyingLine(LocalLine):
    """change: what becomes of the liar's answers, from some question on."""

    def __init__(self, change):
        super().__init__({})
        self.change = change

    def ask(self, data, names, read):
        def told(name, answer):
            said = unpack(answer, (Said,))
            lies = name == LIAR and len(self.asked) > FIRST and said.terms is not None
            return read(name, pack(self.change(said)) if lies else answer)

        return super().ask(data, names, told)


def lied_to(change, masks=None):
    line = LyingLine(change)
    for agent in make_team(4, "forecasts" if masks is None else "joint"):
        line.owners[agent.name] = make_owner(agent, line, masks)
    hub = JointHub(list(line.owners), line, start=0.0)
    for owner in line.owners.values():
        hub.greet(owner.hello())
    return hub


def with_leverage(size):
    return lambda said: said._replace(terms=(said.terms[0], np.full_like(said.terms[1], size)))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (with_leverage(1.5), "said.terms[1]: got 1.5, expected 0 to 1"),
        (with_leverage(-0.1), "said.terms[1]: got -0.1, expected 0 to 1"),
        (lambda said: said._replace(terms=(said.terms[0] + 1e99, said.terms[1])), "said.terms[0]: got 1e+99"),
        (lambda said: said._replace(own=said.own._replace(experts=said.own.experts * np.inf)), "said.own.experts"),
    ],
)
def test_numbers_that_no_honest_agent_has_bench_their_sender_and_nothing_else(change, words):
    X, Y = make_stream(60)
    hub = lied_to(change)
    found = run(hub.federation, X, Y)
    health = hub.federation.health
    assert set(health["absences"]) == {LIAR}
    assert words in health["reasons"][LIAR]
    steps = range(60 - health["absences"][LIAR], 60)
    twin = make_twin(make_team(4), [steps if i == 1 else () for i in range(4)], start=0.0)
    np.testing.assert_allclose(found, run(twin, X, Y), rtol=1e-9, atol=1e-9)


def test_forecasts_of_1e99_cost_the_federation_next_to_nothing():
    X, Y = make_stream(150)
    hub = lied_to(lambda said: said._replace(own=said.own._replace(experts=np.full_like(said.own.experts, 1e99))))
    found = run(hub.federation, X, Y)
    honest = run(lied_to(lambda said: said).federation, X, Y)
    errors = [np.mean((each[60:, 0] - Y[60:, 0]) ** 2) for each in (found, honest)]
    assert hub.federation.health["absences"] == {}
    assert errors[0] < 1.1 * errors[1]


def test_a_masked_leverage_beyond_what_all_can_have_opens_no_sum():
    """The owners would refuse such sums; the row goes on without their sum, and they go on."""
    X, Y = make_stream(40)
    hub = lied_to(lambda said: said, masks=lambda name: settings_for(name, 4))
    run(hub.federation, X[:30], Y[:30])
    owner = hub._factory._line.owners[LIAR]
    answer = type(owner._replica).answer

    def lying(replica):
        said = answer.fget(replica)
        liar = replica is owner._replica
        return said._replace(terms=(said.terms[0], said.terms[1] + 9.0, *said.terms[2:])) if liar else said

    type(owner._replica).answer = property(lying)
    try:
        run(hub.federation, X[30:31], Y[30:31])
    finally:
        type(owner._replica).answer = answer
    run(hub.federation, X[31:], Y[31:])
    reasons = hub.federation.health["reasons"]
    assert set(hub.federation.health["absences"].values()) == {1}
    assert all("the sum of leverages: got 9" in reason for reason in reasons.values())
