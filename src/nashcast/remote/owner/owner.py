"""The owner's side: turns in, replies out. All data that leaves an agent passes through here.

This module does no networking: `Owner.answer` takes the bytes of a turn and returns the bytes of the reply.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from nashcast.agents.agent import Agent
from nashcast.agents.lookback.paper_agent import PaperAgent
from nashcast.agents.protocol import Answer, Sync
from nashcast.errors import InvalidInput
from nashcast.federation.paper import as_paper_agent
from nashcast.federation.saving.double_buffered_file import DoubleBufferedFile
from nashcast.federation.saving.state_file import read_arrays, write_slot
from nashcast.remote.masking.masks import MaskRefused
from nashcast.remote.masking.owner import MaskSettings, OwnMasks
from nashcast.remote.owner.game_moves import GameMoves
from nashcast.remote.owner.missed_steps import Inputs, inputs_of_missed
from nashcast.remote.owner.outgoing import Sent, allowed, anchored_only, reason_of
from nashcast.remote.owner.turn_guard import GameRefused, NotHonest, TurnGuard
from nashcast.remote.wire.checks import NAME, NAME_WORDS, check_hello, check_turn
from nashcast.remote.wire.format import PROTOCOL, MalformedMessage, pack, unpack
from nashcast.remote.wire.messages import (
    RESULTS,
    Adopt,
    Begin,
    Call,
    Close,
    Dimensions,
    FinishGame,
    Forecast,
    Hello,
    Introduced,
    LearnLate,
    Missed,
    Refused,
    RemoteAnswer,
    Reply,
    Result,
    Turn,
    View,
    kind_of,
)

log = logging.getLogger("nashcast.remote")
# Maximum number of missed steps processed in one turn. An agent with more catches up over several turns, and sits out
# those steps too.
AT_ONCE = 10_000


class Owner:
    """Runs one agent for its owner.

    state: the file of the agent's state, written before the reply, so that a killed agent can resume; None to store
        nothing.   inputs: called as inputs(first, last) for the inputs of missed steps, for encoders with memory; it
        returns None for each that is not available. None to skip missed inputs.
    log: called with a description of every message sent.   masks: for masked games; with them, it plays no others.

    `sent` counts the bytes of numbers sent, by kind of call; all other bytes are counted as "envelope".
    """

    def __init__(
        self,
        agent: Agent | PaperAgent,
        *,
        state: str | Path | None = None,
        inputs: Inputs | None = None,
        log: Callable[[str], None] | None = None,
        masks: MaskSettings | None = None,
    ):
        if NAME.fullmatch(agent.name) is None:
            raise InvalidInput("name", repr(agent.name), f"Name the agent with {NAME_WORDS}: Agent(…, name=…).")
        self._agent, self._inputs, self._sent = as_paper_agent(agent), inputs, Sent(log)
        self._masks = None if masks is None else OwnMasks(agent.name, masks)
        self._state = None if state is None else DoubleBufferedFile(state)
        self._begun: Begin | None = None
        self._introduced: Introduced | None = None
        self._late = 0  # the number of the next late label
        self._game = GameMoves(self._agent, self._masks)
        self._guard: TurnGuard | None = None
        self._changed = False
        self._last: tuple[bytes, bytes] | None = None  # the last turn, and the reply
        if state is not None and Path(state).is_file():
            self._resume(Path(state))

    @property
    def sent(self) -> Counter[str]:
        return self._sent.bytes

    @property
    def run(self) -> int | None:
        """The number of its present run, if any."""
        return None if self._begun is None else self._begun.run

    def hello(self) -> bytes:
        """The message to the hub after each connection."""
        agent, begun = self._agent, self._begun
        at, run = (-1, -1) if begun is None else (agent.step, begun.run)
        public_key = None if self._masks is None else self._masks.public_key
        hello = Hello(PROTOCOL, agent.name, agent.share, public_key, at, run)
        check_hello(hello)
        return self._sent.hello(f"{agent.name}, shares {agent.share}, at step {at} of run {run}", pack(hello))

    def answer(self, data: bytes) -> bytes:
        """The reply to a turn. An invalid turn is answered with the reason, and changes nothing."""
        if self._last is not None and self._last[0] == data:
            return self._sent.reply(self._agent.step, "the same again", [], self._last[1])
        began, step, results, self._last = perf_counter(), 0, [], None
        try:
            turn = unpack(data, (Turn,))
            step = max(0, turn.step)
            check_turn(turn, self._agent.share, self._dimensions())
            results = self._carry_out(turn)
            reply = pack(Reply(step, tuple([result for _, result in results]), "", perf_counter() - began))
            reason = ""
            # The moves of a game are made once; a lost reply is sent again unchanged.
            self._last = data, reply
        except Exception as error:  # a black box may raise anything: the hub is informed, and the agent continues
            reason, results = reason_of(error), []
            reply = pack(Reply(step, (), reason, perf_counter() - began))
        return self._sent.reply(step, reason, results, reply)

    def _carry_out(self, turn: Turn) -> list[tuple[str, Result]]:
        results, self._changed = [], False
        try:
            for call in turn.calls:
                try:
                    result = self._unharmed(call, turn)
                except (MaskRefused, GameRefused) as error:
                    results.append((kind_of(call), Refused(reason_of(error))))
                    break  # it leaves the game, but its forecast remains valid
                if kind_of(call) in RESULTS:
                    result = allowed(self._agent, call, result)
                    results.append((kind_of(call), result))
                if isinstance(result, RemoteAnswer) and result.forecast is None:
                    break  # it sits out: it cannot adopt or play
        finally:
            if self._changed and self._state is not None:
                self._keep(self._state)
        return results if self._features() is not None else anchored_only(results)

    def _unharmed(self, call: Call, turn: Turn) -> Any:
        """Make one call. If it fails, the agent is restored: a black box runs before arrays are overwritten."""
        before = dict(vars(self._agent))
        try:
            return self._do(call, turn)
        except Exception:
            vars(self._agent).clear()
            vars(self._agent).update(before)
            raise

    def _do(self, call: Call, turn: Turn) -> Any:
        step = turn.step
        if isinstance(call, Begin):
            return self._begin(call, step)
        if isinstance(call, Close):
            return self._close(call)
        if isinstance(call, Missed):
            return self._miss(call)
        if isinstance(call, LearnLate):
            return self._learn_late(call)
        if self._agent.step != step:
            raise MalformedMessage(f"at step {self._agent.step}, not {step}")
        if isinstance(call, View):
            return self._agent.view()
        # Only the end of a game is saved: an agent killed within one sits that step out.
        self._changed = self._changed or isinstance(call, Forecast | Adopt | FinishGame)
        assert self._begun is not None and self._guard is not None  # noqa: PT018
        if isinstance(call, Forecast):
            self._guard.forecast(step, any(isinstance(other, Adopt) for other in turn.calls))
            return self._agent.forecast(call.x)
        if isinstance(call, Adopt):
            return self._adopt(call.sync, step)
        return self._game.play(call, step, self._begun, self._guard)

    def _begin(self, call: Begin, step: int) -> Introduced:
        """Begin a run, unless it has begun already: the hub asks for it whenever in doubt."""
        if self._begun is not None and self._begun.run == call.run:
            if call.settled() != self._begun.settled():
                raise MalformedMessage("begin: got other dimensions or another key than this run has begun with")
            assert self._introduced is not None
            return self._introduced
        if self._begun is not None:
            log.warning(
                "%s: begins anew, as the hub asks: run %d after %d", self._agent.name, call.run, self._begun.run
            )
        hello = self._agent.begin(call.x_dim, call.target, call.key, call.lookback)
        introduced = Introduced(hello.features, *self._agent.introduction(), self._agent.share)
        if self._masks is not None:
            self._masks.begin(after=step)
            introduced = introduced._replace(public_key=self._masks.public_key)
        self._begun, self._introduced, self._late, self._changed = call, introduced, 0, True
        self._game.clear()
        self._guard = TurnGuard(self._agent.share, call.lookback, call.target if step == 0 else None)
        self._begun_packed = np.frombuffer(pack(call), dtype=np.uint8)
        return introduced

    def _close(self, call: Close) -> None:
        if self._agent.step != call.step:
            return
        if not self._has_forecast():
            return self._miss(Missed(call.step, call.step))
        sync = call.sync
        if sync is not None and sync.decoder is not None and self._features() is None:
            sync = None  # it shares less than before: its own forecast remains valid
        assert self._guard is not None
        self._guard.close(call.step, sync, self._agent.place)
        if sync is not None:
            self._moved(sync)
        self._guard.learn(call.step, call.target)
        self._agent.learn(call.target)
        self._game.clear()
        self._changed = True

    def _miss(self, call: Missed) -> None:
        first = self._agent.step
        if not call.first <= first <= call.last:
            return
        last = min(call.last, first + AT_ONCE - 1)
        assert self._begun is not None
        missed = inputs_of_missed(self._inputs, first, last, self._begun.x_dim)
        for s in range(first, last + 1):
            self._agent.sit_out()
            if s in missed:
                self._agent.see(missed[s])
            self._agent.learn(None)
        self._game.clear()
        self._changed = True

    def _learn_late(self, call: LearnLate) -> None:
        if call.number < self._late:
            return
        if call.step < self._agent.step:
            self._agent.learn_late(self._agent.step - call.step, call.target)
            assert self._guard is not None
            self._guard.learn(call.step, call.target)
        self._late, self._changed = call.number + 1, True

    def _adopt(self, sync: Sync, step: int) -> Answer:
        assert self._guard is not None
        own = self._features()
        try:
            self._guard.adopt(step, sync)
        except NotHonest as error:
            if own is None:
                raise
            return Answer(None, reason_of(error))  # its forecast remains valid
        return self._moved(sync)

    def _moved(self, sync: Sync) -> Answer:
        own = self._features()
        if sync.decoder is not None and len(sync.decoder) != own:
            expected = "nothing where features are private" if own is None else f"{own}"
            raise MalformedMessage(f"adopt.decoder: got {len(sync.decoder)} numbers, expected {expected}")
        return self._agent.adopt(sync)

    def _has_forecast(self) -> bool:
        """False if it has lost its state since: then it sat the step out."""
        with suppress(InvalidInput):
            self._agent.raw_features()
            return True
        return False

    def _dimensions(self) -> Dimensions | None:
        if self._begun is None:
            return None
        x_dim, target, _, lookback, _ = self._begun
        return Dimensions(x_dim, len(target), self._features(), lookback, self._game.noisy)

    def _features(self) -> int | None:
        """The number of features, if it is shared with the hub."""
        introduced = self._introduced
        return introduced.features if introduced is not None and introduced.lets_out("moments") else None

    def _keep(self, file: DoubleBufferedFile) -> None:
        assert self._begun is not None
        arrays = {f"agent.{name}": value for name, value in self._agent.save().items()}
        about = {"agent": self._agent.name, "late": self._late}
        write_slot(file, {**arrays, "begun": self._begun_packed}, about)

    def _resume(self, path: Path) -> None:
        arrays, about = read_arrays(path)
        if about.get("agent") != self._agent.name:
            remedy = "Pass the file that this agent wrote, or another name for a new one."
            raise InvalidInput("state", f"{path.name}, of agent {about.get('agent')!r}", remedy)
        step = int(arrays["agent.step"])
        self._begin(unpack(arrays["begun"].tobytes(), (Begin,)), step)
        kept = {name.removeprefix("agent."): value for name, value in arrays.items() if name.startswith("agent.")}
        self._agent.restore(kept)
        self._late = int(about["late"])
