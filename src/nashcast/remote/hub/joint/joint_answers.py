"""Reads and checks agents' answers in the joint game and collects them in arrays. Invalid answers count as absent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from nashcast.remote.hub.lookback.batched_transport import MALFORMED
from nashcast.remote.hub.roster import Roster
from nashcast.remote.masking.masks import MasksDoNotCancel, sum_masked
from nashcast.remote.masking.rule import LEAST
from nashcast.remote.wire.format import MalformedMessage, unpack
from nashcast.remote.wire.joint.joint_checks import (
    USUAL_EXPERTS,
    Form,
    check_leverage,
    check_own,
    check_said,
    check_terms,
)
from nashcast.remote.wire.joint.joint_messages import FORECAST, HELLO, NO_TERMS, Own, Said, Traits
from nashcast.remote.wire.transport import Failure

# Decodes an answer from an agent's name and bytes: the answer, a failure, or None if it answers an earlier question.
ReadAnswer = Callable[[str, bytes], Said | Failure | None]


class Collected(NamedTuple):
    """The answers of one round. terms: agents along axis 1, 0 for absent ones.

    lost_masks: why the sum of masked terms could not be decoded, or empty.
    """

    terms: list[np.ndarray]
    own: dict[int, Own]
    absent: dict[int, str]
    lost_masks: str = ""

    @staticmethod
    def of_nobody(shapes: list[tuple[int, ...]], agents: int, reason: str) -> Collected:
        terms = [np.zeros((shape[0], agents, *shape[1:])) for shape in shapes]
        return Collected(terms, {}, dict.fromkeys(range(agents), reason))


class Answers:
    """form: of the run's arrays.   experts: number of own forecasts of each agent, (agents,)."""

    def __init__(self, form: Form, roster: Roster, names: tuple[str, ...]):
        self._form, self._roster, self._names = form, roster, names
        self._traits: dict[str, Traits] = {}
        self._ready: set[str] = set()  # agents whose last answer was valid
        self.last_players: frozenset[str] = frozenset()
        self.experts = np.zeros(len(names), dtype=np.int64)
        self.masked, self.quantiles = np.zeros(len(names), dtype=bool), False

    def settle_traits(self) -> None:
        """At the start of a run: fix each agent's number of experts in the mixture, and which agents are masked."""
        for i, name in enumerate(self._names):
            self.masked[i] = self._roster.is_masked(name)
            known = self._traits.get(name)
            # An agent that has not connected yet gets places for the decoders of one encoder.
            self.experts[i] = 0 if self.masked[i] else USUAL_EXPERTS if known is None else known.experts
        self.quantiles = any(traits.quantiles for traits in self._traits.values())

    def players(self) -> frozenset[str]:
        """Masked agents that are expected to answer, if there are at least `LEAST`; else none."""
        roster = self._roster
        found = frozenset(name for name in self._ready if roster.is_masked(name) and roster.has_key(name))
        return found if len(found) >= LEAST else frozenset()

    def collect(
        self, replies: dict[str, Said | Failure], ask: str, shapes: list[tuple[int, ...]], players: frozenset[str]
    ) -> Collected:
        """The answers to a question, agents in order."""
        agents = len(self._names)
        found = Collected.of_nobody(shapes, agents, "no answer")
        hidden: dict[str, bytes] = {}
        for i, name in enumerate(self._names):
            said = replies.get(name, Failure("no answer"))
            self._ready.discard(name)
            if isinstance(said, Failure):
                found.absent[i] = said.reason
                continue
            self._ready.add(name)
            if said.traits is not None:
                self._traits[name] = said.traits
            try:
                reason = self._enter(i, said, ask, shapes, found, hidden)
            except MalformedMessage as error:
                reason = f"{MALFORMED}: {error}"
                self._ready.discard(name)
            if reason:
                found.absent[i] = reason
            else:
                del found.absent[i]
        self.last_players = players if ask == FORECAST else self.last_players
        return self._opened(found, hidden, players, shapes, ask) if players and ask != HELLO else found

    def read(self, run: int, number: int, name: str, data: bytes) -> Said | Failure | None:
        """An agent's answer to a question at this point of the log; None if it is to an earlier one."""
        try:
            said = unpack(data, (Said,))
            check_said(said)
        except MalformedMessage as error:
            return Failure(f"{MALFORMED}: {error}")
        if said.name != name or (said.reason and said.terms is not None):
            return Failure(f"{MALFORMED}: an answer in the name of {said.name!r:.80}")
        if said.reason:
            return Failure(said.reason)
        if said.run == run and said.number > number:
            return Failure(f"{MALFORMED}: at event {said.number}, not {number}")
        return said if (said.run, said.number) == (run, number) else None

    def _enter(self, i: int, said: Said, ask: str, shapes, found: Collected, hidden: dict[str, bytes]) -> str:
        """Enter one answer in the arrays. Returns why the agent counts as absent nevertheless, or an empty text."""
        name = self._names[i]
        if ask == HELLO:
            return ""
        if self._roster.is_masked(name):
            if said.terms is None:
                return f"masks: it takes {LEAST} agents that are there" if not self.last_players else "masks: just back"
            check_terms(said.terms, shapes, masked=True)
            assert isinstance(said.terms, bytes)
            hidden[name] = said.terms
            return ""
        terms: Any = None if said.terms == NO_TERMS else said.terms
        if terms is not None or said.terms is None:
            check_terms(said.terms, shapes, masked=False)
        if ask == FORECAST:
            if terms is not None:
                check_leverage("said.terms[1]", np.asarray(terms[1]), 1, self._form)
            experts = 0 if said.traits is None else said.traits.experts
            found.own[i] = check_own(said.own, experts, self._form)
        if terms is not None:
            for column, term in zip(found.terms, terms, strict=True):
                column[:, i] = term
        return ""

    def _opened(
        self, found: Collected, hidden: dict[str, bytes], players: frozenset[str], shapes, ask: str
    ) -> Collected:
        """Add the sum over masked agents, divided evenly among them: their individual terms are unknown."""
        places = [i for i, name in enumerate(self._names) if name in players]
        try:
            sums = sum_masked(hidden, shapes, players)
            if ask == FORECAST:  # owners refuse sums that are out of range
                check_leverage("the sum of leverages", sums[1], len(players), self._form)
        except (MasksDoNotCancel, MalformedMessage) as error:
            reason = f"masks: {error}"
            for i in places:
                found.absent.setdefault(i, reason)
            return found._replace(lost_masks=reason)
        for kept, total in zip(found.terms, sums, strict=True):
            kept[:, places] = total[:, None] / len(places)
        return found

    def save(self) -> dict[str, np.ndarray]:
        return {"experts": self.experts, "masked": self.masked, "quantiles": np.array(self.quantiles)}

    def restore(self, fields) -> None:
        agents = len(self._names)
        self.experts = fields.take("experts", (agents,), dtype=np.int64, min=0, max=1 << 16)
        self.masked = fields.take("masked", (agents,), dtype=np.bool_)
        self.quantiles = bool(fields.take("quantiles", (), dtype=np.bool_))
