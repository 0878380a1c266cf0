"""The paper's federation: Algorithm 1 with window decoders, signed mixture weights and the game of Theorem 2."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from nashcast.agents.agent import Agent, Window
from nashcast.agents.lookback.paper_agent import PaperAgent
from nashcast.agents.protocol import Participant
from nashcast.errors import InvalidInput
from nashcast.federation.federation import Federation
from nashcast.federation.lookback.algorithm import LookbackGame, Settings
from nashcast.federation.lookback.paper_loop import Delivery, PaperLoopFactory
from nashcast.federation.lookback.transport import Opening, Post
from nashcast.federation.mixing import PAPER
from nashcast.federation.records import Replay
from nashcast.mixing.expert_rule import RuleFactory

__all__ = ["LookbackGame", "Replay", "paper_federation"]


def paper_federation(
    agents: Sequence[Agent | Participant],
    *,
    game: LookbackGame | None = LookbackGame(),  # noqa: B008 frozen
    anchored: bool = False,
    ridge: float = 1.0,
    budget: float = 1.0,
    mixing: str | RuleFactory = PAPER,
    y_dim: int = 1,
    seed: int = 0,
    deadline: float | None = None,
    transcript: bool = False,
    make_post: Callable[[Opening], Post] = Post,
    **settings: Any,
) -> Federation:
    r"""A `Federation` whose steps are Algorithm 1.

    agents: with `decoders=Window(…)`, or the default window.   game: when to play, or None for greedy agents only; any
        object with `lookback`, `every` and `solve` (docs/how-to/write-a-game.md).
    anchored: without a game, agents start each step from the last target.
    ridge: $\kappa > 0$ and budget: $\eta$ of the mixture weights.
    mixing: the rule that weighs the agents: "paper", or one with memory: "windowed", "exponential", "fixed-share",
        "boa", "ml-poly", "ridge", "log-score" (docs/explanation/mixing.md); or a function of (experts, y_dim) that
        makes a rule of your own, see docs/how-to/write-a-weight-rule.md.
    deadline: seconds an agent may take to forecast before the step goes on without it.
    transcript: whether `transcript` records every message.   make_post: makes the transport of messages to the agents;
        agents in other processes need another one: see `nashcast.remote`.
    settings: x_dim, start, coverages, agent_intervals and history of `Federation`.

    >>> import nashcast as nc
    >>> agents = [nc.Agent(nc.encoders.RandomFeatures(features=4, seed=s), decoders=nc.Window(5)) for s in range(2)]
    >>> federation = nc.paper_federation(agents, game=nc.LookbackGame(lookback=2))
    >>> federation.learn_one([0.0], 1.0)
    >>> federation.predict_one([0.0])
    1.0
    """
    if isinstance(agents, Sequence):
        agents = [as_paper_agent(agent) for agent in agents]
    algorithm, delivery = Settings(game, anchored, ridge, budget), Delivery(deadline, transcript, make_post)
    factory = PaperLoopFactory(agents, algorithm, mixing, y_dim, seed, delivery)
    return Federation.over(factory, y_dim=y_dim, **settings)


def as_paper_agent(agent: Agent | Participant) -> PaperAgent:
    """The agent that plays Algorithm 1 with an agent's encoder and window."""
    # Checked by type: the attributes of a participant are arbitrary, `__class__` included.
    if not issubclass(type(agent), Agent):
        return agent  # pyright: ignore[reportReturnType]
    assert isinstance(agent, Agent)
    if len(agent.encoders) != 1 or agent.inputs is not None:
        got = (
            f"{agent.name!r} with {len(agent.encoders)} encoders"
            if agent.inputs is None
            else f"inputs of {agent.name!r}"
        )
        raise InvalidInput("agents", got, "Pass agents with one encoder that sees all inputs.")
    window = agent.decoders or Window()
    return PaperAgent(
        agent.encoders[0], name=agent.name, share=agent.share, window=window.steps, ridge=window.ridge,
        decay=window.decay, forgetting=window.forgetting,
    )  # fmt: skip
