"""What owners and server exchange in one step: round trips, and bytes of the numbers in them.

Eight bytes a number, names and headers not counted; all agents together, both ways. Inputs do not travel: every owner
has its own. A label reaches every owner.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nashcast.datasets import Stream
from nashcast.evaluation.method import Traffic
from nashcast.federation.federation import Federation
from nashcast.games.joint import JointGame
from private_information.agents import owners_agents
from private_information.expert_run import begun_loop

BYTES = 8
# Steps after which every message of the paper's federation has the size it keeps.
_SETTLED = 12


class Sizes(NamedTuple):
    """agents: how many.   forecasts: own forecasts of all agents for one target.   y_dim: of the target."""

    agents: int
    forecasts: int
    y_dim: int


def sizes(stream: Stream, kind: str) -> Sizes:
    agents = owners_agents(stream, kind, 0)
    p = stream.targets.shape[1]
    federation = Federation(
        agents, x_dim=stream.inputs.shape[1], y_dim=p, start=stream.start, game=None, coverages=(), history=0
    )
    federation.predict_one(stream.inputs[0])
    owner = begun_loop(federation).owner
    return Sizes(len(agents), int(np.count_nonzero(owner > 0)), p)


def nothing(stream: Stream) -> Traffic:
    return Traffic(0, 0)


def forecasts(kind: str, stream: Stream) -> Traffic:
    """Every own forecast up, the label down."""
    found = sizes(stream, kind)
    return Traffic(1, BYTES * found.y_dim * (found.forecasts + found.agents))


def one_forecast(stream: Stream) -> Traffic:
    """One forecast of each agent up, the label down."""
    return Traffic(1, BYTES * stream.targets.shape[1] * 2 * len(stream.owners))


def joint(stream: Stream, game: JointGame) -> Traffic:
    """Contributions and leverages up, the sums and the label down.

    Up: what each variant plays, the averaged one's forecast besides, and one leverage for each forgetting.
    """
    sums = len(game.variants) + len(game.forgetting)
    return Traffic(1, BYTES * stream.targets.shape[1] * len(stream.owners) * (sums + game.plays_averaged + sums + 1))


def federation(kind: str, stream: Stream, game: JointGame | None) -> Traffic:
    """Own forecasts and their leverages up; with the joint game what it needs too; the label down once."""
    found = sizes(stream, kind)
    own = BYTES * found.y_dim * (2 * found.forecasts + found.agents)
    if game is None:
        return Traffic(1, own)
    return Traffic(1, own + joint(stream, game).bytes - BYTES * found.y_dim * found.agents)


def papers(made: Federation, stream: Stream, lookback: int) -> Traffic:
    """The spread look-back game: its rounds by the formula, its bytes from the messages of one step.

    made: a federation that keeps its transcript and has learnt nothing.
    """
    for x, y in zip(stream.inputs[:_SETTLED], stream.targets[:_SETTLED], strict=True):
        made.predict_one(x)
        made.learn_one(x, y)
    last = max(message.step for message in made.transcript)
    sent = [message for message in made.transcript if message.step == last]
    own = [message for message in sent if not (message.sender == "server" and message.kind == "forecast")]
    return Traffic(lookback + 1, sum(message.bytes for message in own))


def pooled(stream: Stream) -> Traffic:
    """Every input to one place."""
    return Traffic(1, BYTES * stream.inputs.shape[1])
