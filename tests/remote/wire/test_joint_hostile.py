"""A hub that does not keep to the joint game: owners refuse, say why, and go on when it does again."""

import numpy as np
import pytest

from nashcast.remote.masking.joint_masks import JointMasks
from nashcast.remote.masking.masks import MaskRefused, sum_masked
from nashcast.remote.wire.fixed_point import encode
from nashcast.remote.wire.format import pack, unpack
from nashcast.remote.wire.joint.joint_messages import (
    FORECAST,
    HELLO,
    NOTHING,
    Input,
    Keys,
    Label,
    LateLabel,
    Recalled,
    Said,
    Sums,
    Told,
    event_bytes,
    player_flags,
)
from support.remote.joint_teams import make_joint, make_stream, make_team, run
from support.remote.masked_teams import settings_for

STEPS = 30


class Hub:
    """Speaks to one owner of a team that has played STEPS steps in good order, all of its labels known."""

    def __init__(self, share="forecasts", masks=None):
        X, Y = make_stream(STEPS + 1)
        self.hub, line = make_joint(make_team(4, share), masks=masks, start=0.0)
        run(self.hub.federation, X[:STEPS], Y[:STEPS])
        self.owner, self.x = line.owners["agent-01"], X[STEPS]
        self.log, self.number = self.hub.agents.log, self.hub.agents.log.number
        self.names = tuple(line.owners)

    def tell(self, *events, ask=HELLO, players=frozenset(), number=None):
        """The owner's answer. What it takes of the events counts as published."""
        number = self.number if number is None else number
        flags = player_flags(players, self.names) if players else b""
        told = Told(self.log.run, number, tuple(map(event_bytes, events)), ask, flags)
        said = unpack(self.owner.hear(pack(told)), (Said,))
        self.number = said.number
        return said

    def begin_row(self):
        return self.tell(Input(STEPS, self.x, np.nan), ask=FORECAST)

    def sums(self, answer, **changes):
        """As they are if no other agent plays."""
        contribution, leverage = answer.terms
        contribution = contribution * self.owner._replica._history.scales.change[:, None]
        others = tuple(name for name in self.names if name != "agent-01")
        return Sums(STEPS, others, (), contribution, leverage, None, None)._replace(**changes)


@pytest.fixture
def hub():
    return Hub()


def test_what_fits_is_taken(hub):
    said = hub.begin_row()
    assert hub.tell(hub.sums(said), Label(STEPS, np.ones(1), None)).reason == ""


@pytest.mark.parametrize(
    ("events", "reason"),
    [
        ([Input(STEPS + 1, np.zeros(4), 0.0)], "input: of step 31, and the present one is 30"),
        ([Input(STEPS - 1, np.zeros(4), 0.0)], "input: of step 29, and the present one is 30"),
        ([Input(STEPS, np.zeros(3), 0.0)], "input.x: got shape (3,), expected (4,)"),
        ([Label(STEPS, np.ones(1), None)], "label: of step 30, whose sums were not published before"),
        ([Label(STEPS - 1, np.ones(1), None)], "label: of step 29, and the present one is 30"),
        ([LateLabel(STEPS, np.ones(1))], "late_label: of step 30, and the present one is 30"),
        ([LateLabel(STEPS - 1, np.ones(1))], "late_label: of step 29, which is known"),
        ([Recalled(np.zeros((5, 1, 1)), ())], "Recalled: no label waits for it"),
    ],
)
def test_events_out_of_order_are_refused(hub, events, reason):
    assert reason in hub.tell(*events).reason
    assert hub.begin_row().reason == ""  # nothing has changed


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"leverage": np.zeros((2, 1))}, "sums.leverage: less than this agent's own, which is in it"),
        ({"leverage": np.full((2, 1), 4.5)}, "sums.leverage: got 4.5, expected 0 to 4"),
        ({"leverage": np.full((2, 1), 0.5)}, "sums.leverage: got other numbers than this agent's terms"),
        ({"said": np.ones((6, 1, 1))}, "sums.said: got other numbers than this agent's terms, which are all there is"),
        ({"absent": tuple(f"agent-{i:02}" for i in range(4))}, "sums.said: got other numbers than 0, as no agent is"),
        ({"said": np.full((6, 1, 1), np.nan)}, "sums.said: got a number that is not finite"),
        ({"said": np.full((6, 1, 1), 1e201)}, "sums.said: got 1e+201"),
        ({"said": np.zeros((5, 1, 1))}, "sums.said: got shape (5, 1, 1), expected (6, 1, 1)"),
        ({"recalled": np.zeros((5, 1, 1))}, "sums.recalled: got numbers, expected otherwise"),
        ({"stopped": np.zeros((6, 1, 1, 7))}, "sums.stopped: got numbers, expected otherwise"),
        ({"step": STEPS + 1}, "sums: of step 31, and the present one is 30"),
    ],
)
def test_sums_that_do_not_fit_are_refused(hub, changes, reason):
    said = hub.begin_row()
    assert reason in hub.tell(hub.sums(said, **changes)).reason
    assert hub.tell(hub.sums(said), Label(STEPS, np.ones(1), None)).reason == ""


