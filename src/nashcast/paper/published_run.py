"""A whole run as the published code makes it: Algorithm 1 with the departures of `published_game`."""

from __future__ import annotations

import numpy as np
from numba import njit

from nashcast.federation.compiled.mixture import fill_mixture_weights, mixture_scratch
from nashcast.federation.compiled.replay_loop import fit_decoder, move
from nashcast.federation.paper import Replay
from nashcast.paper.departures import Departures, Sampler
from nashcast.paper.published_game import play_published
from nashcast.streams import Stream


def replay_published(
    stream: Stream,
    features: np.ndarray,
    means: np.ndarray,
    covariance: np.ndarray,
    sampler: Sampler,
    *,
    ridge: float,
    decay: float,
    window: int,
    lookback: int,
    every: int,
    mixture: tuple[float, float],
    departures: Departures,
    seed: int = 0,
) -> Replay:
    """features, means: (agents, steps, y_dim, features).   covariance: (agents, steps, y_dim, y_dim, …) likewise.

    lookback: 0 for no game.   mixture: κ and η.   sampler: its drive over the whole series, (agents, steps, …).
    seed: of the samples.
    """
    N, R, p, d = features.shape
    flat = np.ascontiguousarray(np.moveaxis(features, 0, 1)).reshape(R, N * p * d)
    targets = np.concatenate([stream.start[None], stream.targets])
    forecasts, weights, own = np.empty((R, p)), np.empty((R, N)), np.empty((R, N, p))
    _loop(
        flat, np.ascontiguousarray(np.moveaxis(features, 0, 1)), np.ascontiguousarray(np.moveaxis(means, 0, 1)),
        np.ascontiguousarray(np.moveaxis(covariance, 0, 1)),
        sampler._replace(drive=np.ascontiguousarray(np.moveaxis(sampler.drive, 0, 1))),
        np.random.Generator(np.random.PCG64(seed)), targets, float(ridge),
        float(decay), window, lookback, every, float(mixture[0]), float(mixture[1]), departures.printed,
        departures.scrambled, departures.reshaped, departures.detached,
        np.empty((mixture_scratch(p, N), max(p, N))), forecasts, weights, own,
    )  # fmt: skip
    return Replay(forecasts, weights, own, float(np.mean((forecasts - stream.targets) ** 2)))


@njit(cache=True, nogil=True)
def _loop(
    flat, features, means, covariance, sampler, rng, targets, ridge, decay, window, T, every, kappa, eta, printed,
    scrambled, reshaped, detached, mixture_scratch, forecasts, weights, own,
):  # fmt: skip
    R, N, p, d = features.shape
    gram, scratch, raw = np.zeros((d, d)), np.empty((d, d)), np.empty(p * d)
    cross, decoders = np.zeros(d), np.zeros((N, d))
    last, now, local, presents = np.empty((p, N)), np.empty((N, p)), np.empty((N, p)), np.zeros((R, N, p))
    # What the server holds of each agent, and what the agent itself goes on from: one thing, unless detached.
    served = np.empty((N, p))
    for i in range(N):
        now[i] = targets[0]
        served[i] = targets[0]
    for t in range(R):
        for i in range(N):
            place = i * p * d
            fit_decoder(
                flat, targets, presents, place, i, t, p, d, ridge, decay, window, 0.0, gram, cross, scratch, decoders[i]
            )
            move(flat, t, place, i, p, d, now[i], decoders[i], False, raw, own[t])
        local[:] = own[t]

        for i in range(N):
            for a in range(p):
                if reshaped:
                    place = i * p + a
                    last[place // N, place % N] = served[i, a]
                else:
                    last[a, i] = served[i, a]
        fill_mixture_weights(last, targets[t], p, kappa, eta, 1.0, mixture_scratch, weights[t])

        synchronised = T > 0 and t >= T and t % every == 0
        if synchronised:
            moment = covariance[:1] if sampler.samples else covariance[t - T : t]
            window_sampler = Sampler(
                sampler.samples, sampler.drive[t - T : t] if sampler.samples else sampler.drive, sampler.recurrent,
                sampler.noise,
            )  # fmt: skip
            game_decoders, states = play_published(
                features[t - T : t], means[t - T : t], moment, weights[t - T : t], targets[t - T + 1 : t + 1],
                targets[t - T], decay, ridge, printed, scrambled, window_sampler, rng,
            )  # fmt: skip
            for i in range(N):
                move(flat, t, i * p * d, i, p, d, states[T, i], game_decoders[T - 1, i], False, raw, own[t])

        for a in range(p):
            total = 0.0
            for i in range(N):
                total += weights[t, i] * own[t, i, a]
            forecasts[t, a] = total
        for i in range(N):
            for a in range(p):
                presents[t, i, a] = states[T, i, a] if synchronised else now[i, a]
                now[i, a] = local[i, a] if detached else own[t, i, a]
                served[i, a] = own[t, i, a]
