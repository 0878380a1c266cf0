"""Algorithm 1 in the paper's order, from the server's side: it speaks to agents through the protocol only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from nashcast.agents.protocol import Participant, Sync
from nashcast.errors import InvalidInput, SingularGame
from nashcast.federation.placements import PLACEMENTS, Window
from nashcast.maths import check
from nashcast.maths.game import Equilibrium
from nashcast.maths.mixture import mixture_weights


@dataclass(frozen=True)
class Game:
    """When and where the look-back game is played.

    lookback: steps it looks back (Game T).   every: steps between games (τ).
    placement: "central" (agents send their features, the server plays) or "spread" (each agent plays its own part and
        only its terms of sums leave it).
    rewrite_past: agents also replace their past forecasts by the game's (the paper's future work; central only).
    """

    lookback: int = 3
    every: int = 1
    placement: str = "central"
    rewrite_past: bool = False

    def __post_init__(self):
        check.whole("lookback", self.lookback, least=1)
        check.whole("every", self.every, least=1)
        if self.placement not in PLACEMENTS:
            raise InvalidInput("placement", repr(self.placement), f"Pass one of {', '.join(PLACEMENTS)}.")
        if self.rewrite_past and self.placement != "central":
            raise InvalidInput("rewrite_past", "True in a spread game", "Pass placement='central'.")


class Settings(NamedTuple):
    """How the server weighs and when it plays."""

    game: Game | None
    anchored: bool  # without a game, agents start each step from the last target instead of their last forecast
    ridge: float  # κ
    budget: float  # η


class ServerState(NamedTuple):
    """All the server remembers. At step t, y_t is known (or stood in for) and y_{t+1} is asked for."""

    step: int
    forecasts: np.ndarray  # the agents' forecasts of y_t, (agents, y_dim)
    last_weights: np.ndarray  # w_{t-1}
    window: Window  # weights and targets of the last steps
    known: bool  # whether y_t is a label or the federation's own forecast standing in for it


class Step(NamedTuple):
    """One step of the algorithm."""

    forecast: np.ndarray  # the mixture's forecast of y_{t+1}
    weights: np.ndarray  # w_t, 0 for agents that sat out
    forecasts: np.ndarray  # the agents' forecasts of y_{t+1}; of those that sat out, where they stand
    absent: dict[int, str]  # agents that sat out, and why
    game: Equilibrium | None
    played: bool
    fell_back: bool  # a game was due but had no unique or no finite equilibrium: the greedy step stands


def first_state(agents: int, target: np.ndarray, lookback: int) -> ServerState:
    """Every agent's forecast of y_0 is y_0."""
    window = Window(np.zeros((lookback, agents)), np.repeat(target[None], lookback + 1, axis=0))
    return ServerState(0, np.repeat(target[None], agents, axis=0), np.zeros(agents), window, True)


def algorithm_one(agents: Sequence[Participant], state: ServerState, x: np.ndarray, settings: Settings, post) -> Step:
    """One step. `post` carries every message between server and agents, and may time or record them."""
    target = state.window.targets[-1]

    # Algorithm 1, "update experts": each agent fits its decoder to its own past, encodes x_t and forecasts.
    answers = [post.forecast(i, agent, x) for i, agent in enumerate(agents)]
    absent = {i: answer.reason for i, answer in enumerate(answers) if answer.forecast is None}
    here = [i for i in range(len(agents)) if i not in absent]
    forecasts = state.forecasts.copy()
    for i in here:
        forecasts[i] = answers[i].forecast
    if not here:
        return Step(target.copy(), np.zeros(len(agents)), forecasts, absent, None, False, False)

    # Algorithm 1, "compute mixture weights": from the forecasts of y_t and y_t itself.
    weights = np.zeros(len(agents))
    if state.known or not state.last_weights[here].any():
        past = state.forecasts if len(here) == len(agents) else state.forecasts[here]
        weights[here] = mixture_weights(past.T, target, ridge=settings.ridge, budget=settings.budget)
    else:  # y_t was never seen, so there is nothing to weigh by: keep the weights, shared among those who are here
        weights[here] = state.last_weights[here]
        weights[here] += (settings.budget - weights.sum()) / len(here)

    # Algorithm 1, "synchronize local agents via Nash game": every τ steps, once the window is full.
    game, solved, played, fell_back = settings.game, None, False, False
    due = game is not None and state.step >= game.lookback and state.step % game.every == 0
    if game is not None and due:
        try:
            players = [(i, agents[i]) for i in here]
            # Algorithm 1, "correct local predictions": Ŷ_t from the game's end, its last decoder, and Z_t again.
            solved, corrected = PLACEMENTS[game.placement](players, state.window.of(here), post, game.rewrite_past)
            played = True
            for i, answer in zip(here, corrected, strict=True):
                if answer.forecast is None:  # a wild game: this agent's greedy forecast stands
                    fell_back = True
                else:
                    forecasts[i] = answer.forecast
        except SingularGame:
            fell_back = True
    elif settings.anchored:
        for i in here:
            forecasts[i] = post.ask(i, "adopt", agents[i].adopt, Sync(target, None)).forecast

    # Algorithm 1, last line: the ensemble's forecast of y_{t+1}.
    return Step(weights @ forecasts, weights, forecasts, absent, solved, played, fell_back)


def advance(state: ServerState, step: Step, target: np.ndarray | None) -> ServerState:
    """y_{t+1} is revealed, or the federation's own forecast stands in for it and teaches nothing."""
    known = target is not None
    weights = step.weights if known else np.zeros_like(step.weights)
    window = state.window.push(weights, step.forecast if target is None else target)
    return ServerState(state.step + 1, step.forecasts, step.weights, window, known)