def test_a_row_has_one_input_one_forecast_one_sum_and_one_label(hub):
    said = hub.begin_row()
    assert "input: a second one for step 30" in hub.tell(Input(STEPS, hub.x + 1e-9, np.nan)).reason
    assert "nothing has changed" in hub.tell(Input(STEPS, hub.x, np.nan)).reason
    hub.tell(hub.sums(said))
    assert "second sums of step 30" in hub.tell(hub.sums(said, said=2.0 * said.terms[0])).reason
    hub.tell(Label(STEPS, np.ones(1), None))
    assert "label: of step 30, and the present one is 31" in hub.tell(Label(STEPS, np.zeros(1), None)).reason
    assert "is known" in hub.tell(LateLabel(STEPS, np.zeros(1))).reason


def test_another_past_than_the_one_told_is_noticed(hub):
    said = hub.begin_row()
    hub.tell(hub.sums(said))
    other = hub.sums(said, said=2.0 * said.terms[0])
    assert "is not what was told before" in hub.tell(other, number=hub.number - 1).reason
    assert hub.tell(hub.sums(said), number=hub.number - 1).reason == ""  # told again, it is heard once


def test_a_pulse_takes_a_false_label_or_false_sums_beforehand(hub):
    """What an agent learns follows from sums that were published before the label: a hub cannot choose it after."""
    said = hub.begin_row()
    before = hub.owner._replica._agents._blocks[0]._decoders.copy()
    hub.tell(hub.sums(said))
    label = np.ones(1)
    pulse = hub.sums(said, said=said.terms[0] + 1e6)
    assert "second sums" in hub.tell(pulse, Label(STEPS, label, None)).reason
    np.testing.assert_array_equal(hub.owner._replica._agents._blocks[0]._decoders, before)
    hub.tell(Label(STEPS, label, None))
    moved = hub.owner._replica._agents._blocks[0]._decoders - before
    twin = Hub()
    twin.tell(twin.sums(twin.begin_row()))
    twin.tell(Label(STEPS, label, None))
    np.testing.assert_array_equal(moved, twin.owner._replica._agents._blocks[0]._decoders - before)


def masked_hub():
    return Hub("joint", lambda name: settings_for(name, 4))


def test_terms_leave_under_masks_or_not_at_all():
    hub = masked_hub()
    everybody = frozenset(hub.names)
    for players in (frozenset(), frozenset({"agent-00", "agent-02", "agent-03"})):
        said = hub.tell(Input(STEPS, hub.x, np.nan), ask=FORECAST, players=players)
        assert said.terms is None
        assert said.own is None
    two = hub.tell(ask=FORECAST, players=frozenset({"agent-00", "agent-01"}))
    assert "a sum over 2 agents hides too little" in two.reason
    assert isinstance(hub.tell(ask=FORECAST, players=everybody).terms, bytes)


def test_a_row_is_added_up_over_one_set_of_agents():
    """Sums over almost the same agents would show the difference."""
    hub = masked_hub()
    everybody = frozenset(hub.names)
    hub.tell(Input(STEPS, hub.x, np.nan), ask=FORECAST, players=everybody)
    hub.owner._last = None  # as if it did not remember its answer
    assert "another set of agents" in hub.tell(ask=FORECAST, players=everybody - {"agent-02"}).reason


