"""Algorithm 1 in the paper's order, from the server's side: it reaches agents through the protocol only."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from nashcast import validation as check
from nashcast.agents.protocol import Participant, Sync
from nashcast.errors import IllConditionedGame, InvalidInput, SingularGame
from nashcast.federation.lookback.placements import PLACEMENTS, Window
from nashcast.federation.lookback.transport import NoGame
from nashcast.games.lookback.game import Equilibrium
from nashcast.games.lookback.problem import Problem
from nashcast.mixing.expert_rule import AggregationRule
from nashcast.mixing.mixture_weights import mixture_weights
from nashcast.short_repr import short_repr


@dataclass(frozen=True)
class LookbackGame:
    """When and where the look-back game is played.

    lookback: steps it looks back (the paper's T).   every: steps between games (τ).
    placement: "central" (agents send their features, the server plays) or "spread" (each agent plays its own part and
        only its terms of sums leave it).
    rewrite_past: agents also replace their past forecasts by the game's (the paper's future work; central only).
    memory: the prior-centred game (central only). Its ridge pulls each agent's decoders towards the agent's own instead
        of towards 0, so the game corrects the agent's own decoder; and agents go on from the last target, with the
        game's last decoder. Meant for agents with `forgetting`: see docs/explanation/prior-centred-game.md.
    ridge: γ of the game, if not the agents' own (central only).
    solve: another game in place of Theorem 2 (central only): called with the `Problem` of the window, returns decoders
        (lookback, all features) in flat rows and forecasts (lookback + 1, agents, y_dim). See
        docs/how-to/write-a-game.md.
    """

    lookback: int = 3
    every: int = 1
    placement: str = "central"
    rewrite_past: bool = False
    memory: bool = False
    ridge: float | None = None
    solve: Callable[[Problem], tuple[np.ndarray, np.ndarray]] | None = None

    __repr__ = short_repr

    def __post_init__(self):
        if self.solve is not None and (not callable(self.solve) or self.placement != "central"):
            got = check.describe(self.solve) if not callable(self.solve) else "a function in a spread game"
            raise InvalidInput("solve", got, "Pass a function of the window's Problem, and placement='central'.")
        check.integer("lookback", self.lookback, min=1)
        check.integer("every", self.every, min=1)
        if self.placement not in PLACEMENTS:
            raise InvalidInput("placement", repr(self.placement), f"Pass one of {', '.join(PLACEMENTS)}.")
        if self.rewrite_past and self.placement != "central":
            raise InvalidInput("rewrite_past", "True in a spread game", "Pass placement='central'.")
        if self.memory and (self.placement != "central" or self.rewrite_past):
            got = "True in a spread game" if self.placement != "central" else "True with rewrite_past"
            raise InvalidInput("memory", got, "Pass placement='central' and rewrite_past=False.")
        if self.ridge is not None:
            check.number("ridge", self.ridge, above=0.0)
            if self.placement != "central":
                raise InvalidInput("ridge", f"{self.ridge:g} in a spread game", "Set each agent's own ridge instead.")


class Settings(NamedTuple):
    """How the server weighs and when it plays."""

    game: LookbackGame | None
    anchored: bool  # without a game, agents start each step from the last target instead of their last forecast
    ridge: float  # κ
    budget: float  # η
    players: frozenset[int] = frozenset()  # the agents that share what the game needs
    rule: AggregationRule | None = None  # weighs the agents instead of the paper's weights


NOT_FINITE, SINGULAR = "a forecast after it is not finite", "it has no unique equilibrium"
ILL_CONDITIONED = "its equilibrium cannot be computed accurately"


class ServerState(NamedTuple):
    """The state of the server. At step t, y_t is known (or stood in for) and y_{t+1} is asked for."""

    step: int
    forecasts: np.ndarray  # the agents' forecasts of y_t, (agents, y_dim)
    last_weights: np.ndarray  # w_{t-1}
    window: Window  # weights and targets of the last steps
    known: bool  # whether y_t is a label or the federation's own forecast standing in for it


class Step(NamedTuple):
    """One step of the algorithm."""

    forecast: np.ndarray  # the mixture's forecast of y_{t+1}
    weights: np.ndarray  # w_t, 0 for agents that sat out
    forecasts: np.ndarray  # the agents' forecasts of y_{t+1}; for those that sat out, their last ones
    absent: dict[int, str]  # agents that sat out, and why
    game: Equilibrium | None
    played: bool
    fell_back: str  # why some or all agents kept the greedy step though a game was due; else empty


def first_state(agents: int, target: np.ndarray, lookback: int) -> ServerState:
    """Every agent's forecast of y_0 is y_0."""
    window = Window(np.zeros((lookback, agents)), np.repeat(target[None], lookback + 1, axis=0))
    return ServerState(0, np.repeat(target[None], agents, axis=0), np.zeros(agents), window, True)


