"""The whole game: backwards for the feedback rules, forwards for the play. One source, for one core and for many."""

from __future__ import annotations

import numpy as np
from numba import njit, prange

from nashcast.games.lookback.compiled import agents as agent_side
from nashcast.games.lookback.compiled import noise
from nashcast.games.lookback.compiled.agents import StepSize
from nashcast.games.lookback.compiled.cores import for_one_and_many_cores
from nashcast.games.lookback.compiled.lanes.lane_algebra import (
    COVARIANCE,
    DECODER,
    FEATURES,
    clear,
    gather,
    gather_blocks,
    gather_states,
    place_of,
    scatter_blocks,
    scatter_states,
    triangle,
)
from nashcast.games.lookback.compiled.lanes.lanes import (
    LANES,
    address,
    first_row,
    load,
    number,
    set_number,
    splat,
    store,
)
from nashcast.games.lookback.compiled.memory import NUMBER, Memory, chunk_agents_of, chunk_rows_of, scratch_of
from nashcast.games.lookback.compiled.plan import common_places, read_shape, rule_rows
from nashcast.games.lookback.compiled.sums import add_parts, point_from_forecasts, point_from_last, solve_sums


@njit(cache=True)
def _set_penalty(work, rows, scratch, ridge, chunk):
    gather(work, scratch.penalty, ridge, chunk.first, chunk.here, 1.0)
    store(work, scratch.penalty, load(work, rows.discount) * load(work, scratch.penalty))


@njit(cache=True)
def _set_weights(memory, shape, scratch, chunk, steps):
    """The weights of the last `steps` steps of the window, the last one first."""
    for j in range(steps):
        first = (shape.lookback - 1 - j) * shape.agents + chunk.first
        gather(memory.work, scratch.weights + j, memory.weights, first, chunk.here, 0.0)


@njit(cache=True)
def _collect_noise(memory, shape, at, rows, scratch, back):
    p, work = shape.y_dim, memory.work
    k = (back + 1) * p
    if k <= shape.tensor_k:
        noise.noise_from_tensor(work, rows, scratch, memory.common + at.tensor * NUMBER, k)
        return
    clear(work, scratch.noise_kappa, triangle(k))
    clear(work, scratch.noise_sigma, k)
    for place in range(shape.chunks):
        chunk, other = chunk_agents_of(memory, shape, place), chunk_rows_of(shape, memory.chunks, place)
        rule = rule_rows(other.rule, back, shape.lookback, p, chunk.widest, shape.has_prior)
        size = StepSize(k, p, chunk.widest, shape.has_prior)
        for lane in range(chunk.here):
            noise.add_noise_of(work, rows, scratch, other, rule, lane, size)


