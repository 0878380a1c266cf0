"""The interface between a federation and the loop that takes its steps, and the loop of the joint game."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any, Protocol

import numpy as np

from nashcast import validation as check
from nashcast.agents.agent import Agent, checked_agents
from nashcast.agents.history import History
from nashcast.agents.local_agents import LocalAgents
from nashcast.agents.season import LONGEST_SEASON
from nashcast.errors import InvalidInput
from nashcast.federation.forecast import Forecast, Scored
from nashcast.federation.incoming.columns import Columns
from nashcast.federation.incoming.objects import object_columns
from nashcast.federation.incoming.stream_start import FIRST, MOST_WAITING, begin_again
from nashcast.federation.lookback.transport import Message
from nashcast.federation.loop import Loop, Settings
from nashcast.federation.rules import mixture_of
from nashcast.federation.views.deferred_trust import DeferredTrust
from nashcast.federation.views.trust import TrustLog
from nashcast.fields import Fields
from nashcast.games.joint import JointGame
from nashcast.mixing.expert_rule import RuleFactory, rule_name


class StepLoop(Protocol):
    """Takes the steps of one stream: `forecast` and `learn` alternate. `Loop` and `PaperLoop` are such loops."""

    members: list[str]  # names of the members whose forecasts are mixed

    @property
    def step(self) -> int:
        """How many rows have been learnt, including those before the first known target."""
        ...

    @property
    def season(self) -> int | None: ...

    @property
    def suspect_labels(self) -> int: ...

    @property
    def gives_quantiles(self) -> bool:
        """Whether its agents give quantiles, and so an expected distance between forecasts and targets."""
        ...

    @property
    def trust(self) -> TrustLog | DeferredTrust: ...

    @property
    def included(self) -> np.ndarray:
        """Which members take part in the game at present, (members,)."""
        ...

    @property
    def transcript(self) -> Sequence[Message]:
        """Every message between server and agents so far, if recorded."""
        ...

    def forecast(self, x: np.ndarray, time: float = ..., objects: Mapping[str, Any] = ...) -> Forecast:
        """Forecast from the present input and all labels so far. The same input again gives the same forecast."""
        ...

    def own_forecasts(self) -> np.ndarray:
        """Each member's own forecasts, (members, horizon, y_dim); after `forecast`."""
        ...

    def learn(self, target: np.ndarray | None) -> list[Scored]:
        """Learn the label of the present row, None if it is not known (yet). Returns the forecasts that it scores."""
        ...

    def learn_late(self, step: int, target: np.ndarray) -> list[Scored] | None:
        """Learn the label of an earlier step. Returns the forecasts that it scores; None if it is not learnt from."""
        ...

    def save(self) -> dict[str, np.ndarray]: ...

    def restore(self, fields: Fields) -> None:
        """Continue as saved, bit for bit. Raises InvalidInput; then this object must be discarded."""
        ...


class LoopFactory(Protocol):
    """Makes the loop of a federation, when its stream begins and when its state is loaded."""

    horizon: int
    names: list[str]  # the agents' names, as far as they are known before the stream begins
    objects: tuple[str, ...]  # columns of texts and pictures that the agents ask for

    @property
    def members(self) -> int:
        """How many forecasts are mixed."""
        ...

    def begin(self, columns: Columns, start: np.ndarray, first_step: int) -> StepLoop:
        """start: the first known target.   first_step: how many rows came before."""
        ...

    def resumed(self, columns: Columns, y_dim: int, fields: Fields) -> StepLoop:
        """A loop that goes on as saved. Raises InvalidInput."""
        ...

    def begin_again(
        self, loop: StepLoop, objects: Sequence[Mapping[str, Any]], columns: Columns
    ) -> tuple[StepLoop, list[Scored]] | None:
        """After each row: a loop that learnt the first rows without outliers, if that is due, and what it scored.

        objects: those that came with the last rows.
        """
        ...

    def fingerprint(self) -> dict[str, Any]:
        """What two federations must have in common to exchange their states, in JSON types."""
        ...

    def unchanged_if_refused(self, loop: StepLoop | None) -> AbstractContextManager[None]:
        """A context in which another loop is made and restored; if that fails, this one goes on as it was."""
        ...


def joint_settings(game: JointGame | None, mixing: str | RuleFactory, horizon: int, season: int | None, seed: int):
    """The settings of a loop of the joint game, checked."""
    if game is not None and not isinstance(game, JointGame):
        remedy = "Pass nashcast.JointGame(…) or None; for a look-back game call nashcast.paper_federation."
        raise InvalidInput("game", check.describe(game), remedy)
    if season is not None:
        check.integer("season", season, min=2, max=LONGEST_SEASON)
    check.integer("horizon", horizon, min=1, max=MOST_WAITING)
    if horizon > 1 and game is not None and game.window is not None:
        raise InvalidInput("horizon", f"{horizon} with a window", "Pass horizon=1, or JointGame() without a window.")
    return Settings(game, horizon, season, check.integer("seed", seed, min=0), mixture_of(mixing))


def described(settings: Settings) -> dict[str, Any]:
    """What two loops must have in common to exchange their states."""
    return {
        "game": None if settings.game is None else repr(settings.game),
        "horizon": settings.horizon,
        "season": settings.season,
    }


class JointLoopFactory:
    """The loop of the joint game, or of agents that each learn alone. Arguments as in `Federation`."""

    def __init__(
        self,
        agents: Sequence[Agent],
        *,
        game: JointGame | None,
        mixing: str | RuleFactory,
        horizon: int,
        season: int | None,
        seed: int,
    ):
        self.agents = checked_agents(agents)
        self._settings = joint_settings(game, mixing, horizon, season, seed)
        self.horizon = self._settings.horizon
        self._mixing = rule_name(mixing)
        self.names = [agent.name for agent in self.agents]
        self.objects = object_columns(self.agents)

    @property
    def members(self) -> int:
        return 1 + len(self.agents) + (self._settings.game is not None)

    def begin(self, columns: Columns, start: np.ndarray, first_step: int) -> Loop:
        s = self._settings

        def make_agents(history: History) -> LocalAgents:
            return LocalAgents(self.agents, history, s.game, s.horizon, columns.x_names, s.seed)

        return Loop(make_agents, columns.x_dim or 0, start, s, first_step)

    def resumed(self, columns: Columns, y_dim: int, fields: Fields) -> Loop:
        loop = self.begin(columns, np.zeros(y_dim), 0)
        loop.restore(fields)
        return loop

    def begin_again(
        self, loop: StepLoop, objects: Sequence[Mapping[str, Any]], columns: Columns
    ) -> tuple[Loop, list[Scored]] | None:
        assert isinstance(loop, Loop)
        if loop.history.length != FIRST:
            return None
        return begin_again(loop, list(objects), partial(self.begin, columns))

    def fingerprint(self) -> dict[str, Any]:
        agents = [[agent.name, [repr(type(one).__name__) for one in agent.encoders]] for agent in self.agents]
        return {"agents": agents, "mixing": self._mixing, **described(self._settings)}

    def unchanged_if_refused(self, loop: StepLoop | None) -> AbstractContextManager[None]:
        return nullcontext()  # a new loop shares nothing with the old one
