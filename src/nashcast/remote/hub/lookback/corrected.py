"""What an agent that shares its features would answer to a game's decoder: the hub need not ask it."""

from __future__ import annotations

import numpy as np

from nashcast.agents.decoders import move
from nashcast.agents.protocol import Answer, Sync
from nashcast.remote.wire.messages import Introduced
from nashcast.remote.wire.number_limits import tame

_WILD = Answer(None, "its forecast is not finite")


def corrected(sync: Sync, introduced: Introduced | None, raw: np.ndarray | None) -> Answer | None:
    """None if the agent is to be asked. raw: its features of the present step, if it has shared them."""
    if not tame(sync):  # not to be sent: an agent refuses it, and is not to be blamed for a wild game
        return _WILD
    if introduced is None or introduced.share != "features" or raw is None:
        return None
    assert sync.decoder is not None  # of a game
    Z = raw - sync.forecast[:, None] if introduced.relative else raw
    with np.errstate(over="ignore", invalid="ignore"):
        forecast = move(sync.forecast, Z, sync.decoder)
    return Answer(forecast) if np.isfinite(forecast).all() and tame(forecast) else _WILD
