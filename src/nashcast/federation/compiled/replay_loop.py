"""Algorithm 1 over a whole series, compiled: the order and the functions of the online step."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from nashcast.federation.compiled.counter_noise import standard_normal_at
from nashcast.federation.compiled.mixture import fill_mixture_weights
from nashcast.federation.compiled.moments import Echo, drawn_steps, fill_echo_moments
from nashcast.federation.compiled.ridge import fade, fill_long_memory_decoder, remember_row, solve_ridge
from nashcast.games.lookback.compiled.lanes.lane_algebra import COVARIANCE, DECODER, FEATURES, SIZE
from nashcast.games.lookback.compiled.passes import growth, play
from nashcast.games.lookback.compiled.root_form import solve_twice
from nashcast.games.lookback.coupling import PRECISE
from nashcast.games.lookback.root_form import RootGame
from nashcast.games.lookback.root_solver import DIGITS


class Series(NamedTuple):
    """A whole series, encoded. Rows of features, means and covariance are flat: one agent's numbers after another's."""

    features: np.ndarray
    means: np.ndarray
    covariance: np.ndarray
    targets: np.ndarray  # (steps + 1, y_dim), the start first


class AgentSettings(NamedTuple):
    """The agents' settings, (agents,) each."""

    ridge: np.ndarray
    decay: np.ndarray
    window: np.ndarray
    forgetting: np.ndarray  # 0 for a decoder of the window
    relative: np.ndarray
    keys: np.ndarray  # keys of their noise


class EchoStates(NamedTuple):
    """The echo states among the agents. samples: 0 for all other agents."""

    samples: np.ndarray
    activation: np.ndarray
    leak: np.ndarray
    recurrent: np.ndarray  # (agents, y_dim, y_dim)
    noise: np.ndarray  # (agents, y_dim)
    drive: np.ndarray  # in flat rows


class Rules(NamedTuple):
    """The federation's settings. lookback: 0 for no game.   noisy: whether any agent's features are random."""

    lookback: int
    every: int
    anchored: bool
    ridge: float
    budget: float
    noisy: bool


class LoopMemory(NamedTuple):
    """Working arrays of the loop, allocated by the caller."""

    presents: np.ndarray  # where each agent's step started, (steps, agents, y_dim)
    grams: np.ndarray
    crosses: np.ndarray
    scratch: np.ndarray
    decoders: np.ndarray
    mixture: np.ndarray  # see `mixture_scratch`
    last: np.ndarray  # (y_dim, agents)
    common: np.ndarray  # see `passes.play`
    work: np.ndarray
    game_decoders: np.ndarray
    game_states: np.ndarray
    window_means: np.ndarray
    window_covariance: np.ndarray


class Results(NamedTuple):
    """Row t belongs to the target after targets[t]."""

    forecasts: np.ndarray  # (steps, y_dim)
    weights: np.ndarray  # (steps, agents)
    own: np.ndarray  # each agent's forecasts, (steps, agents, y_dim)


class Block(NamedTuple):
    """One agent's numbers in the flat rows: where its features start, and how many targets and features it has."""

    agent: int
    place: int
    y_dim: int
    features: int
    relative: bool = False


class Fit(NamedTuple):
    """How one agent fits its own decoder, with its working arrays. forgetting: 0 for a window."""

    ridge: float
    decay: float
    window: int
    forgetting: float
    gram: np.ndarray
    cross: np.ndarray
    scratch: np.ndarray


