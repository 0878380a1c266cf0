"""Hub, broker and N - 2 agents in league against the other two, which share `joint`: see the threat model.

The owners' features are functions of data of their own, which the hub's input only dates. The league chooses inputs,
labels, sums and sets of agents, holds the keys and terms of its own agents, and sees every byte.
"""

import numpy as np
import pytest

import nashcast as nc
from nashcast.remote.masking import masks
from nashcast.remote.masking.masks import sum_masked
from nashcast.remote.wire.fixed_point import add_up
from nashcast.remote.wire.format import pack, unpack
from nashcast.remote.wire.joint.joint_messages import (
    FORECAST,
    HELLO,
    Input,
    Keys,
    Label,
    LogPart,
    Said,
    Sums,
    Told,
    event_bytes,
    player_flags,
    read_event,
)
from nashcast.remote.wire.messages import Hello
from support.remote.joint_teams import make_joint, make_owner
from support.remote.masked_teams import settings_for

AGENTS, DATES, ROWS = 4, 40, 60
NAMES = tuple(f"agent-{i:02}" for i in range(AGENTS))
VICTIM, OTHER, LEAGUE = NAMES[0], NAMES[1], NAMES[2:]


def private(owner, features):
    """An encoder of data that only its owner has; inputs say of which date."""
    table = np.random.default_rng([owner, 11]).standard_normal((DATES, features))
    return nc.encoders.Callable(lambda x: table[int(x[0]) % DATES], features=features)


def team(swapped=False):
    """Two honest owners that differ in all they have, and the league's."""
    honest = [private(0, 1), private(1, 3)]
    encoders = [*(honest[::-1] if swapped else honest), private(2, 2), private(3, 1)]
    return [nc.Agent(encoder, name=name, share="joint") for encoder, name in zip(encoders, NAMES, strict=True)]


def owners_masks(least):
    return lambda name: settings_for(name, AGENTS, least=least)


def chosen_messages(steps, seed=5):
    """Dates that come again, and labels that pulse."""
    rng = np.random.default_rng(seed)
    dates = rng.integers(0, DATES, (steps, 1)).astype(float)
    return dates, np.cumsum(rng.standard_normal(steps) * np.where(rng.random(steps) < 0.1, 4.0, 1.0))


class Recorder:
    """Plays chosen messages; notes the published log, all answers, and what the victim's terms were."""

    def __init__(self, steps, monkeypatch, swapped=False):
        self.hub, self.line = make_joint(team(swapped), masks=owners_masks(AGENTS), start=0.0)
        self.terms, self.streams, draw = [], [], masks._keystream
        monkeypatch.setattr(masks, "_keystream", lambda *a: self._noted(draw(*a)))
        for x, y in zip(*chosen_messages(steps), strict=True):
            self._drawn = []
            self.hub.federation.predict_one(x)
            answer = self.line.owners[VICTIM]._replica.answer
            self.terms.append(np.concatenate([term.ravel() for term in answer.terms[:2]]))
            self.streams.append(self._drawn)
            self.hub.federation.learn_one(x, y)
        self.terms = np.array(self.terms)

    def _noted(self, stream):
        self._drawn.append(stream)
        return stream

    def published(self):
        """The log, without keys."""
        parts = [unpack(data, (LogPart,)) for data in self.line.kept]
        return [event for part in parts for event in part.events if not isinstance(read_event(event), Keys)]

    def sums(self):
        events = [read_event(event) for event in self.published()]
        return np.array([np.append(e.said.ravel(), e.leverage.ravel()) for e in events if isinstance(e, Sums)])

    def masked(self):
        """The victim's answers to forecasts, one for each row."""
        said = [unpack(data, (Said,)) for name, data in self.line.answers if name == VICTIM]
        return [each.terms for each in said if isinstance(each.terms, bytes)]


