"""The hub's transport: sends the federation's messages to all remote agents at once, in as few turns as possible.

Calls without a result are queued and sent before the next call with one. What a step certainly needs (the window's
features for a central game, the first terms for a spread one, the answer to the anchor) is asked for together with the
forecast. So a step costs one turn without a game or with a central one, one more if some agent does not share
its features and has to correct its forecast itself, and T + 1 with a spread game of look-back T.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from nashcast.agents.protocol import Answer, Invitation, Sync
from nashcast.errors import InvalidInput, SingularGame
from nashcast.federation.lookback.placements import NEEDED
from nashcast.federation.lookback.transport import AgentLost, Opening, Players, Post
from nashcast.fields import Fields
from nashcast.remote.hub.lookback.corrected import corrected
from nashcast.remote.hub.lookback.sent_once import ToldOnce, note_refusals
from nashcast.remote.hub.lookback.step import Step
from nashcast.remote.hub.peer import Peer, restore_peers, save_peers
from nashcast.remote.wire.checks import check_reply
from nashcast.remote.wire.format import MalformedMessage, pack, unpack
from nashcast.remote.wire.messages import (
    MASKED,
    RESULTS,
    UNKNOWN,
    Adopt,
    Backward,
    Call,
    Dimensions,
    FinishGame,
    Forecast,
    JoinGame,
    Receive,
    Reply,
    Turn,
    View,
    kind_of,
)
from nashcast.remote.wire.number_limits import WILD, tame
from nashcast.remote.wire.transport import BeforeStep, Failure, Line, Run, Transport

# Prefix of the reason for an agent whose reply is invalid.
MALFORMED = "malformed reply"


class HubPost(Post):
    """opening: of the stream, whose agents are `Peer`s; its deadline is for each turn.   run: of the stream.

    before_step: called with each step and its input.
    turns: the number of rounds of turns.   traffic: bytes "down" to agents and "up" from them.
    """

    def __init__(
        self, opening: Opening, transport: Transport, run: Run, before_step: BeforeStep = lambda step, x: None
    ):
        super().__init__(opening)
        self._peers = cast(Sequence[Peer], opening.agents)
        self._transport, self._before_step, self._needed = transport, before_step, opening.needed
        self._run, self._line = run, Line(opening.x_dim, opening.y_dim, opening.lookback, run.number)
        self._present: Step | None = None
        self._told = ToldOnce()
        self.turns = 0
        self.traffic: Counter[str] = Counter(down=0, up=0)

    @property
    def run(self) -> int:
        """The number of the agents' run."""
        return self._line.run

    def prepare(self, step: int, x: np.ndarray) -> None:
        self._before_step(step, x)

    def players(self) -> frozenset[int]:
        """Agents that share enough for the game; they may change while the stream runs."""
        said, needed = [(i, peer.introduced) for i, peer in enumerate(self._peers)], self._needed
        if needed is None:
            return frozenset()
        return frozenset(i for i, agent in said if agent is not None and agent.lets_out(needed))

    def save(self) -> dict[str, np.ndarray]:
        return {**save_peers(self._peers), "run": np.array(self.run)}

    def restore(self, fields: Fields) -> None:
        run = int(fields.take("run", (), dtype=np.int64, min=0))
        if self._run.given and run != self.run:
            raise InvalidInput("path", "the state of another federation", f"Load that of run {self.run}.")
        restore_peers(self._peers, fields)
        self._line = self._line._replace(run=run)

    def begin_step(self, step, game, anchored, window, players, forecasts) -> None:
        super().begin_step(step, game, anchored, window, players, forecasts)
        self._present = Step(step, game, anchored, window, players, forecasts)

    def forecasts(self, players: Players, x: np.ndarray) -> list[Answer]:
        """All forecasts, or the reasons for their absence; from memory when the step is repeated."""
        now, who = self._now(), [i for i, _ in players]
        if not now.answers:
            new = {i for i in who if self._peers[i].introduced is None}
            results, failures = self._exchange({i: self._first_calls(i, x) for i in who})
            now.answers = {i: Answer(None, reason) for i, reason in failures.items()}
            for i, found in results.items():
                now.answers[i], now.features[i] = Answer(*found["forecast"][:2]), found["forecast"].features
                now.ahead |= {(i, kind): found[kind] for kind in ("view", "adopt", "backward") if kind in found}
            if any(self._may_play(i) for i in new if i in results):
                raise AgentLost  # new players: repeat the step with them
        return [Answer(None, now.lost[i]) if i in now.lost else now.answers[i] for i in who]

    def ask_all(self, kind: str, players: Players, *arguments: Any) -> list:
        return self.ask_each(kind, players, [arguments] * len(players))

    def ask_each(self, kind: str, players: Players, arguments: Sequence[tuple]) -> list:
        return getattr(self, f"_{kind}")({i: own for (i, _), own in zip(players, arguments, strict=True)})

    def _first_calls(self, i: int, x: np.ndarray) -> list[Call]:
        """The call for a forecast, and for what else the step will need."""
        now = self._now()
        central = now.game is not None and now.game.placement == "central"
        calls: list[Call] = [Forecast(x, central)]
        if now.game is None:
            return [*calls, Adopt(Sync(self._told.anchor(now), None))] if now.anchored else calls
        if i not in now.players:
            return calls
        return [*calls, View()] if central else [*calls, *self._first_moves(i)]

    def _first_moves(self, i: int) -> list[Call]:
        """The calls that begin a spread game."""
        now = self._now()
        if not self._told.may_invite(now):
            return []
        now.invited[i] = noisy = any(self._varies_at(j) for j in now.players)
        targets, weights = now.window.targets, np.ascontiguousarray(now.window.weights[:, i])
        return [JoinGame(Invitation(targets[1:], weights, targets[0], noisy)), Backward(0)]

    def _may_play(self, i: int) -> bool:
        game, introduced = self._now().game, self._peers[i].introduced
        return game is not None and introduced is not None and introduced.lets_out(NEEDED[game.placement])

    def _varies_at(self, i: int) -> bool:
        introduced = self._peers[i].introduced
        return introduced is not None and introduced.varies

    def _view(self, asked: dict[int, tuple]) -> list:
        return self._from_ahead("view", asked, View)

    def _varies(self, asked: dict[int, tuple]) -> list:
        return [self._varies_at(i) for i in asked]

    def _adopt(self, asked: dict[int, tuple]) -> list:
        """The hub computes the answers of agents that share features, and informs them at the end of the step."""
        now, answers, ask = self._now(), {}, {}
        if now.game is None:
            return self._from_ahead("adopt", asked, Adopt)
        for i, (sync,) in asked.items():
            known = corrected(sync, self._peers[i].introduced, now.features.get(i))
            if known is not None:
                answers[i] = known
            else:
                ask[i] = Adopt(sync._replace(past=None))  # the past is rewritten when the step ends
        self._told.check_syncs(now, ask)
        now.moved |= ask.keys()
        answers |= self._ask_agents("adopt", ask)
        note_refusals(now, self._names, {i: answers[i] for i in ask})
        now.syncs = {i: sync for i, (sync,) in asked.items() if answers[i].forecast is not None}
        return [answers[i] for i in asked]

    def _join_game(self, asked: dict[int, tuple]) -> list:
        now = self._now()
        self._told.check_game(now, asked)
        for i, (invitation,) in asked.items():
            if now.invited.get(i) != invitation.noisy or (i, "backward") not in now.ahead:
                now.ahead.pop((i, "backward"), None)
                now.waiting[i], now.invited[i] = [JoinGame(invitation)], invitation.noisy
        return [None] * len(asked)

    def _backward(self, asked: dict[int, tuple]) -> list:
        return self._from_ahead("backward", asked, Backward)

    def _receive(self, asked: dict[int, tuple]) -> list:
        self._told.sums_to(asked)
        return self._wait(asked, Receive)

    def _finish_game(self, asked: dict[int, tuple]) -> list:
        now = self._now()
        now.moved |= asked.keys()
        answers = self._from_ahead("finish_game", asked, FinishGame)
        now.finished = {i for i, answer in zip(asked, answers, strict=True) if answer.forecast is not None}
        return answers

    def _learn(self, asked: dict[int, tuple]) -> list:
        """The step is over: each agent is informed with its next turn."""
        now = self._now()
        for i, (target,) in asked.items():
            sync = now.syncs.get(i)
            if now.answers[i].forecast is None or i in now.lost:
                self._peers[i].miss()
                continue
            if sync is None and i in now.moved - now.finished:
                # It adopted the result of a game that was abandoned, and none followed: return to its own forecast.
                sync = Sync(now.stands[i], None)
            self._peers[i].close(sync, target)
        self._present = None
        return [None] * len(asked)

    def _learn_late(self, asked: dict[int, tuple]) -> list:
        for i, (ago, target) in asked.items():
            self._peers[i].learn_late(ago, target)
        return [None] * len(asked)

    def _wait(self, asked: dict[int, tuple], kind) -> list:
        checked = None
        for i, own in asked.items():
            if own is not checked and not tame(checked := own, WILD):
                raise SingularGame(own[0], np.inf)  # an agent's terms were too large: their sums are not sent
            self._now().waiting.setdefault(i, []).append(kind(*own))
        return [None] * len(asked)

    def _from_ahead(self, kind: str, asked: dict[int, tuple], call) -> list:
        """Results that were asked for ahead; the other agents are asked now."""
        now = self._now()
        # Views and anchors remain valid when a step is repeated; terms belong to one game.
        take = now.ahead.get if kind in ("view", "adopt") else now.ahead.pop
        found = {i: take((i, kind), None) for i in asked}
        found |= self._ask_agents(kind, {i: call(*asked[i]) for i in asked if found[i] is None})
        note_refusals(now, self._names, found)
        if kind == "view":
            now.ahead |= {(i, kind): view for i, view in found.items()}
        elif kind in MASKED and not all(map(tame, found.values())):
            raise SingularGame(0, np.inf)
        return [found[i] for i in asked]

    def _ask_agents(self, kind: str, asked: dict[int, Call]) -> dict[int, Any]:
        """Results by agent. An agent that does not answer is lost for the step, which is repeated without it."""
        now = self._now()
        results, failures = self._exchange({i: [*now.waiting.pop(i, []), call] for i, call in asked.items()})
        if failures:
            now.lost |= failures
            raise AgentLost
        return {i: found[kind] for i, found in results.items()}

    def _exchange(self, asked: dict[int, list[Call]]) -> tuple[dict[int, dict[str, Any]], dict[int, str]]:
        """One turn for each agent, all at once: results by kind, and the reasons for failures."""
        results, failures, now = {}, {}, self._now()
        if not asked:
            return results, failures
        first = {i: self._peers[i].opening(now.stands[i], self._line.run) for i in asked}
        turns = {i: Turn(now.number, (*first[i], *calls)) for i, calls in asked.items()}
        sent = {self._names[i]: pack(turn) for i, turn in turns.items()}
        self.turns += 1
        self.traffic["down"] += sum(map(len, sent.values()))
        received = self._transport.exchange(sent, self._deadline)
        for i, turn in turns.items():
            found = self._results(i, turn, received.get(self._names[i], Failure("no answer")))
            if isinstance(found, Failure):
                failures[i], self._peers[i].introduced = found.reason, None
            else:
                results[i] = found
        return results, failures

    def _results(self, i: int, turn: Turn, data: bytes | Failure) -> dict[str, Any] | Failure:
        """The results in a reply, by kind of call. They also confirm that the agent has done the whole turn."""
        if isinstance(data, Failure):
            return data
        self.traffic["up"] += len(data)
        peer = self._peers[i]
        try:
            reply = unpack(data, (Reply,))
            checked = check_reply(reply, turn, self._dimensions(i))
        except MalformedMessage as error:
            return Failure(f"{MALFORMED}: {error}")
        if reply.reason:
            return Failure(reply.reason)
        results: dict[str, Any] = dict(
            zip([kind_of(call) for call in turn.calls if kind_of(call) in RESULTS], checked, strict=False)
        )
        peer.introduced, peer.unsaid = results.get("begin", peer.introduced), []
        if self._keep:
            for call in turn.calls:
                self._write("server", peer.name, kind_of(call), [call])
            for kind, result in results.items():
                self._write(peer.name, "server", kind, [result])
        return results

    def _dimensions(self, i: int) -> Dimensions:
        line, introduced, noisy = self._line, self._peers[i].introduced, self._now().invited.get(i, False)
        features = UNKNOWN if introduced is None else introduced.features
        return Dimensions(line.x_dim, line.y_dim, features, line.lookback, noisy)

    def _now(self) -> Step:
        assert self._present is not None
        return self._present
