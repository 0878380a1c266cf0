"""The messages between an agent and the server. Nothing else of an agent is read outside it.

One round: `forecast`, then at times a game, then `learn`. A game is played in one of two places. Central: the server
asks for a `view`, plays, and sends the agent what to `adopt`. Spread: the agent plays its own part; it sends only its
terms of sums over agents (`backward`) and adopts its own result (`finish_game`).
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from nashcast.games.lookback.spread import Invitation

# The data an agent's owner lets it send, from least to most. Each includes those before it.
SHARES = ("joint", "forecasts", "sums", "moments", "features")
# Their meaning for an agent in another process, in one sentence.
SHARE_WORDS = {
    "joint": "only sums over agents are seen: its terms leave under masks, and no forecast of its own does",
    "forecasts": "the hub sees its forecasts, and its terms of sums in the joint game; other agents see sums",
    "sums": "the hub sees its forecasts, and its terms of sums in the paper's spread game",
    "moments": "the hub sees its forecasts, and means and covariances of its features",
    "features": "the hub sees its forecasts and its features",
}
PAPER_SHARES = SHARES[1:]  # Algorithm 1 mixes forecasts


class Hello(NamedTuple):
    """An agent's introduction. share: the data it may send, one of SHARES."""

    name: str
    features: int
    share: str = "features"

    def lets_out(self, share: str) -> bool:
        return SHARES.index(self.share) >= SHARES.index(share)


class Answer(NamedTuple):
    """An agent's forecast of the next target, (y_dim,), or None with the reason why it sits this step out."""

    forecast: np.ndarray | None
    reason: str = ""


class GameView(NamedTuple):
    """What the server needs to play the whole game for an agent: its last features, and their moments."""

    features: np.ndarray  # (lookback, y_dim, features); their expected values, if the agent shares no more
    means: np.ndarray | None
    covariance: np.ndarray | None
    ridge: float
    decay: float


class Sync(NamedTuple):
    """What the server asks an agent to adopt: its forecast of the present, and its decoder unless it keeps its own.

    past: the game's forecasts over the window, (lookback, y_dim), if the past is to be rewritten by them.
    """

    forecast: np.ndarray
    decoder: np.ndarray | None
    past: np.ndarray | None = None


class BackwardTerms(NamedTuple):
    """An agent's terms of the sums at one step back: F and f, and noise and surprise if features vary."""

    coupling: np.ndarray
    offset: np.ndarray
    tensor: np.ndarray
    surprise: np.ndarray


class BackwardSums(NamedTuple):
    """The server's reply: the functionals carried one step further, their shift, and the sums of noise and surprise."""

    carry: np.ndarray
    shift: np.ndarray
    tensor: np.ndarray
    surprise: np.ndarray


class Participant(Protocol):
    """The agent's side of the protocol."""

    def begin(self, x_dim: int, target: np.ndarray, key: int, lookback: int) -> Hello:
        """The stream starts: inputs have x_dim numbers, the first target is known; `key` seeds the agent's noise."""
        ...

    def forecast(self, x: np.ndarray) -> Answer:
        """Fit the decoder to the past, encode x, forecast. A second call gives the same result."""
        ...

    def sit_out(self) -> None:
        """The server goes on without this agent's answer to the present step."""
        ...

    def view(self) -> GameView:
        """The last `lookback` steps, for a game on the server."""
        ...

    def recall(self) -> np.ndarray:
        """Its own decoder, (features,): what a prior-centred game corrects. Asked for in such games only."""
        ...

    def adopt(self, sync: Sync) -> Answer:
        """Start again from the server's forecast of the present, and forecast anew."""
        ...

    def varies(self) -> bool:
        """Whether the agent's features are random, so that its part in a game adds noise."""
        ...

    def join_game(self, invitation: Invitation) -> None: ...

    def backward(self, back: int) -> BackwardTerms: ...

    def receive(self, back: int, sums: BackwardSums) -> None: ...

    def finish_game(self, totals: np.ndarray) -> Answer:
        """Play forward, and adopt the game's end. totals: sums of all agents' weights, (lookback,)."""
        ...

    def learn(self, target: np.ndarray | None) -> None:
        """The target that was forecast is revealed, or stays unknown for now."""
        ...

    def learn_late(self, steps_ago: int, target: np.ndarray) -> None:
        """The target of an earlier step is revealed; 1 is the last step that was learnt."""
        ...

    def save(self) -> dict[str, np.ndarray]:
        """All that `restore` needs to continue bit for bit."""
        ...

    def restore(self, saved: dict[str, np.ndarray]) -> None: ...
