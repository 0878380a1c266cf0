"""An agent's moves in a spread game. Moves out of order are refused: their terms would belong to another game."""

from __future__ import annotations

from typing import Any

from nashcast.agents.lookback.paper_agent import PaperAgent
from nashcast.remote.hub.lookback.game_order import next_move
from nashcast.remote.masking.masks import MaskRefused
from nashcast.remote.masking.owner import OwnMasks
from nashcast.remote.owner.turn_guard import TurnGuard
from nashcast.remote.wire.format import MalformedMessage
from nashcast.remote.wire.messages import Begin, Call, FinishGame, JoinGame, Receive, kind_of


class GameMoves:
    """masks: with them the agent plays only the masked games that they admit; without, those that the guard admits."""

    def __init__(self, agent: PaperAgent, masks: OwnMasks | None):
        self._agent, self._masks = agent, masks
        self.clear()

    def clear(self) -> None:
        """No game is being played."""
        self._moves: list[Call] = []  # from join_game on

    @property
    def noisy(self) -> bool:
        """Whether any agent's features are random in the present game."""
        return any(isinstance(call, JoinGame) and call.invitation.noisy for call in self._moves)

    def play(self, call: Call, step: int, begun: Begin, guard: TurnGuard) -> Any:
        """Make one move and return its result. Raises MaskRefused or GameRefused for a game that is not admitted."""
        if self._masks is not None:
            self._masks.check(call, step, begun.run)
        elif isinstance(call, JoinGame) and call.masking is not None:
            raise MaskRefused("its owner has given it no masks.")
        if isinstance(call, JoinGame):
            return self._join(call, step, guard)
        place = () if isinstance(call, FinishGame) else call[:1]
        move, wanted = (kind_of(call), *place), next_move(len(self._moves), begun.lookback)
        if move != wanted:
            raise MalformedMessage(f"got {' '.join(map(str, move))}, expected {' '.join(map(str, wanted))}")
        if isinstance(call, Receive) and self._masks is None:
            guard.receive(call)
        result = getattr(self._agent, kind_of(call))(*call)
        if self._masks is not None:
            result = self._masks.after(call, result)
        self._moves = [] if isinstance(call, FinishGame) else [*self._moves, call]
        return result

    def _join(self, call: JoinGame, step: int, guard: TurnGuard) -> None:
        if self._agent.varies() and not call.invitation.noisy:
            raise MalformedMessage("join_game.noisy: got False, expected True: this agent's features vary")
        if self._masks is None:
            guard.join_game(step, call.invitation)
        self._agent.join_game(call.invitation)
        self._moves = [call]
