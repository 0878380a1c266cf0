"""The paper's federation: Algorithm 1 with window decoders, signed mixture weights and the game of Theorem 2."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nashcast.agents.agent import Agent, Window
from nashcast.agents.paper_agent import PaperAgent
from nashcast.errors import InvalidInput
from nashcast.federation.algorithm import LookbackGame
from nashcast.federation.paper_federation import PaperFederation
from nashcast.federation.records import Replay

__all__ = ["LookbackGame", "PaperFederation", "Replay", "paper_federation"]


def paper_federation(
    agents: Sequence[Agent | PaperAgent],
    *,
    game: LookbackGame | None = LookbackGame(),  # noqa: B008 frozen
    **settings: Any,
) -> PaperFederation:
    r"""Algorithm 1 over these agents, with the verbs of `Federation`.

    agents: with `decoders=Window(…)`, or the default window.   game: when to play, or None for greedy agents only.
    settings: ridge ($\kappa$) and budget ($\eta$) of the mixture weights, anchored, mixing, y_dim, start, seed,
    coverages and more: see `PaperFederation`.

    >>> import nashcast as nc
    >>> agents = [nc.Agent(nc.encoders.RandomFeatures(features=4, seed=s), decoders=nc.Window(5)) for s in range(2)]
    >>> federation = nc.paper_federation(agents, game=nc.LookbackGame(lookback=2))
    >>> federation.learn_one([0.0], 1.0)
    >>> federation.predict_one([0.0])
    1.0
    """
    if not isinstance(agents, Sequence):
        return PaperFederation(agents, game=game, **settings)  # which refuses it
    return PaperFederation([as_paper_agent(agent) for agent in agents], game=game, **settings)


def as_paper_agent(agent: Agent | PaperAgent) -> PaperAgent:
    """The agent that plays Algorithm 1 with an agent's encoder and window."""
    # By type: a participant's attributes are its own, its class included.
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
