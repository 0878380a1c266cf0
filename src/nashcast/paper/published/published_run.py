"""A whole run as in the published code: Algorithm 1 with the deviations of `published_game`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from nashcast.datasets import Stream
from nashcast.federation.compiled.mixture import fill_mixture_weights, mixture_scratch
from nashcast.federation.compiled.replay_loop import Block, Fit, Results, finish_step, fit_decoder, move
from nashcast.federation.paper import Replay
from nashcast.paper.published.departures import Departures, Sampler
from nashcast.paper.published.published_game import PublishedGame, play_published


class PublishedSeries(NamedTuple):
    """A series, encoded by all agents. sampler: its drive over the whole series, (agents, steps, …)."""

    features: np.ndarray  # (agents, steps, y_dim, features)
    means: np.ndarray
    covariance: np.ndarray  # (agents, steps, y_dim, y_dim, features, features)
    sampler: Sampler


class PublishedSettings(NamedTuple):
    """The same for all agents. lookback: 0 for no game.   kappa, eta: of the mixture."""

    ridge: float
    decay: float
    window: int
    lookback: int
    every: int
    kappa: float
    eta: float


def replay_published(
    stream: Stream, series: PublishedSeries, settings: PublishedSettings, departures: Departures, seed: int = 0
) -> Replay:
    """The whole run. seed: of the samples."""
    N, R, p, d = series.features.shape
    by_step = PublishedSeries(
        _by_step(series.features), _by_step(series.means), _by_step(series.covariance),
        series.sampler._replace(drive=_by_step(series.sampler.drive)),
    )  # fmt: skip
    targets = np.concatenate([stream.start[None], stream.targets])
    found = Results(np.empty((R, p)), np.empty((R, N)), np.empty((R, N, p)))
    rng = np.random.Generator(np.random.PCG64(seed))
    flat = by_step.features.reshape(R, N * p * d)
    _loop(flat, by_step, targets, settings, departures, rng, found)
    return Replay(*found, float(np.mean((found.forecasts - stream.targets) ** 2)))


def _by_step(values: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(np.moveaxis(values, 0, 1))


@njit(cache=True, nogil=True)
def _loop(flat, series, targets, settings, departures, rng, found):
    features, means, covariance, sampler = series
    weights, own, T = found.weights, found.own, settings.lookback
    R, N, p, d = features.shape
    mixture = np.empty((mixture_scratch(p, N), max(p, N)))
    raw, decoders = np.empty(p * d), np.zeros((N, d))
    fit = Fit(
        settings.ridge, settings.decay, settings.window, 0.0, np.zeros((d, d)), np.zeros(d), np.empty((d, d))
    )  # fmt: skip
    last, now, local, presents = np.empty((p, N)), np.empty((N, p)), np.empty((N, p)), np.zeros((R, N, p))
    # The server's copy of each agent's forecast, and the agent's own: equal unless detached.
    served = np.empty((N, p))
    for i in range(N):
        now[i] = targets[0]
        served[i] = targets[0]
    for t in range(R):
        for i in range(N):
            block = Block(i, i * p * d, p, d, False)
            fit_decoder(flat, targets, presents, block, t, fit, decoders[i])
            move(flat, t, block, now[i], decoders[i], raw, own[t])
        local[:] = own[t]

        for i in range(N):
            for a in range(p):
                if departures.reshaped:
                    place = i * p + a
                    last[place // N, place % N] = served[i, a]
                else:
                    last[a, i] = served[i, a]
        fill_mixture_weights(last, targets[t], settings.kappa, settings.eta, mixture, weights[t])

        if T > 0 and t >= T and t % settings.every == 0:
            moment = covariance[:1] if sampler.samples else covariance[t - T : t]
            window_sampler = Sampler(
                sampler.samples, sampler.drive[t - T : t] if sampler.samples else sampler.drive, sampler.recurrent,
                sampler.noise,
            )  # fmt: skip
            game = PublishedGame(
                features[t - T : t], means[t - T : t], moment, weights[t - T : t], targets[t - T + 1 : t + 1],
                targets[t - T], settings.decay, settings.ridge,
            )  # fmt: skip
            game_decoders, states = play_published(game, departures, window_sampler, rng)
            for i in range(N):
                now[i] = states[T, i]
                move(flat, t, Block(i, i * p * d, p, d, False), now[i], game_decoders[T - 1, i], raw, own[t])

        finish_step(found, t, now, presents)
        served[:] = own[t]
        if departures.detached:
            now[:] = local
