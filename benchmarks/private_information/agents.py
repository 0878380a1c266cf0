"""The agents of a stream's owners: one for each, which sees its owner's inputs and the targets."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nashcast.agents.agent import Agent
from nashcast.agents.lookback.paper_agent import PaperAgent
from nashcast.datasets import Stream
from nashcast.datasets.owners import check_owners
from nashcast.encoders import Lags, Linear
from nashcast.encoders.base import BuiltEncoder, Context, Encoder
from nashcast.federation.default import rich_agent

SIMPLE, RICH = "simple", "rich"
KINDS = (SIMPLE, RICH)
# Values of the inputs that the agents of the paper's game see: they know no targets.
_PAPER_LAGS = 2


def owners_agents(stream: Stream, kind: str, seed: int) -> list[Agent]:
    """kind: "simple", linear in the owner's inputs, their changes and the last two targets; "rich": all families."""
    if kind == SIMPLE:
        return [
            Agent(Lags(lags=2, changes=True), name=owner, inputs=places)
            for owner, places in check_owners(stream).items()
        ]
    return [
        rich_agent(name=owner, inputs=places, seed=seed + k)
        for k, (owner, places) in enumerate(check_owners(stream).items())
    ]


def paper_agents(stream: Stream) -> list[PaperAgent]:
    """Agents of Algorithm 1, linear in the owner's present and last inputs, with the paper's window."""
    return [
        PaperAgent(OwnInputs(Linear(_PAPER_LAGS), places), name=owner) for owner, places in check_owners(stream).items()
    ]


@dataclass(frozen=True)
class OwnInputs:
    """An encoder of the present input that sees some of its numbers. places: of these."""

    encoder: Encoder
    places: tuple[int, ...]

    def build(self, x_dim: int, y_dim: int) -> BuiltEncoder:
        return _BuiltOwnInputs(self.encoder.build(len(self.places), y_dim), np.array(self.places))


class _BuiltOwnInputs(BuiltEncoder):
    def __init__(self, built: BuiltEncoder, places: np.ndarray):
        self._built, self._places = built, places
        self.features = built.features

    def start(self):
        return self._built.start()

    def advance(self, context: Context):
        return self._built.advance(context._replace(x=context.x[self._places]))

    def encode(self, context: Context) -> np.ndarray:
        return self._built.encode(context._replace(x=context.x[self._places]))
