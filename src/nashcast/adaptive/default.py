"""The one call that makes it."""

from __future__ import annotations

from collections.abc import Sequence

from nashcast.adaptive.federation import AdaptiveFederation
from nashcast.agents.protocol import Participant
from nashcast.federation.columns import Target
from nashcast.intervals.intervals import COVERAGES


def default_federation(
    x_dim: int,
    y_dim: int = 1,
    *,
    agents: Sequence[Participant] = (),
    game: bool = True,
    season: int | None = None,
    start: Target | None = None,
    seed: int = 0,
    history: int = 1000,
    coverages: Sequence[float] = COVERAGES,
    agent_intervals: bool = False,
) -> AdaptiveFederation:
    """A federation with nothing to tune: seven kinds of agents in dozens of variants, mixed online.

    x_dim: numbers in an input, 0 if there are none (then x is None or empty).   y_dim: numbers in a target.
    agents: more of your own, any `Participant`; each is one more voice in the mixture.
    game: whether variants corrected by the prior-centred game are among them.
    season: its length in steps, if it is known; else it is looked for.
    start: the target before the first forecast, if there is one; else the first label is taken as it.
    seed: of the random features and the echo state.   history: how many past steps `history` keeps.
    coverages: of the intervals it can be asked for; agent_intervals: whether each agent has its own too.

    >>> import nashcast
    >>> federation = nashcast.default_federation(0)
    >>> for y in [1.0, 3.0, 2.0] * 10:
    ...     forecast = federation.predict_one(None)
    ...     federation.learn_one(None, y)
    >>> round(federation.predict_one(None), 3)
    1.0
    """
    return AdaptiveFederation(
        x_dim, y_dim, agents=agents, game=game, season=season, start=start, seed=seed, history=history,
        coverages=coverages, agent_intervals=agent_intervals,
    )  # fmt: skip
