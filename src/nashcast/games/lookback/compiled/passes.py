"""The whole game: backwards for the feedback rules, forwards for the play. One source, for one core and for many."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit, prange

from nashcast.games.lookback.compiled import agents as agent_side
from nashcast.games.lookback.compiled.cores import for_one_and_many_cores
from nashcast.games.lookback.compiled.lane_algebra import (
    COLUMNS,
    clear,
    gather,
    gather_blocks,
    gather_states,
    scatter_blocks,
    scatter_states,
    triangle,
)
from nashcast.games.lookback.compiled.lanes import (
    LANES,
    address,
    first_row,
    load,
    number,
    set_number,
    splat,
    store,
    whole_number,
)
from nashcast.games.lookback.compiled.plan import (
    COVARIANCE,
    DECODER,
    FEATURES,
    ROW,
    WIDEST,
    chunk_rows,
    common_places,
    read_shape,
    rule_rows,
    scratch_rows,
)
from nashcast.games.lookback.compiled.sums import add_parts, point_from_forecasts, point_from_last, solve_sums

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
def _set_penalty(work, rows, scratch, ridge, agent, here):
    gather(work, scratch.penalty, ridge, agent, here, 1.0)
    store(work, scratch.penalty, load(work, rows.discount) * load(work, scratch.penalty))


@njit(cache=True)
def _collect_noise(memory, shape, at, rows, scratch, back):
    p, work = shape.y_dim, memory.work
    k = (back + 1) * p
    if k <= shape.tensor_k:
        agent_side.noise_from_tensor(work, rows, scratch, memory.common, at.tensor, k)
        return
    clear(work, scratch.noise_kappa, triangle(k))
    clear(work, scratch.noise_sigma, k)
    for chunk in range(shape.chunks):
        other = chunk_rows_of(shape, memory.chunks, chunk)
        widest = whole_number(memory.chunks, 2 * chunk + WIDEST)
        rule = rule_rows(other.rule, back, shape.lookback, p, widest, shape.has_prior)
        for lane in range(min(LANES, shape.agents - chunk * LANES)):
            agent_side.add_noise_of(work, rows, scratch, other, rule, lane, k, p)


@njit(cache=True)
def backward_part(memory, back, part):
    """One step back for a run of chunks: carry their value functions over the step after it, then add to the sums."""
    shape = read_shape(memory.header)
    p, T, has_prior = shape.y_dim, shape.lookback, shape.has_prior
    t, k, stride = T - 1 - back, (back + 1) * p, T * p
    at = common_places(T, p, shape.tensor_k)
    scratch = scratch_of(shape, part)
    work, common, agents = memory.work, memory.common, memory.agents
    means = memory.means + t * memory.feature_row * NUMBER
    covariance = memory.covariance + t * memory.covariance_row * NUMBER
    prior = memory.prior + t * memory.decoder_row * NUMBER
    target = memory.targets + t * p * NUMBER
    last_shift, carried = at.shifts + (back - 1) * stride, at.bases + (back - 1) * stride * stride
    as_tensor = shape.noisy and t > 0 and k <= shape.tensor_k
    by_agent = shape.noisy and t > 0 and k > shape.tensor_k
    clear(work, scratch.sum_F, k * k)
    clear(work, scratch.sum_f, k)
    clear(work, scratch.sum_state, k)
    if as_tensor:
        clear(work, scratch.sum_tensor, triangle(k) ** 2)
        clear(work, scratch.sum_cross, k * triangle(k))
    for chunk in range(part * shape.chunks // shape.parts, (part + 1) * shape.chunks // shape.parts):
        agent = chunk * LANES
        here = min(LANES, shape.agents - agent)
        d = whole_number(memory.chunks, 2 * chunk + WIDEST)
        rows = chunk_rows_of(shape, memory.chunks, chunk)
        first_spread = whole_number(agents, agent * COLUMNS + COVARIANCE)
        noisy = whole_number(agents, (agent + here) * COLUMNS + COVARIANCE) > first_spread

        if back == 0:
            store(work, rows.discount, splat(1.0))
            for lane in range(here):
                set_number(work, rows.fading * LANES + lane, np.exp(-number(memory.decay, agent + lane)))
            for lane in range(here, LANES):
                set_number(work, rows.fading * LANES + lane, 1.0)
        else:
            rule = rule_rows(rows.rule, back - 1, T, p, d, has_prior)
            _set_penalty(work, rows, scratch, memory.ridge, agent, here)
            if has_prior:
                last_prior = prior + memory.decoder_row * NUMBER
                gather_blocks(work, scratch.prior, last_prior, agents, DECODER, agent, here, 1, False, d)
            if shape.noisy:
                _collect_noise(memory, shape, at, rows, scratch, back - 1)
            agent_side.carry_value(work, rows, rule, scratch, common, last_shift, k - p, p, d, shape.noisy, has_prior)
            store(work, rows.discount, load(work, rows.discount) * load(work, rows.fading))

        rule = rule_rows(rows.rule, back, T, p, d, has_prior)
        _set_penalty(work, rows, scratch, memory.ridge, agent, here)
        gather_blocks(work, scratch.mean, means, agents, FEATURES, agent, here, p, False, d)
        if has_prior:
            gather_blocks(work, scratch.prior, prior, agents, DECODER, agent, here, 1, False, d)
        if noisy:
            gather_blocks(work, scratch.covariance, covariance, agents, COVARIANCE, agent, here, p * p, True, d)
        for j in range(back + 1):
            gather(work, scratch.weights + j, memory.weights, (T - 1 - j) * shape.agents + agent, here, 0.0)

        agent_side.append_functionals(work, rows, target, k - p, p)
        agent_side.form_basis(work, scratch.basis, scratch.weights, common, carried, stride, back, p)
        agent_side.form_rule(work, rows, rule, scratch, k, p, d, noisy, has_prior)
        agent_side.add_to_sums(work, rule, scratch, k, p, d, has_prior)
        if as_tensor and noisy:
            square, cross = scratch.noise_square, scratch.noise_cross
            agent_side.form_noise(work, rule, scratch, square, cross, p, d, has_prior)
            agent_side.add_to_noise_tensor(work, rule, scratch, square, cross, k, p)
        if by_agent:
            for row in range(k * p):
                store(work, rows.basis + row, load(work, scratch.basis + row))
            if noisy:
                agent_side.form_noise(work, rule, scratch, rows.noise_square, rows.noise_cross, p, d, has_prior)
            else:
                clear(work, rows.noise_square, p**4)
                clear(work, rows.noise_cross, p**3)
        if t == 0:
            gather_states(work, scratch.state, memory.states, agent, here, p)
            agent_side.add_weighted_forecasts(work, scratch, T, p)


@njit(cache=True)
def forward_part(memory, first, last, part):
    """Steps first … last-1 of the play for a run of chunks; leaves their weighted forecasts for the step after."""
    shape = read_shape(memory.header)
    p, T, has_prior = shape.y_dim, shape.lookback, shape.has_prior
    at = common_places(T, p, shape.tensor_k)
    scratch = scratch_of(shape, part)
    work, agents, states = memory.work, memory.agents, memory.states
    state_row = shape.agents * p * NUMBER
    clear(work, scratch.sum_state, T * p)
    for chunk in range(part * shape.chunks // shape.parts, (part + 1) * shape.chunks // shape.parts):
        agent = chunk * LANES
        here = min(LANES, shape.agents - agent)
        d = whole_number(memory.chunks, 2 * chunk + WIDEST)
        rows = chunk_rows_of(shape, memory.chunks, chunk)
        gather_states(work, scratch.state, states + first * state_row, agent, here, p)
        for t in range(first, last):
            back = T - 1 - t
            rule = rule_rows(rows.rule, back, T, p, d, has_prior)
            point = at.points + back * T * p
            features = memory.features + t * memory.feature_row * NUMBER
            decoders = memory.decoders + t * memory.decoder_row * NUMBER
            agent_side.answer(work, rule, scratch, memory.common, point, (back + 1) * p, p, d, has_prior)
            gather_blocks(work, scratch.mean, features, agents, FEATURES, agent, here, p, False, d)
            agent_side.move(work, scratch, p, d)
            scatter_blocks(work, scratch.prior, decoders, agents, DECODER, agent, here, d)
            scatter_states(work, scratch.state, states + (t + 1) * state_row, agent, here, p)
        if last < T:
            for j in range(T - last):
                gather(work, scratch.weights + j, memory.weights, (T - 1 - j) * shape.agents + agent, here, 0.0)
            agent_side.add_weighted_forecasts(work, scratch, T - last, p)


@njit(cache=True)
def _sum_backward(memory, back):
    """Sum what the parts found at one step back and solve for what they need. Returns whether it has enough digits."""
    shape = read_shape(memory.header)
    p, T, parts, rows = shape.y_dim, shape.lookback, shape.parts, shape.scratch_rows
    at = common_places(T, p, shape.tensor_k)
    scratch = scratch_of(shape, 0)
    work, common, k = memory.work, memory.common, (back + 1) * p
    add_parts(work, scratch.sum_F, rows, parts, k * k, common, at.coupling)
    add_parts(work, scratch.sum_f, rows, parts, k, common, at.sum_f)
    if shape.noisy and back < T - 1 and k <= shape.tensor_k:
        square, cross = triangle(k) ** 2, k * triangle(k)
        add_parts(work, scratch.sum_tensor, rows, parts, square, common, at.tensor)
        add_parts(work, scratch.sum_cross, rows, parts, cross, common, at.tensor + square)
    return solve_sums(common, at, back, T, p)


@njit(cache=True)
def _sum_forward(memory, t):
    """Sum the agents' weighted forecasts before step t, and find where its functionals will be after it."""
    shape = read_shape(memory.header)
    p, T = shape.y_dim, shape.lookback
    at = common_places(T, p, shape.tensor_k)
    first = scratch_of(shape, 0).sum_state
    add_parts(memory.work, first, shape.scratch_rows, shape.parts, (T - t) * p, memory.common, at.forecasts)
    point_from_forecasts(memory.common, at, T - 1 - t, T, p)


