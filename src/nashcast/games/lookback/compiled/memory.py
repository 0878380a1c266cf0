"""The memory of one compiled game: the addresses of its arrays, and the plan's entries for each chunk and part."""

from __future__ import annotations

from typing import NamedTuple

from numba import njit

from nashcast.games.lookback.compiled.lanes.lane_algebra import ChunkAgents
from nashcast.games.lookback.compiled.lanes.lanes import LANES, whole_number
from nashcast.games.lookback.compiled.plan import ROW, WIDEST, chunk_rows, scratch_rows

NUMBER = 8  # bytes


class Memory(NamedTuple):
    """Addresses of one game's arrays, and the length of a step's row in those that have one for each step."""

    header: int
    agents: int
    chunks: int
    means: int
    features: int
    feature_row: int
    covariance: int
    covariance_row: int
    prior: int
    decoder_row: int
    weights: int
    targets: int
    decay: int
    ridge: int
    common: int
    work: int
    decoders: int
    states: int


@njit(cache=True)
def scratch_of(shape, part):
    first = shape.scratch_row + part * shape.scratch_rows
    return scratch_rows(first, shape.lookback, shape.y_dim, shape.top, shape.noisy, shape.tensor_k)


@njit(cache=True)
def chunk_rows_of(shape, chunks, chunk):
    return chunk_rows(whole_number(chunks, 2 * chunk + ROW), shape.lookback, shape.y_dim, shape.pairwise)


@njit(cache=True)
def chunk_agents_of(memory, shape, chunk):
    first = chunk * LANES
    widest = whole_number(memory.chunks, 2 * chunk + WIDEST)
    return ChunkAgents(memory.agents, first, min(LANES, shape.agents - first), widest)