@njit(cache=True)
def fit_decoder(features, targets, presents, block, t, fit, decoder):
    """An agent's own decoder before step t (Proposition 1)."""
    i, place, p, d = block.agent, block.place, block.y_dim, block.features
    gram, cross, scratch = fit.gram, fit.cross, fit.scratch
    if t == 0 or d == 0:
        return
    if fit.forgetting > 0.0:
        fade(gram, cross, fit.forgetting)
        for a in range(p):
            row = features[t - 1, place + a * d : place + (a + 1) * d]
            remember_row(gram, cross, row, targets[t, a] - presents[t - 1, i, a])
        fill_long_memory_decoder(gram, cross, fit.ridge, scratch, decoder)
        return
    fading, first = np.exp(-fit.decay), max(0, t - fit.window)
    scratch[:d, :d] = 0.0
    decoder[:] = 0.0
    for s in range(first, t):
        if s > first:
            fade(scratch, decoder, fading)
        for a in range(p):
            row = features[s, place + a * d : place + (a + 1) * d]
            remember_row(scratch, decoder, row, targets[s + 1, a] - presents[s, i, a])
    solve_ridge(scratch, decoder, fit.ridge)


@njit(cache=True)
def move(features, t, block, present, decoder, raw, out):
    """Ŷ_{t+1} = Ŷ_t + Z_t β, with forecasts among the features taken relative to Ŷ_t."""
    place, d = block.place, block.features
    for a in range(block.y_dim):
        total = present[a]
        for f in range(d):
            if block.relative:
                features[t, place + a * d + f] = raw[a * d + f] - present[a]
            total += features[t, place + a * d + f] * decoder[f]
        out[block.agent, a] = total


@njit(cache=True)
def _sample_echo(states, key, t, block, spread, features, window):
    """An echo state's moments over the window before step t, as its online agent samples them.

    spread: where the agent's covariance starts.   window: means and covariance of all agents, filled.
    """
    means, cov = window
    i, place, p, d = block.agent, block.place, block.y_dim, block.features
    T, samples, step = len(means), states.samples[i], -1 - t
    echo = Echo(states.activation[i], states.leak[i], states.recurrent[i], states.noise[i])
    normals = np.empty((samples, T, d))
    first, last = drawn_steps(echo.activation, T)
    for s in range(samples):
        for u in range(first, last):
            for f in range(d):
                normals[s, u, f] = standard_normal_at(key, step, (s * T + u) * d + f)
    mean, covariance = np.empty((T, p, d)), np.empty((T, p, p, d, d))
    driven = np.empty((T, p, d))
    for u in range(T):
        for a in range(p):
            for f in range(d):
                driven[u, a, f] = states.drive[t - T + u, place + a * d + f]
    start = np.empty((p, d))
    for a in range(p):
        for f in range(d):
            start[a, f] = features[t - T, place + a * d + f]
    fill_echo_moments(echo, driven, start, normals, np.empty((2, samples, p)), mean, covariance)
    for u in range(T):
        means[u, place : place + p * d] = mean[u].reshape(p * d)
        cov[u, spread : spread + p * p * d * d] = covariance[u].reshape(p * p * d * d)


@njit(cache=True)
def _root_game(agents, moments, series, weights, settings, t):
    """The game before step t in root form, used as in `solve_game` where the recursion would lose digits."""
    (expected, spread), T = moments, len(weights)
    return RootGame(
        agents[:-1, SIZE].copy(), agents[:, FEATURES].copy(), agents[:, COVARIANCE].copy(), agents[:, DECODER].copy(),
        expected.copy(), spread.copy(), np.empty((1, 0)), weights.copy(), series.targets[t - T + 1 : t + 1].copy(),
        settings.ridge, settings.decay,
    )  # fmt: skip