def game_due(game: LookbackGame | None, step: int) -> LookbackGame | None:
    """The game to be played in a step: every τ steps, once the window is full."""
    return game if game is not None and step >= game.lookback and step % game.every == 0 else None


def algorithm_one(agents: Sequence[Participant], state: ServerState, x: np.ndarray, settings: Settings, post) -> Step:
    """One step. `post` carries every message between server and agents, and may time or record them."""
    target = state.window.targets[-1]

    # Algorithm 1, "update experts": each agent fits its decoder to its own past, encodes x_t and forecasts.
    answers = post.forecasts(list(enumerate(agents)), x)
    absent = {i: answer.reason for i, answer in enumerate(answers) if answer.forecast is None}
    here = [i for i in range(len(agents)) if i not in absent]
    forecasts = state.forecasts.copy()
    for i in here:
        forecasts[i] = answers[i].forecast
    if not here:
        return Step(target.copy(), np.zeros(len(agents)), forecasts, absent, None, False, "")

    # Algorithm 1, "compute mixture weights": from the forecasts of y_t and y_t itself.
    weights = np.zeros(len(agents))
    if settings.rule is not None:
        pass  # see below: the rule may use the forecasts that it weighs
    elif state.known or not state.last_weights[here].any():
        past = state.forecasts if len(here) == len(agents) else state.forecasts[here]
        weights[here] = mixture_weights(past.T, target, ridge=settings.ridge, budget=settings.budget)
        if not np.isfinite(weights).all():  # products of large forecasts overflowed: equal weights
            weights[here] = settings.budget / len(here)
    else:  # y_t is unlabelled: keep the last weights, shared among the agents present
        weights[here] = state.last_weights[here]
        weights[here] += (settings.budget - weights.sum()) / len(here)

    # Algorithm 1, "synchronize local agents via Nash game": every τ steps, once the window is full.
    game, solved, played, fell_back = game_due(settings.game, state.step), None, False, ""
    if game is not None and any(i in settings.players for i in here):
        try:
            play = [i for i in here if i in settings.players]
            players = [(i, agents[i]) for i in play]
            # Algorithm 1, "correct local predictions": Ŷ_t from the game's end, its last decoder, and Z_t again.
            solved, corrected = PLACEMENTS[game.placement](players, state.window.of(play), post, game)
            played = True
            for i, answer in zip(play, corrected, strict=True):
                if answer.forecast is None:  # not finite after the game: this agent keeps its greedy forecast
                    fell_back = NOT_FINITE
                else:
                    forecasts[i] = answer.forecast
        except SingularGame as error:
            fell_back = ILL_CONDITIONED if isinstance(error, IllConditionedGame) else SINGULAR
        except NoGame as error:
            fell_back = str(error)
    elif settings.anchored:
        anchored = post.ask_all("adopt", [(i, agents[i]) for i in here], Sync(target, None))
        for i, answer in zip(here, anchored, strict=True):
            if answer.forecast is None:
                fell_back = NOT_FINITE
            else:
                forecasts[i] = answer.forecast

    if settings.rule is not None:
        weights = settings.rule.weights(np.isin(np.arange(len(agents)), here), forecasts)

    # Algorithm 1, last line: the ensemble's forecast of y_{t+1}.
    return Step(weights @ forecasts, weights, forecasts, absent, solved, played, fell_back)


def advance(state: ServerState, step: Step, target: np.ndarray | None) -> ServerState:
    """y_{t+1} is revealed, or the federation's own forecast stands in for it and is not learnt from."""
    known = target is not None
    weights = step.weights if known else np.zeros_like(step.weights)
    window = state.window.push(weights, step.forecast if target is None else target)
    return ServerState(state.step + 1, step.forecasts, step.weights, window, known)
