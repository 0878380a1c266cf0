"""The memory layout of one game: agents of different feature sizes side by side, sixteen to a chunk.

Flat rows. At one step, agent i's features (y_dim × size, row by row), its covariance (y_dim × y_dim × size × size,
nothing where its features are deterministic) and its decoder start at the places in `agents[i]`.

Work rows. The solver's memory is one array of rows of sixteen numbers (`lanes`). Each chunk of sixteen agents owns
consecutive rows: its value function while the game is solved backwards, and the feedback rule that remains. After
them every part (a run of chunks that one thread handles) has scratch rows. Values common to all agents are in one more
flat array, `common`.
"""

from __future__ import annotations

from functools import lru_cache
from math import isqrt
from typing import NamedTuple

import numpy as np
from numba import njit

from nashcast.games.lookback.compiled.lanes.lane_algebra import triangle
from nashcast.games.lookback.compiled.lanes.lanes import LANES, SPARE, whole_number
from nashcast.games.lookback.problem import FEW_AGENTS, Layout

# Sums are formed part by part in a fixed order, so a result does not depend on the number of threads.
PARTS = 64

# Columns of Plan.chunks.
WIDEST, ROW = 0, 1


class Shape(NamedTuple):
    """The sizes of a game; `header` passes them to compiled code."""

    agents: int
    y_dim: int
    lookback: int
    noisy: int
    has_prior: int
    pairwise: int  # some step adds noise agent by agent
    tensor_k: int  # noise is summed as a tensor while k is at most this
    top: int  # largest feature size
    chunks: int
    parts: int
    scratch_row: int
    scratch_rows: int


class Plan(NamedTuple):
    """Sizes and places of one game."""

    shape: Shape
    header: np.ndarray  # the shape as an array
    agents: np.ndarray  # a row for each agent and a last one: size, and where features, covariance, decoder start
    chunks: np.ndarray  # a row for each chunk and a last one: largest feature size, first work row
    work: int  # numbers in the work array
    common: int  # numbers in the common array
    conditions: int  # where in the common array the condition numbers start: the scaled F's, then F's own


class ChunkRows(NamedTuple):
    """First work row of each quantity of a chunk while the game is solved."""

    discount: int  # c
    fading: int  # exp(-α)
    kappa: int  # κ, lower triangle
    sigma: int  # σ
    basis: int  # b, stored only where noise is added agent by agent
    noise_square: int  # eᵀ Cov e
    noise_cross: int  # eᵀ Cov (e s - d)
    rule: int


class RuleRows(NamedTuple):
    """First work row of each piece of a chunk's feedback rule at one step: β = shift - gain (slopeᵀζ + offset)."""

    gain: int  # e
    offset: int  # s
    slope: int  # u
    shift: int  # d


class ScratchRows(NamedTuple):
    """First work row of each temporary quantity of a part while it handles one chunk, and of its share of the sums."""

    weights: int
    penalty: int  # cγ
    mean: int  # m
    prior: int  # β̄, and in the forward pass β
    state: int  # Ŷ
    basis: int  # b
    square: int  # q = bᵀκb
    lam: int  # Λ = m e
    lam_slope: int  # Λ uᵀ
    lam_offset: int  # Λ s - μ
    covariance: int
    factor: int  # E
    spread_gain: int  # Cov e
    spread_shift: int  # Cov d
    noise_square: int
    noise_cross: int
    noise_kappa: int
    noise_sigma: int
    product: int
    pair: int
    psi: int
    sum_F: int
    sum_f: int
    sum_state: int
    sum_tensor: int
    sum_cross: int
    end: int


class CommonPlaces(NamedTuple):
    """Where the quantities common to all agents start in the common array.

    The first five have an entry for each step, counted from the end of the window.
    """

    bases: int  # carries the agents' weighted forecasts to the functionals: F⁻¹ … F⁻¹
    shifts: int  # g = -F⁻¹f
    points: int  # ζ, the functionals one step later
    conditions: int  # condition number of the scaled F
    plain_conditions: int  # and of F itself
    coupling: int  # F
    inverse: int  # F⁻¹
    row_scales: int
    column_scales: int
    sum_f: int
    forecasts: int  # the agents' weighted forecasts
    tensor: int
    end: int


@njit(cache=True)
def chunk_rows(first, lookback, y_dim, pairwise):
    p, k = y_dim, lookback * y_dim
    fading = first + 1
    kappa = fading + 1
    sigma = kappa + triangle(k)
    basis = sigma + k
    square = basis + k * p * pairwise
    cross = square + p**4 * pairwise
    return ChunkRows(first, fading, kappa, sigma, basis, square, cross, cross + p**3 * pairwise)


@njit(cache=True)
def rule_rows(first, back, lookback, y_dim, widest, has_prior):
    """`back` counts steps from the end of the window: 0 is its last step. Stored in the order of the forward play."""
    p, ahead = y_dim, lookback - 1 - back
    gain = first + ahead * (p * widest + p + widest * has_prior) + p * p * (triangle(lookback) - triangle(back + 1))
    offset = gain + p * widest
    slope = offset + p
    return RuleRows(gain, offset, slope, slope + (back + 1) * p * p)