@njit(cache=True)
def backward_part(memory, back, part):
    """One step back for a run of chunks: carry their value functions over the step after it, then add to the sums."""
    shape = read_shape(memory.header)
    p, T, has_prior = shape.y_dim, shape.lookback, shape.has_prior
    t, k, stride = T - 1 - back, (back + 1) * p, T * p
    at = common_places(T, p, shape.tensor_k)
    scratch = scratch_of(shape, part)
    work = memory.work
    means = memory.means + t * memory.feature_row * NUMBER
    covariance = memory.covariance + t * memory.covariance_row * NUMBER
    prior = memory.prior + t * memory.decoder_row * NUMBER
    target = memory.targets + t * p * NUMBER
    last_shift = memory.common + (at.shifts + (back - 1) * stride) * NUMBER
    carried = memory.common + (at.bases + (back - 1) * stride * stride) * NUMBER
    as_tensor = shape.noisy and t > 0 and k <= shape.tensor_k
    by_agent = shape.noisy and t > 0 and k > shape.tensor_k
    clear(work, scratch.sum_F, k * k)
    clear(work, scratch.sum_f, k)
    clear(work, scratch.sum_state, k)
    if as_tensor:
        clear(work, scratch.sum_tensor, triangle(k) ** 2)
        clear(work, scratch.sum_cross, k * triangle(k))
    for place in range(part * shape.chunks // shape.parts, (part + 1) * shape.chunks // shape.parts):
        chunk, rows = chunk_agents_of(memory, shape, place), chunk_rows_of(shape, memory.chunks, place)
        d, here = chunk.widest, chunk.here
        noisy = place_of(chunk, here, COVARIANCE) > place_of(chunk, 0, COVARIANCE)

        if back == 0:
            store(work, rows.discount, splat(1.0))
            for lane in range(here):
                set_number(work, rows.fading * LANES + lane, np.exp(-number(memory.decay, chunk.first + lane)))
            for lane in range(here, LANES):
                set_number(work, rows.fading * LANES + lane, 1.0)
        else:
            rule = rule_rows(rows.rule, back - 1, T, p, d, has_prior)
            _set_penalty(work, rows, scratch, memory.ridge, chunk)
            if has_prior:
                last_prior = prior + memory.decoder_row * NUMBER
                gather_blocks(work, scratch.prior, last_prior, chunk, DECODER, 1, False)
            if shape.noisy:
                _collect_noise(memory, shape, at, rows, scratch, back - 1)
            before = StepSize(k - p, p, d, has_prior)
            agent_side.carry_value(work, rows, rule, scratch, last_shift, before, shape.noisy)
            store(work, rows.discount, load(work, rows.discount) * load(work, rows.fading))

        rule = rule_rows(rows.rule, back, T, p, d, has_prior)
        size = StepSize(k, p, d, has_prior)
        _set_penalty(work, rows, scratch, memory.ridge, chunk)
        gather_blocks(work, scratch.mean, means, chunk, FEATURES, p, False)
        if has_prior:
            gather_blocks(work, scratch.prior, prior, chunk, DECODER, 1, False)
        if noisy:
            gather_blocks(work, scratch.covariance, covariance, chunk, COVARIANCE, p * p, True)
        _set_weights(memory, shape, scratch, chunk, back + 1)

        agent_side.append_functionals(work, rows, target, k - p, p)
        agent_side.form_basis(work, scratch, carried, stride, back, p)
        agent_side.form_rule(work, rows, rule, scratch, size, noisy)
        agent_side.add_to_sums(work, rule, scratch, size)
        if as_tensor and noisy:
            square, cross = scratch.noise_square, scratch.noise_cross
            noise.form_noise(work, rule, scratch, square, cross, size)
            noise.add_to_noise_tensor(work, rule, scratch, square, cross, k, p)
        if by_agent:
            for row in range(k * p):
                store(work, rows.basis + row, load(work, scratch.basis + row))
            if noisy:
                noise.form_noise(work, rule, scratch, rows.noise_square, rows.noise_cross, size)
            else:
                clear(work, rows.noise_square, p**4)
                clear(work, rows.noise_cross, p**3)
        if t == 0:
            gather_states(work, scratch.state, memory.states, chunk.first, here, p)
            agent_side.add_weighted_forecasts(work, scratch, T, p)


@njit(cache=True)
def forward_part(memory, first, last, part):
    """Steps first … last-1 of the play for a run of chunks; leaves their weighted forecasts for the step after."""
    shape = read_shape(memory.header)
    p, T, has_prior = shape.y_dim, shape.lookback, shape.has_prior
    at = common_places(T, p, shape.tensor_k)
    scratch = scratch_of(shape, part)
    work, states = memory.work, memory.states
    state_row = shape.agents * p * NUMBER
    clear(work, scratch.sum_state, T * p)
    for place in range(part * shape.chunks // shape.parts, (part + 1) * shape.chunks // shape.parts):
        chunk, rows = chunk_agents_of(memory, shape, place), chunk_rows_of(shape, memory.chunks, place)
        d, here = chunk.widest, chunk.here
        gather_states(work, scratch.state, states + first * state_row, chunk.first, here, p)
        for t in range(first, last):
            back = T - 1 - t
            rule = rule_rows(rows.rule, back, T, p, d, has_prior)
            point = memory.common + (at.points + back * T * p) * NUMBER
            features = memory.features + t * memory.feature_row * NUMBER
            decoders = memory.decoders + t * memory.decoder_row * NUMBER
            agent_side.answer(work, rule, scratch, point, StepSize((back + 1) * p, p, d, has_prior))
            gather_blocks(work, scratch.mean, features, chunk, FEATURES, p, False)
            agent_side.move(work, scratch, p, d)
            scatter_blocks(work, scratch.prior, decoders, chunk, DECODER)
            scatter_states(work, scratch.state, states + (t + 1) * state_row, chunk.first, here, p)
        if last < T:
            _set_weights(memory, shape, scratch, chunk, T - last)
            agent_side.add_weighted_forecasts(work, scratch, T - last, p)


@njit(cache=True)
def _sum_backward(memory, back):
    """Sum the terms of the parts at one step back and solve for g and ζ. Returns whether it has enough digits."""
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
    """Sum the agents' weighted forecasts before step t, and compute the functionals after it."""
    shape = read_shape(memory.header)
    p, T = shape.y_dim, shape.lookback
    at = common_places(T, p, shape.tensor_k)
    first = scratch_of(shape, 0).sum_state
    add_parts(memory.work, first, shape.scratch_rows, shape.parts, (T - t) * p, memory.common, at.forecasts)
    point_from_forecasts(memory.common, at, T - 1 - t, T, p)


@njit(cache=True)
def _play_ahead(memory):
    """All further steps at once where the features equal their means: no more sums are needed."""
    shape = read_shape(memory.header)
    at = common_places(shape.lookback, shape.y_dim, shape.tensor_k)
    for back in range(shape.lookback - 2, -1, -1):
        point_from_last(memory.common, at, back, shape.lookback, shape.y_dim)


def _play(plan, game, workspace, as_expected):
    """Solve one game and play it from states[0]. Returns -1, or the step whose coupling matrix cannot be inverted.

    plan: header, agents and chunks of the plan.
    game: means m, features Z as drawn, covariance, prior β̄, each in flat rows; weights w, (lookback, agents); targets
    y, (lookback, y_dim); decay α and ridge γ of each agent.
    workspace: common, work, decoders and states, which are filled.
    as_expected: Z is m, so the forward play needs no further sums.

    All but the last are plain tuples of arrays: numba takes these from Python faster than named ones.
    """
    header, agents, chunks = plan
    means, features, covariance, prior, weights, targets, decay, ridge = game
    common, work, decoders, states = workspace
    # Written out here: parallel loops can use a tuple's parts only where it is made.
    memory = Memory(
        address(header), address(agents), address(chunks), address(means), address(features), features.shape[1],
        address(covariance), covariance.shape[1], address(prior), decoders.shape[1], address(weights),
        address(targets), address(decay), address(ridge), address(common), first_row(work), address(decoders),
        address(states),
    )  # fmt: skip
    T, parts = targets.shape[0], read_shape(address(header)).parts
    for back in range(T):
        for part in prange(parts):
            backward_part(memory, back, part)
        if not _sum_backward(memory, back):
            return T - 1 - back
    _sum_forward(memory, 0)
    if as_expected:
        _play_ahead(memory)
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