def test_a_masked_sum_is_over_all_of_its_agents_or_none():
    """A hub that names some of them as absent shows sums that it cannot have."""
    hub = masked_hub()
    hub.tell(Input(STEPS, hub.x, np.nan), ask=FORECAST, players=frozenset(hub.names))
    sums = Sums(STEPS, ("agent-03",), (), np.ones((6, 1, 1)), np.full((2, 1), 0.9), None, None)
    assert "sums.absent: got 1 of 4 agents under masks in one sum" in hub.tell(sums).reason
    assert hub.tell(sums._replace(absent=())).reason == ""


def test_a_key_that_nobody_enrolled_signed_is_refused():
    hub = masked_hub()
    hub.tell(Keys(("agent-02",), (bytes(96),)))
    said = hub.tell(Input(STEPS, hub.x, np.nan), ask=FORECAST, players=frozenset(hub.names))
    assert "the key of 'agent-02'" in said.reason


def test_another_key_for_its_own_is_refused():
    hub = masked_hub()
    hub.tell(Keys(("agent-01",), (bytes(96),)))
    said = hub.tell(Input(STEPS, hub.x, np.nan), ask=FORECAST, players=frozenset(hub.names))
    assert "another key was published as its own" in said.reason


def test_least_squares_over_chosen_steps_finds_nothing_of_a_masked_agent():
    """A hub that chooses what an agent's terms respond to, 1000 times, and sees its bytes: no better than chance."""
    names = ("agent-00", "agent-01", "agent-02")
    masks = {name: JointMasks(name, settings_for(name, 3)) for name in names}
    keys = [masks[name].public_key for name in names]
    for own in masks.values():
        own.meet(names, keys)
    rng, present = np.random.default_rng(1), frozenset(names)
    pulses, seen = rng.standard_normal(1000), []
    for row, pulse in enumerate(pulses):
        terms = {name: [np.array([pulse if name == "agent-01" else rng.standard_normal()])] for name in names}
        sent = {name: masks[name].mask(terms[name], row, "forecast", present, b"") for name in names}
        seen.append(np.frombuffer(sent["agent-01"][16:], dtype=np.uint8) / 255.0 - 0.5)
        total = sum(terms[name][0] for name in names)
        assert np.abs(sum_masked(sent, [(1,)], present)[0] - total).max() < 1e-15 * max(1.0, abs(total[0]))
    assert _unexplained(np.array(seen)[:, :16], pulses) > 0.95
    plain = [np.frombuffer(encode(np.array([pulse])).tobytes(), dtype=np.uint8) / 255.0 - 0.5 for pulse in pulses]
    assert _unexplained(np.array(plain), pulses) < 0.6  # the same numbers without masks: this would see them


def _unexplained(design, wanted):
    """The share of variance left in the second half of the steps by a regression on the first half."""
    half = len(wanted) // 2
    found, *_ = np.linalg.lstsq(design[:half], wanted[:half], rcond=None)
    return (wanted[half:] - design[half:] @ found).var() / wanted[half:].var()


def test_an_agent_without_its_peers_keys_sends_nothing():
    masks = JointMasks("agent-00", settings_for("agent-00", 3))
    with pytest.raises(MaskRefused, match="the key of 'agent-01'"):
        masks.mask([np.zeros(1)], 0, "forecast", frozenset({"agent-00", "agent-01", "agent-02"}), b"")


def test_a_message_without_a_question_is_not_answered(hub):
    told = Told(hub.log.run, hub.number, (event_bytes(Input(STEPS, hub.x, np.nan)),), NOTHING, b"")
    assert hub.owner.hear(pack(told)) is None


@pytest.mark.parametrize("data", [b"", b"\x81", bytes(100), pack(Told(0, 0, (), FORECAST, b""))])
def test_whatever_bytes_come_there_is_an_answer(hub, data):
    assert unpack(hub.owner.hear(data), (Said,)).reason
