"""The shapes of the arrays of each message, from the declared dimensions."""

from __future__ import annotations

from functools import lru_cache

from nashcast.agents.protocol import Answer, BackwardSums, BackwardTerms, GameView, Invitation, Sync
from nashcast.remote.wire.format import MalformedMessage
from nashcast.remote.wire.messages import (
    Backward,
    Begin,
    Call,
    Close,
    Dimensions,
    FinishGame,
    Forecast,
    JoinGame,
    LearnLate,
    Masking,
    Receive,
    RemoteAnswer,
    StepRecord,
    kind_of,
)

Sizes = dict[str, int | None]
NO_SIZES: Sizes = {}

# The axes of every array. T: lookback.   k: (back + 1) y_dim.   n: of the noise tensor.   s: of the surprise.
# N: number of agents in a masked game.
SHAPES: dict[type, dict[str, str]] = {
    StepRecord: {"x": "x"}, Begin: {"target": "y"}, Forecast: {"x": "x"}, Close: {"target": "y"},
    LearnLate: {"target": "y"}, Sync: {"forecast": "y", "decoder": "d", "past": "Ty"},
    Invitation: {"targets": "Ty", "weights": "T", "start": "y"}, Masking: {"weights": "TN"},
    FinishGame: {"totals": "T"},
    BackwardSums: {"carry": "kk", "shift": "k", "tensor": "n", "surprise": "s"}, Answer: {"forecast": "y"},
    BackwardTerms: {"coupling": "kk", "offset": "k", "tensor": "n", "surprise": "s"},
    RemoteAnswer: {"forecast": "y", "features": "yd"},
    GameView: {"features": "Tyd", "means": "Tyd", "covariance": "Tyydd"},
}  # fmt: skip


def sizes_of(dimensions: Dimensions, call: Call | None = None) -> Sizes:
    place = None
    if isinstance(call, Backward | Receive):
        place = call[0]
        if not 0 <= place < dimensions.lookback:
            expected = f"0 to {dimensions.lookback - 1}"
            raise MalformedMessage(f"{kind_of(call)}.{call._fields[0]}: got {place}, expected {expected}")
    sizes = _sizes_at(dimensions, place)
    if isinstance(call, JoinGame) and call.masking is not None:
        return {**sizes, "N": len(call.masking.present)}
    return sizes


@lru_cache
def _sizes_at(dimensions: Dimensions, place: int | None) -> Sizes:
    T, p = dimensions.lookback, dimensions.y_dim
    sizes: Sizes = {"x": dimensions.x_dim, "y": p, "d": dimensions.features, "T": T}
    if place is not None:
        k = (place + 1) * p
        pairs = k * (k + 1) // 2
        tensor = pairs * (pairs + k) if dimensions.noisy and place < T - 1 else 0
        surprise = k * (k + 1) if dimensions.noisy and place > 0 else 0
        sizes |= {"k": k, "n": tensor, "s": surprise}
    return sizes


def terms_shapes(dimensions: Dimensions, call: Backward) -> list[tuple[int, ...]]:
    """The shapes of the arrays that an agent masks, in order."""
    return terms_of(sizes_of(dimensions, call))


def terms_of(sizes: Sizes) -> list[tuple[int, ...]]:
    return [tuple(sizes[axis] or 0 for axis in axes) for axes in SHAPES[BackwardTerms].values()]