@njit(cache=True)
def scratch_rows(first, lookback, y_dim, widest, noisy, tensor_k):
    p, d, k, kt = y_dim, widest, lookback * y_dim, tensor_k
    penalty = first + lookback
    mean = penalty + 1
    prior = mean + p * d
    state = prior + d
    basis = state + p
    square = basis + k * p
    lam = square + p * p
    lam_slope = lam + p * p
    lam_offset = lam_slope + k * p
    covariance = lam_offset + p
    factor = covariance + p * p * d * d * noisy
    spread_gain = factor + triangle(d) * noisy
    spread_shift = spread_gain + d * p
    noise_square = spread_shift + d
    noise_cross = noise_square + p**4
    noise_kappa = noise_cross + p**3
    noise_sigma = noise_kappa + triangle(k)
    product = noise_sigma + k
    pair = product + k * p
    psi = pair + p * p
    sum_F = psi + p * p
    sum_f = sum_F + k * k
    sum_state = sum_f + k
    sum_tensor = sum_state + k
    sum_cross = sum_tensor + triangle(kt) * triangle(kt)
    end = sum_cross + kt * triangle(kt)
    return ScratchRows(
        first, penalty, mean, prior, state, basis, square, lam, lam_slope, lam_offset, covariance, factor, spread_gain,
        spread_shift, noise_square, noise_cross, noise_kappa, noise_sigma, product, pair, psi, sum_F, sum_f, sum_state,
        sum_tensor, sum_cross, end,
    )  # fmt: skip


@njit(cache=True)
def common_places(lookback, y_dim, tensor_k):
    k = lookback * y_dim
    shifts = lookback * k * k
    points = shifts + lookback * k
    conditions = points + lookback * k
    plain = conditions + lookback
    coupling = plain + lookback
    inverse = coupling + k * k
    rows = inverse + k * k
    columns = rows + k
    sum_f = columns + k
    forecasts = sum_f + k
    tensor = forecasts + k
    end = tensor + triangle(tensor_k) * (triangle(tensor_k) + tensor_k)
    return CommonPlaces(
        0, shifts, points, conditions, plain, coupling, inverse, rows, columns, sum_f, forecasts, tensor, end
    )  # fmt: skip


# Plans are cached as layouts are: for large games only the last, since the plan of a million agents is 32 MB.
def plan_for(layout: Layout, lookback: int, has_prior: bool) -> Plan:
    """The plan of a game with this layout."""
    return (_small_plan if layout.agents <= FEW_AGENTS else _large_plan)(layout, lookback, has_prior)


def _plan(layout: Layout, lookback: int, has_prior: bool) -> Plan:
    d, p, T = layout.sizes, layout.y_dim, lookback
    agents, any_noise = len(d), int(layout.noisy)
    widest = np.maximum.reduceat(d, np.arange(0, agents, LANES))
    top = int(widest.max())

    # Noise enters every agent's k×k value matrix: through one tensor for k⁴ an agent, agent by agent for N·k².
    # The first step of the window does not need it, hence T - 1.
    last_k = (T - 1) * p * any_noise
    tensor_k = min(last_k, isqrt(agents - 1) // p * p)
    pairwise = int(last_k > tensor_k)

    memory = chunk_rows(0, T, p, pairwise).rule + rule_rows(0, -1, T, p, 0, 0).gain
    row = np.concatenate([[0], np.cumsum(memory + T * widest * (p + int(has_prior)))])
    scratch = scratch_rows(0, T, p, top, any_noise, tensor_k).end
    parts = min(PARTS, len(widest))
    shape = Shape(
        agents, p, T, any_noise, int(has_prior), pairwise, tensor_k, top, len(widest), parts, int(row[-1]), scratch
    )
    places = [np.append(d, 0), layout.features, layout.covariance, layout.decoders]
    return Plan(
        shape,
        np.array(shape),
        np.column_stack(places),
        np.column_stack([np.append(widest, 0), row]),
        (shape.scratch_row + parts * scratch) * LANES + SPARE,
        common_places(T, p, tensor_k).end,
        common_places(T, p, tensor_k).conditions,
    )


_small_plan, _large_plan = lru_cache(maxsize=32)(_plan), lru_cache(maxsize=1)(_plan)


@njit(cache=True)
def read_shape(header):
    """The shape from the address of Plan.header: its numbers in the order of the fields."""
    h = header
    return Shape(
        whole_number(h, 0), whole_number(h, 1), whole_number(h, 2), whole_number(h, 3), whole_number(h, 4),
        whole_number(h, 5), whole_number(h, 6), whole_number(h, 7), whole_number(h, 8), whole_number(h, 9),
        whole_number(h, 10), whole_number(h, 11),
    )  # fmt: skip
