"""Algorithm 1 over a whole series, compiled: the online step's order, over the same functions."""

from __future__ import annotations

import numpy as np
from numba import njit

from nashcast.federation.compiled.counter_noise import standard_normal_at
from nashcast.federation.compiled.mixture import fill_mixture_weights
from nashcast.federation.compiled.moments import drawn_steps, fill_echo_moments
from nashcast.federation.compiled.ridge import fade, fill_long_memory_decoder, remember_row, solve_ridge
from nashcast.games.lookback.compiled.passes import growth, play
from nashcast.games.lookback.compiled.root_form import solve_twice
from nashcast.games.lookback.coupling import PRECISE
from nashcast.games.lookback.root_form import RootGame
from nashcast.games.lookback.root_solver import DIGITS


@njit(cache=True)
def fit_decoder(
    features, targets, presents, place, i, t, p, d, ridge, decay, window, forgetting, gram, cross, scratch, decoder
):
    """Agent i's own decoder before step t (Proposition 1)."""
    if t == 0 or d == 0:
        return
    if forgetting > 0.0:
        fade(gram, cross, forgetting)
        for a in range(p):
            row = features[t - 1, place + a * d : place + (a + 1) * d]
            remember_row(gram, cross, row, targets[t, a] - presents[t - 1, i, a])
        fill_long_memory_decoder(gram, cross, ridge, scratch, decoder)
        return
    fading, first = np.exp(-decay), max(0, t - window)
    scratch[:d, :d] = 0.0
    decoder[:] = 0.0
    for s in range(first, t):
        if s > first:
            fade(scratch, decoder, fading)
        for a in range(p):
            row = features[s, place + a * d : place + (a + 1) * d]
            remember_row(scratch, decoder, row, targets[s + 1, a] - presents[s, i, a])
    solve_ridge(scratch, decoder, ridge)


@njit(cache=True)
def move(features, t, place, i, p, d, present, decoder, relative, raw, out):
    """Ŷ_{t+1} = Ŷ_t + Z_t β, with forecasts among the features taken relative to Ŷ_t."""
    for a in range(p):
        total = present[a]
        for f in range(d):
            if relative:
                features[t, place + a * d + f] = raw[a * d + f] - present[a]
            total += features[t, place + a * d + f] * decoder[f]
        out[i, a] = total


@njit(cache=True)
def _sample_echo(
    key, step, t, T, place, spread, p, d, drive, recurrent, noise, samples, activation, leak, features, means, cov
):  # fmt: skip
    """An echo state's moments over the window before step t, as its online agent samples them."""
    normals = np.empty((samples, T, d))
    first, last = drawn_steps(activation, T)
    for s in range(samples):
        for u in range(first, last):
            for f in range(d):
                normals[s, u, f] = standard_normal_at(key, step, (s * T + u) * d + f)
    mean, covariance = np.empty((T, p, d)), np.empty((T, p, p, d, d))
    driven = np.empty((T, p, d))
    for u in range(T):
        for a in range(p):
            for f in range(d):
                driven[u, a, f] = drive[t - T + u, place + a * d + f]
    start = np.empty((p, d))
    for a in range(p):
        for f in range(d):
            start[a, f] = features[t - T, place + a * d + f]
    fill_echo_moments(
        activation, leak, driven, recurrent, start, noise, normals, np.empty((2, samples, p)), mean, covariance
    )  # fmt: skip
    for u in range(T):
        means[u, place : place + p * d] = mean[u].reshape(p * d)
        cov[u, spread : spread + p * p * d * d] = covariance[u].reshape(p * p * d * d)