@njit(cache=True)
def _foresee(memory):
    """All further steps at once where the features are what was expected: no more sums are needed."""
    shape = read_shape(memory.header)
    at = common_places(shape.lookback, shape.y_dim, shape.tensor_k)
    for back in range(shape.lookback - 2, -1, -1):
        point_from_last(memory.common, at, back, shape.lookback, shape.y_dim)


def _play(
    header, agents, chunks, means, features, covariance, weights, targets, decay, ridge, prior,
    common, work, decoders, states, as_expected,
):  # fmt: skip
    """Solve one game and play it from states[0]. Returns -1, or the step whose coupling matrix cannot be inverted.

    header, agents, chunks: the plan.   means: m, features: Z as drawn, covariance, prior: β̄, in flat rows.
    weights: w, (lookback, agents).   targets: y, (lookback, y_dim).   decay: α.   ridge: γ.
    common, work, decoders, states: filled.   as_expected: Z is m, so the forward play needs no further sums.
    """
    # Written out here: loops over threads know a tuple's parts only where it is made.
    memory = Memory(
        address(header), address(agents), address(chunks), address(means), address(features), features.shape[1],
        address(covariance), covariance.shape[1], address(prior), decoders.shape[1], address(weights),
        address(targets), address(decay), address(ridge), address(common), first_row(work), address(decoders),
        address(states),
    )  # fmt: skip
    T, parts = targets.shape[0], header[9]
    for back in range(T):
        for part in prange(parts):
            backward_part(memory, back, part)
        if not _sum_backward(memory, back):
            return T - 1 - back
    _sum_forward(memory, 0)
    if as_expected:
        _foresee(memory)
        for part in prange(parts):
            forward_part(memory, 0, T, part)
        return -1
    for t in range(T):
        if t > 0:
            _sum_forward(memory, t)
        for part in prange(parts):
            forward_part(memory, t, t + 1, part)
    return -1


@njit(cache=True)
def growth(header, common):
    """`coupling.growth` of the game that was played last."""
    shape = read_shape(address(header))
    at = common_places(shape.lookback, shape.y_dim, shape.tensor_k)
    most = 1.0
    for back in range(shape.lookback):
        most = max(most, common[at.conditions + back], np.sqrt(common[at.plain_conditions + back]))
    return most


play, play_on_many_cores = for_one_and_many_cores(_play)
