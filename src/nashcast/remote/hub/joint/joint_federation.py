"""Remote agents as one federation that plays the joint game, with the same verbs and numbers as in one process."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any, cast

import numpy as np

from nashcast import validation as check
from nashcast.agents.arrangement import RESERVED, distinct
from nashcast.agents.history import History
from nashcast.errors import InvalidInput, NashcastError
from nashcast.federation.federation import Federation
from nashcast.federation.forecast import Scored
from nashcast.federation.incoming.columns import Columns
from nashcast.federation.incoming.stream_start import FIRST, begin_again
from nashcast.federation.loop import Loop
from nashcast.federation.loop_factory import StepLoop, described, joint_settings
from nashcast.federation.rules import ADAPTIVE
from nashcast.fields import Fields
from nashcast.games.joint import JointGame
from nashcast.mixing.expert_rule import RuleFactory, rule_name
from nashcast.remote.hub.joint.joint_agents import JointAgents, JointLine
from nashcast.remote.hub.roster import Roster
from nashcast.remote.wire.checks import NAME, NAME_WORDS, read_hello
from nashcast.remote.wire.joint.joint_messages import Opening
from nashcast.remote.wire.messages import Hello


class RemoteLoopFactory:
    """names: of the agents.   line: to them.   run: number of the first stream's run; random if None."""

    objects: tuple[str, ...] = ()

    def __init__(
        self, names: Sequence[str], line: JointLine, run: int | None, *, game: JointGame = JointGame(),  # noqa: B008
        mixing: str | RuleFactory = ADAPTIVE, horizon: int = 1, season: int | None = None, seed: int = 0,
    ):  # fmt: skip
        if not isinstance(game, JointGame) or game.window is not None:
            remedy = "Pass nashcast.JointGame(…) without a window, or LookbackGame(…) for the paper's game."
            raise InvalidInput("game", check.describe(game), remedy)
        self._settings = joint_settings(game, mixing, horizon, season, seed)
        self._mixing, self.horizon = rule_name(mixing), self._settings.horizon
        self.names = _checked_names(names)
        self._line, self._run, self.roster = line, run, Roster(self.names)

    @property
    def members(self) -> int:
        return 2 + len(self.names)

    def begin(self, columns: Columns, start: np.ndarray, first_step: int) -> Loop:
        run, self._run = secrets.randbits(63) if self._run is None else self._run, None
        self.roster.begin_run()

        def make_agents(history: History) -> JointAgents:
            agents = self._agents(history, columns, start, first_step, run)
            agents.introduce()
            return agents

        return Loop(make_agents, columns.x_dim or 0, start, self._settings, first_step)

    def resumed(self, columns: Columns, y_dim: int, fields: Fields) -> Loop:
        """The loop of a saved run. Agents are in the middle of it, and nothing is sent to them yet."""
        arrays, start = fields.rest(), np.zeros(y_dim)

        def make_agents(history: History) -> JointAgents:
            agents = self._agents(history, columns, start, 0, 0)
            agents.resume(Fields(arrays).part("agents.answers."))
            return agents

        loop = Loop(make_agents, columns.x_dim or 0, start, self._settings, 0)
        loop.restore(Fields(arrays))
        self.roster.begin_run()
        return loop

    def _agents(self, history: History, columns: Columns, start: np.ndarray, first_step: int, run: int) -> JointAgents:
        s, game = self._settings, self._settings.game
        assert game is not None
        names = tuple(columns.x_names or ())
        opening = Opening(
            tuple(self.names), columns.x_dim or 0, names, start, first_step, s.horizon, s.season, s.seed,
            game.forgetting, game.boldness, game.averaged, game.ridge, game.partial, game.largest_leverage,
        )  # fmt: skip
        return JointAgents(history, opening, self._line, self.roster, run)

    def begin_again(
        self, loop: StepLoop, objects: Sequence[Mapping[str, Any]], columns: Columns
    ) -> tuple[Loop, list[Scored]] | None:
        assert isinstance(loop, Loop)
        if loop.history.length != FIRST:
            return None
        return begin_again(loop, list(objects), partial(self.begin, columns))

    def fingerprint(self) -> dict[str, Any]:
        return {"agents": list(self.names), "elsewhere": True, "mixing": self._mixing, **described(self._settings)}

    def unchanged_if_refused(self, loop: StepLoop | None) -> AbstractContextManager[None]:
        return nullcontext()  # a new loop shares nothing with the old one