@pytest.fixture(scope="module")
def recorded():
    """1000 chosen steps."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        return Recorder(1000, monkeypatch)


@pytest.mark.slow
def test_all_that_is_published_in_1000_chosen_steps_fits_the_other_owner_as_well(recorded, monkeypatch):
    """Two owners that change places publish the same log to the bit, so nothing computed from it can tell them apart:

    not contributions, leverages, forecasts, features, their number, decoders nor settings of one of them.
    """
    here, there = recorded, Recorder(1000, monkeypatch, swapped=True)
    assert here.hub.federation.health["absences"] == {}
    assert len(here.sums()) == 1000
    assert here.published() == there.published()
    apart = np.abs(here.terms - there.terms).mean(axis=0)
    assert (apart > 0.1 * np.abs(here.terms).mean(axis=0)).all()


@pytest.mark.slow
def test_least_squares_over_1000_chosen_steps_finds_no_more_than_the_sums_show(recorded):
    """The league takes off the masks that its agents share with the victim: what is left is noise."""
    found = recorded
    rows = [
        (s, t, m) for s, t, m in zip(found.streams, found.terms, found.masked()[-1000:], strict=True) if len(s) == 12
    ]
    assert len(rows) > 900
    left, terms = [], np.array([t for _, t, _ in rows])
    for streams, _, message in rows:
        # Drawn by each agent in turn, for its peers in their order: 3 · 2 and 3 · 3 are the league's with the victim.
        limbs = [np.frombuffer(part, dtype="<u8") for part in (message[16:], streams[6], streams[9])]
        stripped = add_up(np.array(limbs).reshape(3, -1, 2), [False, True, True])
        left.append(np.frombuffer(stripped.tobytes(), dtype=np.uint8)[:16] / 255.0 - 0.5)
    sums = found.sums()[-1000:][[len(s) == 12 for s in found.streams]]
    for place in range(terms.shape[1]):
        wanted = terms[:, place]
        assert _unexplained(np.array(left), wanted) > 0.95
        assert _unexplained(np.column_stack([left, sums]), wanted) > 0.95 * _unexplained(sums, wanted)


def _unexplained(design, wanted):
    """The share of variance left in the second half of the steps by a regression on the first half."""
    design, half = np.column_stack([np.ones(len(design)), design]), len(wanted) // 2
    found, *_ = np.linalg.lstsq(design[:half], wanted[:half], rcond=None)
    return (wanted[half:] - design[half:] @ found).var() / wanted[half:].var()


class League:
    """A hub that speaks to the owners as it likes, after some honest rows."""

    def __init__(self, least):
        self.hub, line = make_joint(team(), masks=owners_masks(least), start=0.0)
        for x, y in zip(*chosen_messages(ROWS), strict=True):
            self.hub.federation.predict_one(x)
            self.hub.federation.learn_one(x, y)
        self.last = np.array([y])
        self.owners, self.log = line.owners, self.hub.agents.log
        self.number, self.step = self.log.number, ROWS

    def tell(self, *events, ask=HELLO, players=frozenset()):
        told = Told(self.log.run, self.number, tuple(map(event_bytes, events)), ask, player_flags(players, NAMES))
        said = {name: unpack(owner.hear(pack(told)), (Said,)) for name, owner in self.owners.items()}
        self.number += len(events)
        return said

    def begin_row(self, players):
        """Answers to an input of date 7, to be added up over some agents."""
        return self.tell(Input(self.step, np.array([7.0]), np.nan), ask=FORECAST, players=frozenset(players))

    def end_row(self, absent=()):
        form = self.owners[VICTIM]._replica.form
        sums = Sums(self.step, tuple(absent), (), np.zeros(form.said), np.full(form.leverage, 0.99), None, None)
        said = self.tell(sums, Label(self.step, None, self.last))
        self.step += 1
        return said

    def opened(self, said, players):
        form = self.owners[VICTIM]._replica.form
        return sum_masked({name: said[name].terms for name in players}, form.forecast_terms(False), set(players))

    def truth(self, name):
        return self.owners[name]._replica.answer.terms[0]


def test_an_owner_that_asks_for_everybody_is_not_added_up_with_the_league_alone():
    league = League(least=AGENTS)
    alone = (VICTIM, *LEAGUE)
    said = league.begin_row(alone)[VICTIM]
    assert said.terms is None
    assert "a sum over 3 agents hides too little; it takes 4" in said.reason


def test_an_owner_that_asks_for_three_is_seen_by_a_league_of_two():
    """Documented: masks hide an agent among those in its sum that are not in league, whatever `least` it asks for."""
    league = League(least=3)
    alone = (VICTIM, *LEAGUE)
    said = league.begin_row(alone)
    contributions = league.opened(said, alone)[0] - sum(league.truth(name) for name in LEAGUE)
    np.testing.assert_allclose(contributions, league.truth(VICTIM), atol=1e-12)


@pytest.mark.parametrize("least", [3, AGENTS])
def test_two_rows_over_different_agents_show_the_difference_unless_everybody_is_asked_for(least):
    league = League(least=least)
    first = league.opened(league.begin_row(NAMES), NAMES)[0]
    league.end_row()
    others = (OTHER, *LEAGUE)
    said = league.begin_row(others)
    if least == AGENTS:
        assert said[OTHER].terms is None
        return
    difference = first - league.opened(said, others)[0]
    # Nothing was learnt in between: contributions are about what they were.
    assert np.abs(difference - league.truth(VICTIM)).mean() < 0.3 * np.abs(league.truth(VICTIM)).mean()


def test_an_owner_answers_a_row_once_and_learns_no_label_twice():
    league = League(least=AGENTS)
    first = league.begin_row(NAMES)[VICTIM]
    again = league.tell(ask=FORECAST, players=frozenset(NAMES))[VICTIM]
    assert again == first  # the very same bytes
    other = league.tell(Input(ROWS, np.array([8.0]), np.nan), ask=FORECAST, players=frozenset(NAMES))[VICTIM]
    assert other.terms is None
    assert f"input: a second one for step {ROWS}" in other.reason
    league.number -= 1
    unseen = league.tell(Label(ROWS, np.ones(1), None))[VICTIM]
    assert "whose sums were not published before" in unseen.reason
    league.number -= 1
    league.end_row()
    twice = league.tell(Label(ROWS, np.ones(1), None))[VICTIM]
    assert f"label: of step {ROWS}, and the present one is {ROWS + 1}" in twice.reason


def test_a_restarted_owner_has_other_masks_and_does_not_answer_the_row_again():
    league = League(least=AGENTS)
    first = league.begin_row(NAMES)[VICTIM]
    line = type("Line", (), {"missed": staticmethod(lambda run, number: [])})
    fresh = make_owner(team()[0], line, owners_masks(AGENTS))
    assert unpack(fresh.hello(), (Hello,)).public_key != league.owners[VICTIM]._masks.public_key
    told = Told(league.log.run, league.number, (), FORECAST, player_flags(frozenset(NAMES), NAMES))
    said = unpack(fresh.hear(pack(told)), (Said,))
    assert said.terms is None
    assert "were missed" in said.reason
    assert isinstance(first.terms, bytes)