@njit(cache=True, nogil=True)
def run_loop(
    header, agents, chunks, features, means, covariance, targets, ridge, decay, window, forgetting, relative, samples,
    activation, leak, recurrent, noise, drive, keys, T, every, anchored, kappa, eta, noisy, presents, grams, crosses,
    scratch, decoders, mixture_scratch, last, common, work, game_decoders, game_states, window_means,
    window_covariance, forecasts, weights, own,
):  # fmt: skip
    """Fills forecasts, weights and own (each agent's forecasts). Row t belongs to the target after targets[t].

    Returns how many games were due but could not be solved, so that the greedy step stood.
    """
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
            d, place, first = agents[i, 0], agents[i, 1], agents[i, 3]
            decoder = decoders[first : first + d]
            fit_decoder(
                features, targets, presents, place, i, t, p, d, ridge[i], decay[i], window[i], forgetting[i],
                grams[i, :d, :d], crosses[i, :d], scratch, decoder,
            )  # fmt: skip
            raw[place : place + p * d] = features[t, place : place + p * d]
            move(features, t, place, i, p, d, now[i], decoder, relative[i], raw[place : place + p * d], own[t])

        # Algorithm 1, "compute mixture weights".
        for i in range(N):
            for a in range(p):
                last[a, i] = now[i, a]
        fill_mixture_weights(last, targets[t], p, kappa, eta, 1.0, mixture_scratch, weights[t])

        # Algorithm 1, "synchronize local agents via Nash game".
        played = False
        if T > 0 and t >= T and t % every == 0:
            for i in range(N):
                for a in range(p):
                    game_states[0, i, a] = targets[t - T, a]
            expected, spread = features[t - T : t], covariance[:1]
            if noisy:
                window_means[:] = means[t - T : t]
                window_covariance[:] = covariance[t - T : t]
                for i in range(N):
                    d, place = agents[i, 0], agents[i, 1]
                    if relative[i]:
                        window_means[:, place : place + p * d] = features[t - T : t, place : place + p * d]
                    if samples[i] > 0:
                        _sample_echo(
                            keys[i], -1 - t, t, T, place, agents[i, 2], p, d, drive, recurrent[i], noise[i], samples[i],
                            activation[i], leak[i], features, window_means, window_covariance,
                        )  # fmt: skip
                expected, spread = window_means, window_covariance
            singular = play(
                header, agents, chunks, expected, features[t - T : t], spread, weights[t - T : t],
                targets[t - T + 1 : t + 1], decay, ridge, covariance[:1, :0], common, work, game_decoders, game_states,
                not noisy,
            )  # fmt: skip
            played = singular < 0 and growth(header, common) <= PRECISE
            if not played:
                # The recursion would lose digits; as `games.lookback.game` does online.
                due = RootGame(
                    agents[:N, 0].copy(), agents[:, 1].copy(), agents[:, 2].copy(), agents[:, 3].copy(),
                    expected.copy(), spread.copy(), np.empty((1, 0)), weights[t - T : t].copy(),
                    targets[t - T + 1 : t + 1].copy(), ridge, decay,
                )  # fmt: skip
                _, pivots, solved, apart = solve_twice(due, features[t - T : t].copy(), game_states)
                played = apart <= DIGITS and np.isfinite(np.max(pivots))
                if played:
                    game_decoders[:] = solved
                else:
                    fallbacks += 1
        if played or anchored:
            # Algorithm 1, "correct local predictions".
            for i in range(N):
                d, place, first = agents[i, 0], agents[i, 1], agents[i, 3]
                decoder = decoders[first : first + d]
                if played:
                    decoder = game_decoders[T - 1, first : first + d]
                for a in range(p):
                    now[i, a] = game_states[T, i, a] if played else targets[t, a]
                move(features, t, place, i, p, d, now[i], decoder, relative[i], raw[place : place + p * d], own[t])

        # Algorithm 1, last line; and what the agents remember of this step.
        for a in range(p):
            total = 0.0
            for i in range(N):
                total += weights[t, i] * own[t, i, a]
            forecasts[t, a] = total
        for i in range(N):
            for a in range(p):
                presents[t, i, a] = now[i, a]
                now[i, a] = own[t, i, a]
    return fallbacks