class JointHub:
    """names: of the agents, in order.   line: to them.   run: identifies the stream; random by default.

    on_learnt: called after each row and late label, when the public log is stored.   settings: as of `Federation`.
    `federation` has all verbs. An agent without a valid answer sits the step out; when it is back, it reads the missed
    events from the log.
    """

    def __init__(
        self, names: Sequence[str], line: JointLine, *, run: int | None = None,
        on_learnt: Callable[[], None] = lambda: None, **settings: Any,
    ):  # fmt: skip
        loop_settings = {name: settings.pop(name) for name in _OF_LOOP if name in settings}
        self._factory = RemoteLoopFactory(names, line, run, **loop_settings)
        self._line, self._on_learnt = line, on_learnt
        self.names = self._factory.names
        self.federation = Federation.over(self._factory, on_learnt=self._learnt, **settings)

    @property
    def loop(self) -> Loop | None:
        return cast(Loop | None, self.federation.loop)

    @property
    def agents(self) -> JointAgents | None:
        """The agents of the loop; None before the stream begins."""
        return None if self.loop is None else cast(JointAgents, self.loop.agents)

    @property
    def run(self) -> int:
        """The number of this run of the stream; -1 if none has begun."""
        return -1 if self.agents is None else self.agents.log.run

    @property
    def at(self) -> int:
        """The number of events in the public log."""
        return 0 if self.agents is None else self.agents.log.number

    @property
    def last_absent(self) -> tuple[object, dict[int, str]] | None:
        """An object that identifies the last step, and the agents that sat it out, with reasons."""
        return None if self.agents is None else self.agents.last_absent

    @property
    def traffic(self) -> dict[str, int]:
        """The number of rounds of questions, and the bytes published to agents and received from them."""
        rounds = 0 if self.agents is None else self.agents.rounds
        return {"turns": rounds, **self._line.traffic}

    def renew(self) -> None:
        """Begin another run from the present step on, for a hub with an older state. Agents and mixture begin anew.

        An agent's state depends only on the log of its run, so it cannot keep what it learnt in another.
        """
        if self.loop is None:
            raise NashcastError("the stream has not begun: no target is known yet.")
        history = self.loop.history
        self.federation.begin_anew(history.targets[history.now].copy())

    def greet(self, data: bytes, sender: str | None = None) -> Hello:
        """Take an agent's hello. Raises MalformedMessage if it is invalid, or not the sender's."""
        hello = read_hello(data, sender)
        self._factory.roster.greet(hello)
        return hello

    def _learnt(self) -> None:
        if self.agents is not None:
            self.agents.keep_log()
        self._on_learnt()
        if self.agents is not None:
            self.agents.publish()  # only after the hub's state has been saved


_OF_LOOP = ("game", "mixing", "horizon", "season", "seed")


def _checked_names(names: Sequence[str]) -> list[str]:
    names = [names] if isinstance(names, str) else list(names)
    for name in names:
        if not isinstance(name, str) or NAME.fullmatch(name) is None:
            raise InvalidInput("names", check.describe(name), f"Name each agent with {NAME_WORDS}.")
    if distinct(names, RESERVED) != names:
        raise InvalidInput("names", f"one name twice, or a reserved one, among {', '.join(names)}", "Change it.")
    if not names:
        raise NashcastError("a federation has at least one agent.")
    return names
