"""One run of the paper: a setting, a seed, and one of three ways to compute it."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from nashcast.agents.lookback.paper_agent import PaperAgent
from nashcast.datasets import Stream, open_stream
from nashcast.encoders.base import Noise
from nashcast.federation.compiled.replay import replay_any
from nashcast.federation.paper import LookbackGame, Replay, paper_federation
from nashcast.games.lookback.fast import need_numba
from nashcast.paper.pretrained import encoders_for, stream_for
from nashcast.paper.published.departures import Departures, Sampler
from nashcast.paper.published.draws import SAMPLES, Encoded, draw, echo_states, random_features
from nashcast.paper.settings import Setting

KAPPA, ETA = 1.0, 1.0  # in all of the paper's settings


class Way(NamedTuple):
    """How a run is computed.

    ours: the exact game, or none.   anchored: no game, but each step starts from the last observation.
    published: as the published code does, with the deviations that are switched on.
    """

    name: str
    departures: Departures = Departures()


OURS, ANCHORED, PUBLISHED = Way("ours"), Way("anchored"), Way("published")


def stream_of(setting: Setting) -> Stream:
    """The series as the paper's code passes it to this family; random features get the second target only."""
    name = "concept-y2" if (setting.model, setting.dataset) == ("rfn", "concept") else setting.dataset
    return _opened(name, setting.rounds, setting.causal)


@lru_cache(maxsize=32)
def _opened(name: str, rounds: int | None, causal: bool) -> Stream:
    stream = stream_for(name, causal=True) if causal else open_stream(name)
    return stream._replace(inputs=stream.inputs[:rounds], targets=stream.targets[:rounds])


def run(setting: Setting, seed: int, way: Way = OURS) -> Replay:
    """The whole run. For every way, encoders and their noise are the published ones of this seed."""
    return federate(stream_of(setting), encoders_of(setting, seed), setting, seed, way)


def federate(stream: Stream, encoders: list[Encoded], setting: Setting, seed: int, way: Way = OURS) -> Replay:
    """A run on an encoded series."""
    # Runs may diverge, mainly without the game: that is a result, not an error.
    with np.errstate(all="ignore"):
        if way.name == "published":
            return _published(setting, seed, stream, encoders, way.departures)
        agents = [
            PaperAgent(each, ridge=setting.ridge, decay=setting.decay, window=setting.window) for each in encoders
        ]
        anchored = way.name == "anchored"
        game = LookbackGame(lookback=setting.lookback, every=setting.every) if setting.game and not anchored else None
        federation = paper_federation(
            agents, game=game, anchored=anchored, ridge=KAPPA, budget=ETA, y_dim=stream.targets.shape[1],
            start=stream.start, seed=seed,
        )  # fmt: skip
        return replay_any(federation, stream.inputs, stream.targets)


def encoders_of(setting: Setting, seed: int) -> list[Encoded]:
    """One encoder for each agent, as the published code draws or trains them."""
    # Settings that do not affect an encoder share its features, as most of a grid does.
    return _encoded(replace(setting, decay=0.0, ridge=1.0, window=1, lookback=0, every=1), seed)


@lru_cache(maxsize=32)
def _encoded(setting: Setting, seed: int) -> list[Encoded]:
    stream = stream_of(setting)
    x_dim, y_dim = stream.inputs.shape[1], stream.targets.shape[1]
    if setting.model == "transformer":
        encoders = encoders_for(setting.dataset, setting.agents, causal=setting.causal)
        built = [each.build(x_dim, y_dim) for each in encoders]
        return [Encoded(each.encode_series(stream.inputs, each.start(), 0, 0)[0]) for each in built]
    draws = draw(setting.model, seed, setting.agents, x_dim, y_dim, setting.features, len(stream.inputs))
    if setting.model == "rfn":
        return random_features(draws, stream.inputs, float(setting.noise))
    return echo_states(draws, stream.inputs, float(setting.noise), setting.activation)


def _published(setting: Setting, seed: int, stream: Stream, encoders: list[Encoded], departures: Departures) -> Replay:
    need_numba("as published")
    from nashcast.paper.published.published_run import PublishedSeries, PublishedSettings, replay_published

    Z = np.stack([each.series for each in encoders])
    N, R, p, d = Z.shape
    means, covariance = Z, np.zeros((N, R if setting.game else 1, p, p, d, d))
    sampler = Sampler(0, np.empty((1, 1, 1, 1)), np.empty((1, 1, 1)), 0.0)
    echoes = [echo for each in encoders if (echo := each.echo(stream.inputs)) is not None]
    moments = [m for each in encoders if (m := each.moments(stream.inputs, each.series, Noise(0, -1))) is not None]
    if setting.game and moments:
        means, covariance = np.stack([m.mean for m in moments]), np.stack([m.covariance for m in moments])
    if setting.game and echoes:
        drive, recurrent = np.stack([e.drive for e in echoes]), np.stack([e.recurrent for e in echoes])
        sampler = Sampler(SAMPLES, drive, recurrent, float(setting.noise))
    settings = PublishedSettings(
        float(setting.ridge), float(setting.decay), setting.window, setting.lookback, setting.every, KAPPA, ETA
    )
    return replay_published(stream, PublishedSeries(Z, means, covariance, sampler), settings, departures, seed)