@njit(cache=True, nogil=True)
def run_loop(plan, series, settings, echo_states, rules, memory, results):
    """Fills the results. plan: header, agents and chunks of the game's plan.

    Returns how many games were due but could not be solved, so that the greedy step was used.
    """
    header, agents, _ = plan
    features, means, covariance, targets = series
    weights, own = results.weights, results.own
    T, noisy, presents, decoders = rules.lookback, rules.noisy, memory.presents, memory.decoders
    game_decoders, game_states = memory.game_decoders, memory.game_states
    R, N, p = own.shape
    raw = np.empty(features.shape[1])
    fallbacks = 0
    now = np.empty((N, p))
    for i in range(N):
        for a in range(p):
            now[i, a] = targets[0, a]
    for t in range(R):
        # Algorithm 1, "update experts".
        for i in range(N):
            d, place, first = agents[i, SIZE], agents[i, FEATURES], agents[i, DECODER]
            block = Block(i, place, p, d, settings.relative[i])
            decoder = decoders[first : first + d]
            fit = Fit(
                settings.ridge[i], settings.decay[i], settings.window[i], settings.forgetting[i],
                memory.grams[i, :d, :d], memory.crosses[i, :d], memory.scratch,
            )  # fmt: skip
            fit_decoder(features, targets, presents, block, t, fit, decoder)
            raw[place : place + p * d] = features[t, place : place + p * d]
            move(features, t, block, now[i], decoder, raw[place : place + p * d], own[t])

        # Algorithm 1, "compute mixture weights".
        for i in range(N):
            for a in range(p):
                memory.last[a, i] = now[i, a]
        fill_mixture_weights(memory.last, targets[t], rules.ridge, rules.budget, memory.mixture, weights[t])

        # Algorithm 1, "synchronize local agents via Nash game".
        played = False
        if T > 0 and t >= T and t % rules.every == 0:
            for i in range(N):
                for a in range(p):
                    game_states[0, i, a] = targets[t - T, a]
            expected, spread = features[t - T : t], covariance[:1]
            if noisy:
                expected, spread = memory.window_means, memory.window_covariance
                expected[:] = means[t - T : t]
                spread[:] = covariance[t - T : t]
                for i in range(N):
                    d, place = agents[i, SIZE], agents[i, FEATURES]
                    if settings.relative[i]:
                        expected[:, place : place + p * d] = features[t - T : t, place : place + p * d]
                    if echo_states.samples[i] > 0:
                        block, window = Block(i, place, p, d, settings.relative[i]), (expected, spread)
                        _sample_echo(echo_states, settings.keys[i], t, block, agents[i, COVARIANCE], features, window)
            game = (
                expected, features[t - T : t], spread, covariance[:1, :0], weights[t - T : t],
                targets[t - T + 1 : t + 1], settings.decay, settings.ridge,
            )  # fmt: skip
            workspace = (memory.common, memory.work, game_decoders, game_states)
            singular = play(plan, game, workspace, not noisy)
            played = singular < 0 and growth(header, memory.common) <= PRECISE
            if not played:
                due = _root_game(agents, (expected, spread), series, weights[t - T : t], settings, t)
                _, pivots, solved, apart = solve_twice(due, features[t - T : t].copy(), game_states)
                played = apart <= DIGITS and np.isfinite(np.max(pivots))
                if played:
                    game_decoders[:] = solved
                else:
                    fallbacks += 1
        if played or rules.anchored:
            # Algorithm 1, "correct local predictions".
            for i in range(N):
                d, place, first = agents[i, SIZE], agents[i, FEATURES], agents[i, DECODER]
                decoder = decoders[first : first + d]
                if played:
                    decoder = game_decoders[T - 1, first : first + d]
                for a in range(p):
                    now[i, a] = game_states[T, i, a] if played else targets[t, a]
                block = Block(i, place, p, d, settings.relative[i])
                move(features, t, block, now[i], decoder, raw[place : place + p * d], own[t])

        # Algorithm 1, last line; then the agents' memory of this step.
        finish_step(results, t, now, presents)
    return fallbacks


@njit(cache=True)
def finish_step(results, t, now, presents):
    """Fill in the mixture's forecast of step t, store where each agent started, and set where it goes on."""
    forecasts, weights, own = results
    _, N, p = own.shape
    for a in range(p):
        total = 0.0
        for i in range(N):
            total += weights[t, i] * own[t, i, a]
        forecasts[t, a] = total
    for i in range(N):
        for a in range(p):
            presents[t, i, a] = now[i, a]
            now[i, a] = own[t, i, a]
