"""An agent: one or several frozen encoders, the inputs they may see, and decoders that learn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nashcast.agents.protocol import SHARES
from nashcast.encoders.base import Encoder
from nashcast.errors import InvalidInput
from nashcast.validation import describe, integer, number


@dataclass(frozen=True)
class Window:
    r"""Proposition 1: one decoder, fitted to the agent's own last steps. The paper's choice; see `paper_federation`.

    steps: how far it looks back (the paper's Client T).   ridge: $\gamma > 0$ and decay: $\alpha \ge 0$ of the decoder
    and of its part in the game.   forgetting: if given, it learns from all history instead, each step weighted by
    this factor relative to the next ($0 < \lambda \le 1$).
    """

    steps: int = 5
    ridge: float = 1.0
    decay: float = 0.0
    forgetting: float | None = None

    def __post_init__(self):
        integer("steps", self.steps, min=1)
        number("ridge", self.ridge, above=0.0)
        number("decay", self.decay, min=0.0)
        if self.forgetting is not None:
            number("forgetting", self.forgetting, above=0.0, max=1.0)


class Agent:
    """A participant: its encoders are fixed, its decoders learn.

    encoder: an encoder, or several whose features it joins.   name: shown in tables.
    inputs: the inputs it may see, by place or by name; all by default.
    decoders: None for a bank of ridge decoders (see `Bank`), or `Window(…)`.
    share: the data it may send when it runs in another process, one of SHARES in `agents.protocol`.

    >>> import nashcast as nc
    >>> nc.Agent(nc.encoders.Trend(), name="desk 1").name
    'desk 1'
    """

    def __init__(
        self,
        encoder: Encoder | Sequence[Encoder],
        *,
        name: str | None = None,
        inputs: Sequence[int | str] | None = None,
        decoders: Window | None = None,
        share: str = "features",
    ):
        encoders = list(encoder) if isinstance(encoder, Sequence) else [encoder]
        if not encoders:
            raise InvalidInput("encoder", "an empty list", "Pass at least one encoder.")
        for one in encoders:
            if isinstance(one, type) or not hasattr(one, "build"):
                remedy = "Pass an encoder, for example nashcast.encoders.Trend()."
                raise InvalidInput("encoder", describe(one), remedy)
        if decoders is not None and not isinstance(decoders, Window):
            raise InvalidInput("decoders", describe(decoders), "Pass nashcast.Window(…) or None.")
        if share not in SHARES:
            raise InvalidInput("share", repr(share), f"Pass one of {', '.join(SHARES)}.")
        self.encoders: tuple[Encoder, ...] = tuple(encoders)
        self.name = " + ".join(type(one).__name__ for one in encoders) if name is None else str(name)
        self.inputs = None if inputs is None else _inputs(inputs)
        self.decoders = decoders
        self.share = share

    def __repr__(self) -> str:
        return f"Agent({', '.join(map(repr, self.encoders))}, name={self.name!r})"


def _inputs(inputs: Sequence[int | str]) -> tuple[int | str, ...]:
    if isinstance(inputs, str) or not isinstance(inputs, Sequence):
        raise InvalidInput("inputs", describe(inputs), "Pass a list of places or names of inputs.")
    for one in inputs:
        if not isinstance(one, str):
            integer("inputs", one, min=0)
    if len(set(inputs)) < len(inputs):
        raise InvalidInput("inputs", describe(inputs), "Name every input once.")
    return tuple(inputs)


def checked_agents(agents: Sequence[Agent]) -> list[Agent]:
    """A copy of the list. Raises InvalidInput if it is empty or contains anything but agents."""
    if isinstance(agents, Agent) or not isinstance(agents, Sequence) or not agents:
        raise InvalidInput("agents", describe(agents), "Pass a list of at least one agent.")
    for i, agent in enumerate(agents):
        if not isinstance(agent, Agent):
            raise InvalidInput(f"agents[{i}]", describe(agent), "Pass nashcast.Agent(encoder, …).")
    return list(agents)
