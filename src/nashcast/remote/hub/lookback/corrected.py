"""Computes the answer of an agent that shares its features to a game's decoder, without asking it."""

from __future__ import annotations

import numpy as np

from nashcast.agents.decoders import move
from nashcast.agents.protocol import Answer, Sync
from nashcast.remote.wire.messages import Introduced
from nashcast.remote.wire.number_limits import tame

_NOT_FINITE = Answer(None, "its forecast is not finite")


def corrected(sync: Sync, introduced: Introduced | None, raw: np.ndarray | None) -> Answer | None:
    """The answer; None if the agent must be asked. raw: its features of the present step, if it has shared them."""
    if not tame(sync):  # not sent: an agent would refuse it, and would count as failed
        return _NOT_FINITE
    if introduced is None or introduced.share != "features" or raw is None:
        return None
    assert sync.decoder is not None  # of a game
    Z = raw - sync.forecast[:, None] if introduced.relative else raw
    with np.errstate(over="ignore", invalid="ignore"):
        forecast = move(sync.forecast, Z, sync.decoder)
    return Answer(forecast) if np.isfinite(forecast).all() and tame(forecast) else _NOT_FINITE
