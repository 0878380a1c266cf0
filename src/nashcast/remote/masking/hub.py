"""The hub's transport for masked terms: it decodes sums over agents, and sees no individual terms.

A step's game is played in attempts, each by a set of agents. If an agent is lost, the agents' own rule (`rule`)
determines the players of the next attempt; if the rule allows none, the step has no game, and the reason is recorded.
If not all agents are expected to answer, the hub first asks for forecasts and then begins the game with those present.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from nashcast.agents.protocol import Answer, Invitation
from nashcast.errors import InvalidInput
from nashcast.federation.lookback.algorithm import LookbackGame
from nashcast.federation.lookback.transport import AgentLost, NoGame, Players
from nashcast.remote.hub.lookback.batched_transport import HubPost
from nashcast.remote.masking.masks import MasksDoNotCancel, sum_masked, told
from nashcast.remote.masking.rule import least_present, next_present, why_thin
from nashcast.remote.wire.messages import (
    Backward,
    Call,
    Dimensions,
    JoinGame,
    Masking,
    Refused,
    Turn,
)
from nashcast.remote.wire.shapes import terms_shapes
from nashcast.remote.wire.transport import Failure

log = logging.getLogger(__name__)


def check_masked(game: LookbackGame | None, y_dim: int, agents: int) -> None:
    """Check that a federation can play this game under masks."""
    if game is None or game.placement != "spread":
        got = "True without a game" if game is None else f"True with a {game.placement} game"
        raise InvalidInput("masked", got, "Pass game=LookbackGame(placement='spread'): only its terms are added up.")
    least = least_present(game.lookback, y_dim)
    if agents < least:
        got = f"True with {agents} agents, a look-back of {game.lookback} and y_dim {y_dim}"
        raise InvalidInput("masked", got, f"It takes {least} agents: have more of them, or a shorter look-back.")


class _Attempts:
    """The attempts of the present step."""

    def __init__(self):
        self.tried: list[frozenset[str]] = []
        self.order: list[int] = []  # agents of the last attempt
        self.within: frozenset[str] | None = None  # agents that may play in the next attempt
        self.noisy, self.window = False, b""
        self.refused: dict[int, str] = {}
        self.failed = ""


class MaskedHubPost(HubPost):
    """`HubPost` for masked spread games."""

    def __init__(self, *arguments: Any, **settings: Any):
        super().__init__(*arguments, **settings)
        self._attempts = _Attempts()
        self._given: dict[int, dict[str, bytes]] = {}  # the keys sent to each agent, and its own as known to the hub
        self._ahead, self._complete = False, True

    def players(self) -> frozenset[int]:
        """The agents that can play in this step."""
        now = self._attempts
        able = {i for i in super().players() if self._peers[i].public_key is not None and i not in now.refused}
        return frozenset(i for i in able if now.within is None or self._names[i] in now.within)

    def why_nobody(self) -> str:
        return self._without("nobody is there who could play").args[0]

    def forecasts(self, players: Players, x: np.ndarray) -> list[Answer]:
        now = self._now()
        if not now.answers:
            expected = self._complete and all(self._peers[i].introduced is not None for i, _ in players)
            self._ahead = now.game is not None and expected and bool(np.isfinite(x).all()) and self._opens(now.players)
        answers = super().forecasts(players, x)
        self._complete = all(answer.forecast is not None for answer in answers)
        if refused := {i: told.reason for (i, _), told in now.ahead.items() if isinstance(told, Refused)}:
            self._set_aside(refused)
            raise AgentLost
        return answers

    def ask_sums(self, kind: str, players: Players, *arguments: Any) -> list[np.ndarray]:
        places = {self._names[i]: i for i, _ in players}
        messages = dict(zip(places, self.ask_all(kind, players, *arguments), strict=True))
        shapes = terms_shapes(self._dimensions(players[0][0]), Backward(*arguments))
        try:
            return sum_masked(messages, shapes, messages.keys())
        except MasksDoNotCancel as error:
            if error.odd and 2 * len(error.odd) < len(messages):
                self._set_aside({places[name]: "its message is not of the others' round" for name in error.odd})
                raise AgentLost from None
            # The agents' keys do not agree: all agents are asked for their keys again before the next step.
            self._set_aside(dict.fromkeys(places.values(), str(error)))
            self._attempts.failed = str(error)
            raise self._without(str(error)) from None

    def _opens(self, players: Collection[int]) -> bool:
        try:
            self._open(players)
        except (AgentLost, NoGame):
            return False
        return True

    def _open(self, players: Collection[int]) -> None:
        """Begin an attempt with these agents, or continue theirs: messages sent in it before are repeated unchanged."""
        now, attempts = self._now(), self._attempts
        names, window = frozenset(self._names[i] for i in players), told(now.window.targets, now.window.weights)
        if attempts.failed:
            raise self._without(attempts.failed)
        if not attempts.tried:
            attempts.noisy, attempts.window = any(self._varies_at(i) for i in players), window
        if window != attempts.window:
            raise self._without("a late label has changed the window since this step's first game")
        if attempts.tried and names == attempts.tried[-1]:
            return
        least = least_present(self._line.lookback, self._line.y_dim, attempts.noisy)
        if not attempts.tried and len(names) < least:
            raise self._without(f"{len(names)} agents can play; it takes {least}")
        kept = names
        if attempts.tried:
            kept = next_present(attempts.tried, attempts.tried[-1] - names, now.number, least)
            if kept is None:
                raise self._without(f"{len(names)} of {len(attempts.tried[0])} agents can play on; it takes more")
        order = [i for i, name in enumerate(self._names) if name in kept]
        if thin := why_thin(now.window.weights[:, order], least):
            raise self._without(thin)
        attempts.within = kept
        if kept != names:
            raise AgentLost
        attempts.tried.append(kept)
        attempts.order = order
        now.ahead = {(i, kind): found for (i, kind), found in now.ahead.items() if kind != "backward"}

    def _first_moves(self, i: int) -> list[Call]:
        now, attempts = self._now(), self._attempts
        if not self._ahead or i not in attempts.order:
            return []
        now.invited[i] = attempts.noisy
        targets, weights = now.window.targets, np.ascontiguousarray(now.window.weights[:, i])
        return [JoinGame(Invitation(targets[1:], weights, targets[0], attempts.noisy), self._masking(i)), Backward(0)]

    def _varies(self, asked: dict[int, tuple]) -> list:
        return [self._attempts.noisy] * len(asked) if self._attempts.tried else super()._varies(asked)

    def _join_game(self, asked: dict[int, tuple]) -> list:
        self._open(asked.keys())
        now = self._now()
        for i, (invitation,) in asked.items():
            if (i, "backward") not in now.ahead:
                now.waiting[i], now.invited[i] = [JoinGame(invitation, self._masking(i))], invitation.noisy
        return [None] * len(asked)

    def _masking(self, i: int) -> Masking:
        order, known = self._attempts.order, self._known(i)
        keys = {self._names[j]: self._peers[j].public_key or b"" for j in order}
        new = {name: key for name, key in keys.items() if known.get(name) != key}
        weights = np.ascontiguousarray(self._now().window.weights[:, order])
        return Masking(len(self._attempts.tried) - 1, tuple(keys), weights, tuple(new), tuple(new.values()))

    def _known(self, i: int) -> dict[str, bytes]:
        """The keys that an agent has; none if its own key has changed since they were sent."""
        known = self._given.get(i, {})
        return known if known.get(self._names[i]) == self._peers[i].public_key else {}

    def _ask_agents(self, kind: str, asked: dict[int, Call]) -> dict[int, Any]:
        found = super()._ask_agents(kind, asked)
        if refused := {i: result.reason for i, result in found.items() if isinstance(result, Refused)}:
            self._set_aside(refused)
            raise AgentLost
        return found

    def _results(self, i: int, turn: Turn, data: bytes | Failure) -> dict[str, Any] | Failure:
        found = super()._results(i, turn, data)
        if isinstance(found, dict):
            if "begin" in found:
                self._peers[i].public_key = found["begin"].public_key
            for call in turn.calls:
                if isinstance(call, JoinGame) and call.masking is not None and isinstance(found.get("backward"), bytes):
                    self._given[i] = self._known(i) | dict(zip(call.masking.named, call.masking.keys, strict=True))
        return found

    def _dimensions(self, i: int) -> Dimensions:
        return super()._dimensions(i)._replace(masked=True)

    def _learn(self, asked: dict[int, tuple]) -> list:
        self._attempts = _Attempts()
        return super()._learn(asked)

    def _set_aside(self, refused: Mapping[int, str]) -> None:
        """Exclude these agents from the game of this step; they are asked for their keys before the next step."""
        for i, reason in refused.items():
            log.warning("step %d: %s plays no game: %s", self._now().number, self._names[i], reason)
            self._peers[i].introduced = None
        self._attempts.refused |= refused
        self._now().ahead = {(i, kind): found for (i, kind), found in self._now().ahead.items() if i not in refused}

    def _without(self, why: str) -> NoGame:
        refused = self._attempts.refused
        told = next((f" ({self._names[i]}: {reason})" for i, reason in refused.items() if reason != why), "")
        return NoGame(f"masks: {why.rstrip('.')}{told}")
