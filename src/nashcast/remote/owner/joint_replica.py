"""The owner's replica of the joint game: it follows the hub's log and computes what its agent learns from.

The owner maintains the public state of the stream itself: rows, scales, screen, the public player. So the residual that
an agent learns from is computed here, from sums published before the label; no part of it is taken on trust from the
hub. Events that contradict earlier ones are refused, and change nothing.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Any, NamedTuple

import numpy as np

from nashcast.agents.agent import Agent
from nashcast.agents.joint.joint_blocks import Contributions
from nashcast.agents.joint.public_features import PUBLIC_FEATURES
from nashcast.agents.local_agents import AgentForecasts, LocalAgents
from nashcast.errors import NashcastError
from nashcast.federation.incoming.public_rows import Lesson, PublicRows, RowEnd
from nashcast.federation.joint.joint_server import JointServer
from nashcast.fields import Fields, restore_parts, saved_parts
from nashcast.remote.wire.format import MalformedMessage
from nashcast.remote.wire.joint.joint_checks import (
    ROUNDING,
    Form,
    check_leverage,
    check_numbers,
    check_opening,
    check_shape,
)
from nashcast.remote.wire.joint.joint_messages import Input, Label, LateLabel, Opening, Recalled, Sums


class NotAsPublished(NashcastError):
    """An event that contradicts those before it."""


class Answer(NamedTuple):
    """An agent's answer for the present row. terms: as in `wire.joint_messages.Said`; none if it sits out."""

    terms: tuple[np.ndarray, ...]
    forecasts: AgentForecasts
    distance: np.ndarray | None
    reason: str


class _Row(NamedTuple):
    """The present row, after its forecast."""

    input: Input
    answer: Answer
    late: int  # late labels before its forecast
    sums: Sums | None
    players: frozenset[str] = frozenset()  # the agents of the masked sum that includes its terms


def check_fit(sums: Sums, row: _Row, name: str, names: tuple[str, ...], usual: np.ndarray) -> None:
    """Raises NotAsPublished for sums that are impossible for the agents that they include.

    name: of this agent, which made the row's terms.   names: of all agents.   usual: the usual change of each target.
    """
    own, leverage = row.answer.terms[0] * usual[:, None], row.answer.terms[1]
    inside = set(names) - {*sums.absent, *sums.excluded}
    if name in inside and row.answer.reason:
        raise NotAsPublished(f"sums: this agent sat out of step {sums.step}, and is not named")
    if name in inside and (sums.leverage < leverage * (1.0 - ROUNDING) - ROUNDING).any():
        raise NotAsPublished("sums.leverage: less than this agent's own, which is in it")
    if inside <= {name}:
        factor = 1.0 if inside else 0.0
        for field, found, wanted in (("said", sums.said, own), ("leverage", sums.leverage, leverage)):
            if not np.allclose(found, factor * wanted, rtol=ROUNDING, atol=0.0):
                whose = "this agent's terms, which are all there is" if inside else "0, as no agent is in them"
                raise NotAsPublished(f"sums.{field}: got other numbers than {whose}")
    lost = row.players & set(sums.absent)
    if lost and lost != row.players:
        raise NotAsPublished(f"sums.absent: got {len(lost)} of {len(row.players)} agents under masks in one sum")


