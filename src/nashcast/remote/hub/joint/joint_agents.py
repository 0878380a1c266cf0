"""Remote agents in the loop of the joint game: for each row one publication to all of them, and one answer of each.

`forecast` asks, and the answers have everything that a row needs from the agents. The other calls only append events to
the public log, which are published with the next question. A label whose sums are not known yet (a late one, or one
that was in doubt) takes a round of its own: `recall`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np

from nashcast.agents.expected_distance import mean_distance
from nashcast.agents.history import History
from nashcast.agents.joint.joint_blocks import Contributions, PublicBlock
from nashcast.agents.joint.public_features import PUBLIC_FEATURES, public_features
from nashcast.agents.local_agents import AgentForecasts
from nashcast.encoders.families.rows import Rows
from nashcast.fields import Fields, restore_parts, saved_parts
from nashcast.remote.hub.joint.joint_answers import Answers, Collected, ReadAnswer
from nashcast.remote.hub.joint.joint_log import EventLog
from nashcast.remote.hub.roster import Roster
from nashcast.remote.hub.row_journal import Row, RowJournal
from nashcast.remote.wire.joint.joint_checks import Form
from nashcast.remote.wire.joint.joint_messages import (
    FORECAST,
    HELLO,
    NOTHING,
    RECALL,
    Input,
    Keys,
    Label,
    LateLabel,
    Opening,
    Recalled,
    Said,
    Sums,
    player_flags,
    players_of,
    read_event,
)
from nashcast.remote.wire.transport import Failure


class JointLine(Protocol):
    """Carries messages between the hub and all agents. traffic: bytes published ("down") and answered ("up").

    journal: of the present row.
    """

    traffic: dict[str, int]
    journal: RowJournal

    def ask(self, data: bytes, names: Sequence[str], read: ReadAnswer) -> dict[str, Said | Failure]:
        """Send one message to all agents. Returns the decoded answers of those named, or why there is none."""
        ...

    def tell(self, data: bytes, now: bool = False) -> None:
        """Send one message to all agents, without answers. now: send it and all earlier ones before returning."""
        ...

    def keep(self, step: int, data: bytes) -> None:
        """Store events for agents that miss messages, before this returns or soon after."""
        ...


_ONE_INPUT = "one input for a step is published to agents elsewhere"


class _Last(NamedTuple):
    """The last forecast."""

    step: int
    x: bytes
    events: int  # length of the log after it
    said: AgentForecasts
    collected: Collected


class JointAgents:
    """opening: of the stream, with the names of the agents.   run: number of the run.

    Takes the place of `LocalAgents` in the loop.   rounds: the number of rounds of questions.
    """

    def __init__(self, history: History, opening: Opening, line: JointLine, roster: Roster, run: int):
        self._history, self._opening, self._line, self._roster = history, opening, line, roster
        self.names, self._game, self._form = list(opening.names), opening.game, Form(opening)
        self.log = EventLog(run)
        self.rounds = 0
        self._public = PublicBlock(len(opening.start), PUBLIC_FEATURES)
        self._revised, self._fresh = False, False
        self._last: _Last | None = None
        self._interrupted: Row | None = None  # the next row, if it was published before the hub was killed
        self._distance: np.ndarray | None = None
        self._answers = Answers(self._form, roster, opening.names)

    def introduce(self) -> None:
        """Begin the run: connected agents declare their properties."""
        self.log.add(self._opening)
        self._exchange(HELLO, [])
        self._answers.settle_traits()

    def resume(self, fields: Fields) -> None:
        """Restore what determines array sizes; called instead of `introduce`, before the loop is made."""
        self._answers.restore(fields)

    @property
    def owner(self) -> np.ndarray:
        return np.repeat(np.arange(len(self.names)), self._answers.experts)

    @property
    def groups(self) -> np.ndarray | None:
        """The group of each agent: masked agents are evaluated together."""
        masked = self._answers.masked
        if np.count_nonzero(masked) < 2:
            return None
        return np.where(masked, 0, np.cumsum(~masked))

    @property
    def gives_quantiles(self) -> bool:
        return self._answers.quantiles

    def forecast(self, x: np.ndarray, included: np.ndarray | None = None) -> AgentForecasts:
        assert included is not None
        history, last = self._history, self._last
        now, step = history.now, history.step
        self.public_now = public_features(history.rows_between(now, now + 1))[0]
        if last is not None and last.step == step:
            if last.x == x.tobytes() and last.events == self.log.number:
                return last.said._replace(stopped=None)
            if last.x != x.tobytes():
                return self._nobody(_ONE_INPUT, included)
        row, self._interrupted = self._interrupted, None
        begun = None if row is None else self._continued(row)
        if row is None or begun is None:
            begun = Input(step, x, float(history.times[now]))
            self._publish_keys()
            self.log.add(begun)
            players = self._answers.players()
            row = self.log.unpublished(player_flags(players, self._opening.names) if players else b"")
            self._line.journal.keep(row)
        found = self._answered(row, self._form.forecast_terms(self._revised and self._game.plays_remainder))
        said, inside = self._said(found, included), included[:, None, None]
        contributions = said.contributions
        assert contributions is not None
        recalled = None if len(found.terms) < 3 or self._form.horizon == 1 else self._total(found.terms[2], included)
        total = np.add.reduce(contributions.said if included.all() else contributions.said * inside, axis=1)
        leverage = contributions.leverage
        leverage = np.add.reduce(leverage if included.all() else leverage * inside[..., 0], axis=1)
        excluded = tuple(name for name, inside in zip(self.names, included, strict=True) if not inside)
        absent = tuple(name for i, name in enumerate(self.names) if i in found.absent)
        self.log.add(Sums(step, absent, excluded, total, leverage, recalled, said.stopped))
        self._line.tell(self.log.told(NOTHING))
        self._revised, self._fresh = False, True
        self._last = _Last(step, begun.x.tobytes(), self.log.number, said, found)
        return said if begun.x.tobytes() == x.tobytes() else self._nobody(_ONE_INPUT, included)

    def _continued(self, row: Row) -> Input | None:
        """The input of a row that was published before the hub was killed; None for another row."""
        events = [read_event(data) for data in row.events]
        begun = events[-1]
        if not isinstance(begun, Input) or begun.step != self._history.step:
            return None
        self.log.continue_with(row)
        for event in events:
            if isinstance(event, Keys):
                self._roster.republish(event)
        return begun

    def _answered(self, row: Row, shapes: list[tuple[int, ...]]) -> Collected:
        """The answers to the question of a row, written to the journal before they are used."""
        replies = row.replies()
        if not replies:
            message = self.log.told(FORECAST, row.players)
            self.rounds += 1
            replies = self._line.ask(message, self.names, self._read())
            self._line.journal.keep(row.answered(replies))
        return self._answers.collect(replies, FORECAST, shapes, players_of(row.players, self._opening.names))

    def _said(self, found: Collected, included: np.ndarray) -> AgentForecasts:
        usual = self._history.scales.change
        contributions = Contributions(found.terms[0] * usual[:, None], found.terms[1])
        p, H, K = self._form.y_dim, self._form.horizon, len(self.owner)
        experts, leverage, awake = np.zeros((p, H, K)), np.zeros((p, K)), np.zeros(K, dtype=bool)
        ends = np.cumsum(self._answers.experts)
        for i, own in found.own.items():
            end, first = ends[i], ends[i] - self._answers.experts[i]
            count = min(end - first, own.experts.shape[2])
            at = slice(first, first + count)
            experts[:, :, at], leverage[:, at], awake[at] = own.experts[..., :count], own.leverage[:, :count], True
        self._distance = mean_distance([own.distance for own in found.own.values() if own.distance is not None])
        stopped = None
        if len(found.terms) > 2 + (H > 1):
            stopped = np.add.reduce(found.terms[-1] * included[:, None, None, None], axis=1)
        return AgentForecasts(experts, leverage, awake, contributions, found.absent, stopped)

    def _nobody(self, reason: str, included: np.ndarray) -> AgentForecasts:
        shapes = self._form.forecast_terms(False)
        return self._said(Collected.of_nobody(shapes, len(self.names), reason), included)

    def _total(self, terms: np.ndarray, included: np.ndarray) -> np.ndarray:
        """The sum over included agents of terms in units of the usual change, converted to the target's units."""
        scaled = terms * self._history.scales.change[:, None]
        return np.add.reduce(scaled if included.all() else scaled * included[:, None, None], axis=1)

    def end_row(self, target: np.ndarray | None, stand_in: np.ndarray) -> None:
        self.log.add(Label(self._history.step, target, stand_in if target is None else None))

    def learn_late(self, step: int, target: np.ndarray) -> None:
        self.log.add(LateLabel(step, target))

    def add_row(self, label: np.ndarray | None, taught: bool = True) -> None:
        self.public_gain = self._public.learn(self.public_now)

    def recall(self, steps: np.ndarray, included: np.ndarray | None = None) -> np.ndarray | None:
        assert included is not None
        foreseen, self._fresh = self._fresh and self._last is not None and steps[0] == self._last.step, False
        if foreseen:
            assert self._last is not None
            terms = self._last.collected.terms
            return terms[0][:-1] if self._form.horizon == 1 else terms[2]
        found = self._exchange(RECALL, [self._form.recalled])
        excluded = tuple(name for name, inside in zip(self.names, included, strict=True) if not inside)
        lost = found.lost_masks
        self.log.add(Recalled(None if lost else self._total(found.terms[0], included), () if lost else excluded))
        return None if lost else found.terms[0]

    def learn(self, steps: np.ndarray, changes: np.ndarray, known: np.ndarray) -> None:
        """Nothing to do: agents learn from the log."""

    def teach(self, step: int, target: np.ndarray) -> None:
        """Nothing to do: agents learn from the log."""

    def learn_jointly(self, steps: np.ndarray, residuals: np.ndarray) -> None:
        """Nothing to do: agents learn from the published sums."""

    def relearn(self, before: Rows, included: np.ndarray) -> None:
        self._public.relearn(public_features(self._history.rows_between(before.span.first, before.span.last)))
        self._revised = True

    def expected_distance(self) -> np.ndarray | None:
        return self._distance

    def keep_log(self) -> None:
        """Append new events to the durable log."""
        self._line.keep(self._history.step, self.log.part(self._history.step))

    def publish(self) -> None:
        """Publish new events, so that agents learn before the next row begins."""
        if self.log.unsaid:
            self._line.tell(self.log.told(NOTHING), now=True)

    @property
    def last_absent(self) -> tuple[object, dict[int, str]] | None:
        return None if self._last is None else (self._last.collected, self._last.said.absent)

    def _publish_keys(self) -> None:
        keys = self._roster.unpublished_keys()
        if keys is not None:
            self.log.add(keys)

    def _exchange(self, ask: str, shapes: list[tuple[int, ...]]) -> Collected:
        """Ask any question other than that of a row."""
        players = self._answers.players() if ask != RECALL else self._answers.last_players
        flags = player_flags(players, self._opening.names) if players else b""
        message = self.log.told(ask, flags)
        self.rounds += 1
        replies = self._line.ask(message, self.names, self._read())
        return self._answers.collect(replies, ask, shapes, players)

    def _read(self) -> ReadAnswer:
        return partial(self._answers.read, self.log.run, self.log.number)

    def save(self) -> dict[str, np.ndarray]:
        return {"revised": np.array(self._revised)} | saved_parts(self._parts())

    def restore(self, fields) -> None:
        self._revised = bool(fields.take("revised", (), dtype=np.bool_))
        restore_parts(self._parts(), fields)
        self._last, row = None, self._line.journal.last()
        if row is not None and row.run == self.log.run and row.number + len(row.events) > self.log.number:
            self._interrupted = row

    def _parts(self) -> list[tuple[str, Any]]:
        return [("log.", self.log), ("public.", self._public), ("answers.", self._answers)]
