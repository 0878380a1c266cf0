"""Small matrices of eight agents at once: products and the ridge solve that the game's agents need.

A matrix is consecutive rows of the work memory, its entries row by row; a symmetric one is its lower triangle.
"""

from __future__ import annotations

from typing import NamedTuple

from numba import njit

from nashcast.games.lookback.compiled.lanes.lanes import (
    LANES,
    load,
    load_run,
    load_strided,
    number,
    set_number,
    splat,
    store,
    store_run,
    store_strided,
    whole_number,
)

# Columns of the plan's table of agents: size, and where features, covariance and decoder start; and their number.
SIZE, FEATURES, COVARIANCE, DECODER, COLUMNS = range(5)


class ChunkAgents(NamedTuple):
    """The agents of one chunk in the plan's table of agents."""

    table: int  # address of the table
    first: int  # the first agent
    here: int  # how many there are, at most LANES
    widest: int  # the largest number of features


@njit(cache=True)
def triangle(n):
    """Entries of the lower triangle of an n×n matrix; also the place of entry (n, 0) in it."""
    return n * (n + 1) // 2


@njit(cache=True)
def clear(work, first, count):
    for row in range(first, first + count):
        store(work, row, splat(0.0))


@njit(cache=True)
def gather(work, row, values, first, here, otherwise):
    """Consecutive numbers, one for each of the chunk's `here` agents, and `otherwise` in the lanes without an agent."""
    if here == LANES:
        store(work, row, load_run(values, first))
        return
    for lane in range(LANES):
        set_number(work, row * LANES + lane, number(values, first + lane) if lane < here else otherwise)


@njit(cache=True)
def place_of(chunk, lane, column):
    """Where the numbers of one agent start in its array; for the lane after the last, where the last agent's end."""
    return whole_number(chunk.table, (chunk.first + lane) * COLUMNS + column)


@njit(cache=True)
def _all_alike(chunk, column, length):
    """Whether the chunk is full and every agent in it has `length` numbers, so that they have one stride."""
    if chunk.here < LANES:
        return False
    return place_of(chunk, chunk.here, column) - place_of(chunk, 0, column) == LANES * length


@njit(cache=True)
def gather_blocks(work, row, values, chunk, column, blocks, square):
    """Each agent's `blocks` blocks of size (or size × size if `square`) numbers, 0 where it has fewer features.

    `column` is where in `values` an agent's numbers start.
    """
    widest = chunk.widest
    length = widest * widest if square else widest
    if _all_alike(chunk, column, blocks * length):
        first = place_of(chunk, 0, column)
        for i in range(blocks * length):
            store(work, row + i, load_strided(values, first + i, blocks * length))
        return
    clear(work, row, blocks * length)
    for lane in range(chunk.here):
        d, place = place_of(chunk, lane, SIZE), place_of(chunk, lane, column)
        if place_of(chunk, lane + 1, column) == place:
            continue
        for block in range(blocks):
            for g in range(d if square else 1):
                for f in range(d):
                    here_row = row + block * length + g * widest + f
                    set_number(work, here_row * LANES + lane, number(values, place))
                    place += 1


@njit(cache=True)
def scatter_blocks(work, row, values, chunk, column):
    """Write each agent's block of size numbers to its place in `values`."""
    if _all_alike(chunk, column, chunk.widest):
        first = place_of(chunk, 0, column)
        for f in range(chunk.widest):
            store_strided(values, first + f, chunk.widest, load(work, row + f))
        return
    for lane in range(chunk.here):
        d, place = place_of(chunk, lane, SIZE), place_of(chunk, lane, column)
        for f in range(d):
            set_number(values, place + f, number(work, (row + f) * LANES + lane))


@njit(cache=True)
def gather_states(work, row, states, agent, here, p):
    """Each agent's state, p numbers, 0 in the lanes without an agent."""
    if here == LANES and p == 1:
        store(work, row, load_run(states, agent))
        return
    for a in range(p):
        if here == LANES:
            store(work, row + a, load_strided(states, agent * p + a, p))
        else:
            for lane in range(LANES):
                state = number(states, (agent + lane) * p + a) if lane < here else 0.0
                set_number(work, (row + a) * LANES + lane, state)


@njit(cache=True)
def scatter_states(work, row, states, agent, here, p):
    """Write each agent's state, p numbers, to its place in `states`."""
    if here == LANES and p == 1:
        store_run(states, agent, load(work, row))
        return
    for a in range(p):
        if here == LANES:
            store_strided(states, agent * p + a, p, load(work, row + a))
        else:
            for lane in range(here):
                set_number(states, (agent + lane) * p + a, number(work, (row + a) * LANES + lane))


@njit(cache=True)
def symmetric_times(work, out, symmetric, right, n, columns):
    """Out = symmetric · right."""
    for r in range(n):
        for a in range(columns):
            total = splat(0.0)
            for s in range(r + 1):
                total += load(work, symmetric + triangle(r) + s) * load(work, right + s * columns + a)
            for s in range(r + 1, n):
                total += load(work, symmetric + triangle(s) + r) * load(work, right + s * columns + a)
            store(work, out + r * columns + a, total)


@njit(cache=True)
def times(work, out, left, right, n, inner, columns):
    """Out = left · right."""
    for r in range(n):
        for b in range(columns):
            total = splat(0.0)
            for f in range(inner):
                total += load(work, left + r * inner + f) * load(work, right + f * columns + b)
            store(work, out + r * columns + b, total)


@njit(cache=True)
def transposed_times(work, out, left, right, n, columns_left, columns):
    """Out = leftᵀ · right."""
    for a in range(columns_left):
        for b in range(columns):
            total = splat(0.0)
            for r in range(n):
                total += load(work, left + r * columns_left + a) * load(work, right + r * columns + b)
            store(work, out + a * columns + b, total)


@njit(cache=True)
def factor_positive(work, factor, n):
    """Overwrite a symmetric positive definite matrix by its L·D·Lᵀ factors, D as its inverse."""
    for f in range(n):
        for g in range(f):
            total = load(work, factor + triangle(f) + g)
            for h in range(g):
                total -= load(work, factor + triangle(f) + h) * load(work, factor + triangle(g) + h)
            store(work, factor + triangle(f) + g, total)
        # Row f contains L·D so far; divide D out of it and subtract it from the pivot.
        pivot = load(work, factor + triangle(f) + f)
        for g in range(f):
            scaled = load(work, factor + triangle(f) + g)
            ratio = scaled * load(work, factor + triangle(g) + g)
            pivot -= scaled * ratio
            store(work, factor + triangle(f) + g, ratio)
        store(work, factor + triangle(f) + f, splat(1.0) / pivot)


@njit(cache=True)
def solve_factored(work, factor, right, n, columns):
    """Overwrite `right` by the solution of L·D·Lᵀ x = right."""
    for b in range(columns):
        for f in range(n):
            total = load(work, right + f * columns + b)
            for g in range(f):
                total -= load(work, factor + triangle(f) + g) * load(work, right + g * columns + b)
            store(work, right + f * columns + b, total)
        for f in range(n - 1, -1, -1):
            total = load(work, right + f * columns + b) * load(work, factor + triangle(f) + f)
            for g in range(f + 1, n):
                total -= load(work, factor + triangle(g) + f) * load(work, right + g * columns + b)
            store(work, right + f * columns + b, total)