class Replica:
    """agent: of the owner, with the name it has in the opening."""

    def __init__(self, agent: Agent, name: str, opening: Opening):
        check_opening(opening)
        if name not in opening.names:
            raise MalformedMessage(f"opening.names: got {len(opening.names)} names without {name!r}")
        self._name, self.opening, self.form = name, opening, Form(opening)
        p, H, game = len(opening.start), opening.horizon, opening.game
        self._rows = PublicRows(opening.x_dim, opening.start, opening.season, H, opening.first_step)
        self._history = self._rows.history
        self._agents = LocalAgents(
            [agent], self._history, game, H, list(opening.x_names) or None, opening.seed, opening.names.index(name)
        )
        self._server = JointServer(game, 1, PUBLIC_FEATURES, p, H)
        self._row: _Row | None = None
        self._late, self._fresh = 0, False  # late labels so far; whether nothing was learnt since the forecast
        self._lessons: Generator[Lesson, Recalled, None] | None = None  # of a label whose sums are awaited
        self._asked: Lesson | None = None

    @property
    def experts(self) -> int:
        return len(self._agents.owner)

    @property
    def gives_quantiles(self) -> bool:
        return self._agents.gives_quantiles

    @property
    def step(self) -> int:
        return self._history.step

    @property
    def answer(self) -> Answer:
        """The answer to the last input."""
        if self._row is None:
            raise NotAsPublished(f"no input of step {self.step} was published")
        return self._row.answer

    @property
    def last_input(self) -> int:
        """The step of the last input."""
        return self.step if self._row is not None else self.step - 1

    @property
    def between_rows(self) -> bool:
        """Whether the last row is over and the next has not begun."""
        return self._row is None and self._lessons is None

    def revised(self) -> bool:
        """Whether blocks were refitted before the present row."""
        return self.answer.forecasts.stopped is not None

    def recalled(self) -> np.ndarray:
        """The present decoders' forecasts for the rows of the lesson that awaits sums, (variants, y_dim, horizon)."""
        if self._asked is None:
            raise NotAsPublished("no label waits for sums of what decoders recall")
        return self._agents.recall(self._asked.steps)[:, 0]

    def take(self, event: Input | Sums | Label | LateLabel | Recalled) -> None:
        """Take one event of the log."""
        if (self._lessons is None) == isinstance(event, Recalled):
            what = "no label waits for it" if self._lessons is None else "the sums of the last label are missing"
            raise NotAsPublished(f"{type(event).__name__}: {what}")
        if isinstance(event, Input):
            self._begin_row(event)
        elif isinstance(event, Sums):
            self._take_sums(event)
        elif isinstance(event, Label):
            self._end_row(event)
        elif isinstance(event, LateLabel):
            self._learn_late(event)
        else:
            self._resume(event)

    def _begin_row(self, event: Input) -> None:
        self._check_step("input", event.step)
        check_shape("input.x", event.x, (self.form.x_dim,))
        row = self._row
        if row is not None:
            if row.input.x.tobytes() != event.x.tobytes():
                raise NotAsPublished(f"input: a second one for step {event.step}")
            if row.late == self._late:
                raise NotAsPublished(f"input: the same again for step {event.step}, and nothing has changed")
        before = self._rows.refresh()
        if before is not None:
            self._agents.relearn(before, np.ones(1, dtype=bool))
            self._rows.relearn(self._server, before)
        self._history.put_input(event.x, event.time)
        said = self._agents.forecast(event.x)
        self._row, self._fresh = _Row(event, self._answer(said), self._late, None), True

    def _answer(self, said: AgentForecasts) -> Answer:
        contributions = said.contributions
        assert contributions is not None
        raw, leverage = self._agents.contributed[:, 0], contributions.leverage[:, 0]
        terms = [raw, leverage]
        if self.form.horizon > 1:
            recalled = self._agents.recall(self._history.step - np.arange(self.form.horizon))[:, 0]
            recalled[..., 0] = raw[:-1, :, 0]  # the present row is not in memory yet
            terms.append(recalled)
        if said.stopped is not None:
            terms.append(said.stopped)
        return Answer(tuple(terms), said, self._agents.expected_distance(), said.absent.get(0, ""))

    def _take_sums(self, event: Sums) -> None:
        self._check_step("sums", event.step)
        row, form, usual = self._row, self.form, self._history.scales.change
        if row is None or row.sums is not None:
            raise NotAsPublished(f"sums: {'no input' if row is None else 'second sums'} of step {event.step}")
        wanted = (form.said, form.leverage, form.recalled if form.horizon > 1 else None,
                  form.stopped if self.revised() else None)  # fmt: skip
        for field, array, shape in zip(Sums._fields[3:], event[3:], wanted, strict=True):
            if (array is None) != (shape is None):
                raise NotAsPublished(
                    f"sums.{field}: got {'nothing' if array is None else 'numbers'}, expected otherwise"
                )
            if shape is not None and array is not None:
                check_numbers(f"sums.{field}", array, shape)
        check_leverage("sums.leverage", event.leverage, len(self.opening.names), form)
        check_fit(event, row, self._name, self.opening.names, usual)
        if event.stopped is not None:
            self._server.take_over(event.stopped)
        if self._name in event.absent:
            self._agents.sit_out()
        total = Contributions(event.said[:, None], event.leverage[:, None])
        self._server.forecast(total, self._agents.public_now, usual)
        self._row = row._replace(sums=event)

    def added_up_with(self, players: frozenset[str]) -> None:
        """Record that the present row's terms are sent under masks with these agents."""
        assert self._row is not None
        self._row = self._row._replace(players=players)

    def _end_row(self, event: Label) -> None:
        self._check_step("label", event.step)
        if self._row is None or self._row.sums is None:
            raise NotAsPublished(f"label: of step {event.step}, whose sums were not published before")
        if (event.target is None) == (event.stand_in is None):
            raise NotAsPublished("label: got both or none of a target and what stands in for it")
        known = event.stand_in if event.target is None else event.target
        assert known is not None
        check_numbers("label", known, (self.form.y_dim,))
        self._lessons = self._learnt(self._rows.learn(event.target, known))
        self._resume(None)

    def _learn_late(self, event: LateLabel) -> None:
        check_numbers("late_label", event.target, (self.form.y_dim,))
        if not 0 <= event.step < self.step:
            raise NotAsPublished(f"late_label: of step {event.step}, and the present one is {self.step}")
        lessons = self._rows.learn_late(event.step, event.target)
        if lessons is None:
            raise NotAsPublished(f"late_label: of step {event.step}, which is known, too long ago, or far off")
        self._late += 1
        self._lessons = self._learnt(lessons)
        self._resume(None)

    def _resume(self, event: Recalled | None) -> None:
        if event is not None and event.said is not None:
            check_numbers("recalled.said", event.said, self.form.recalled)
        assert self._lessons is not None
        try:
            self._asked = next(self._lessons) if event is None else self._lessons.send(event)
        except StopIteration:
            self._asked = self._lessons = None

    def _learnt(self, parts: Iterator[RowEnd | Lesson]) -> Generator[Lesson, Recalled, None]:
        """Learn from a label. Yields each lesson whose sums are not known yet, and is sent the sums."""
        row = self._row
        for part in parts:
            if isinstance(part, RowEnd):
                self._agents.add_row(part.label, part.taught)
                self._server.add_row(part.step, part.taught, self._agents.public_gain)
                self._row = None
            elif part.taught:
                self._agents.learn(part.steps, part.changes * self._history.scales.inverse_change[:, None], part.known)
                self._agents.teach(part.step, part.target)
                if part.in_time and self._fresh:
                    assert row is not None
                    assert row.sums is not None
                    known = row.sums.said[:-1] if row.sums.recalled is None else row.sums.recalled
                    sums = Recalled(known, row.sums.excluded)
                else:
                    sums = yield part
                self._fresh = False
                if sums.said is not None:
                    self._learn_jointly(part, sums.said, self._name in sums.excluded)

    def _learn_jointly(self, lesson: Lesson, total: np.ndarray, excluded: bool) -> None:
        _, _, steps, known, changes, _, _ = lesson
        usual = self._history.scales.change
        own = self._agents.recall(steps)[:, 0] * usual[:, None] if excluded else None
        value, factor = self._server.residual(steps, changes, known, total, usual)
        if own is not None:  # its own part, which the sums do not include
            value = value - factor * own
        self._agents.learn_jointly(steps, value[:, None])

    def _check_step(self, what: str, step: int) -> None:
        if step != self.step:
            raise NotAsPublished(f"{what}: of step {step}, and the present one is {self.step}")

    def save(self) -> dict[str, np.ndarray]:
        """The state between two rows: see `between_rows`."""
        assert self.between_rows
        return {"late": np.array(self._late)} | saved_parts(self._parts())

    def restore(self, fields: Fields) -> None:
        self._late = int(fields.take("late", (), dtype=np.int64, min=0))
        restore_parts(self._parts(), fields)

    def _parts(self) -> list[tuple[str, Any]]:
        return [("rows.", self._rows), ("agents.", self._agents), ("server.", self._server)]
