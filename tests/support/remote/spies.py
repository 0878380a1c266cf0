"""Agents whose owners have secrets worth looking for, and twins in this process that write all of them down."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import nashcast as nc
from nashcast.agents.lookback.paper_agent import PaperAgent

NAMES = ("ada", "bob", "cyd", "dan")
RIDGES = (0.8271828459, 1.1415926535, 0.9777777123, 1.3141592653)
DECAYS = (0.1234567891, 0.0271828182, 0.3456789123, 0.2718281828)
SEEDS = (0x5EED_1234_5678_9AB1, 0x5EED_A987_6543_21B2)
NOISE, LEAK = (0.3171717171, 0.2292929292), 0.7373737373


def certain(x):
    """A model of one's own, three features."""
    return np.sin([x[0] + 0.3, 2 * x[1] + 0.7, x[0] * x[2] - 0.2])[None]


def forecaster(x):
    return np.tanh(1.3 * x[:1] - 0.4)


class Confessing(PaperAgent):
    """Writes its terms of sums to a file, as they are before anything happens to them on their way out."""

    confession: Path | None = None

    def backward(self, back):
        terms = super().backward(back)
        self._confess(*terms)
        return terms

    def _confess(self, *arrays):
        if self.confession is not None:
            with self.confession.open("ab") as file:
                file.write(b"".join(array.tobytes() for array in arrays))


def make_agents(shares, folder=None):
    """Random features, an echo state, somebody's function, a black box that forecasts.

    folder: where they write their terms of sums, as NAME.terms.
    """
    encoders = [
        nc.encoders.RandomFeatures(features=3, seed=SEEDS[0], noise=NOISE[0]),
        nc.encoders.EchoState(features=2, seed=SEEDS[1], noise=NOISE[1], samples=20, leak=LEAK),
        nc.encoders.Callable(certain, features=3),
        nc.encoders.Forecaster(forecaster),
    ]
    own = zip(encoders, NAMES, RIDGES, DECAYS, shares, strict=True)
    agents = [Confessing(e, name=n, ridge=r, decay=d, window=4, share=s) for e, n, r, d, s in own]
    for agent in agents:
        agent.confession = None if folder is None else Path(folder) / f"{agent.name}.terms"
    return agents


def make_team(count, folder):
    """Agents of one kind, each with its own numbers, that write their terms of sums to NAME.terms."""
    encoders = [nc.encoders.RandomFeatures(features=3, seed=SEEDS[0] + i, noise=NOISE[0]) for i in range(count)]
    team = [
        Confessing(encoder, name=f"agent-{i}", ridge=RIDGES[0] + 0.1 * i, window=4, share="sums")
        for i, encoder in enumerate(encoders)
    ]
    for agent in team:
        agent.confession = Path(folder) / f"{agent.name}.terms"
    return team


def settings_of(name):
    """Numbers of an agent that its owner chose; those of a few bits, such as its window, cannot be told from others."""
    place = NAMES.index(name)
    found = {"ridge": RIDGES[place], "decay": DECAYS[place]}
    if place < 2:
        found |= {"seed": SEEDS[place], "noise": NOISE[place]}
    return found | ({"leak": LEAK} if place == 1 else {})


class Spy:
    """An agent in this process, everything it computes written down by what it is."""

    def __init__(self, agent):
        self._agent = agent
        self.secrets = {
            kind: [] for kind in ("forecasts", "features", "means", "covariances", "decoders", "encoder", "terms")
        }

    def _note(self, kind, *arrays):
        self.secrets[kind] += [np.array(array, dtype=float) for array in arrays if array is not None]

    def begin(self, *arguments):
        hello = self._agent.begin(*arguments)
        built = vars(self._agent._built)
        self._note("encoder", *[built[name] for name in ("_A", "_B", "_b") if name in built])
        return hello

    def forecast(self, x):
        answer, agent = self._agent.forecast(x), self._agent
        self._note("forecasts", answer.forecast)
        self._note("features", agent._pending.raw, agent._pending.features)
        self._note("decoders", agent._decoder)
        return answer

    def varies(self):
        varies = self._agent.varies()
        self._moments(*self._agent._window_moments)
        return varies

    def view(self):
        view = self._agent.view()
        self._moments(view.means, view.covariance)
        return view

    def _moments(self, means, covariances):
        self._note("means", means)
        self._note("covariances", covariances)

    def backward(self, back):
        terms = self._agent.backward(back)
        self._note("terms", *terms)
        return terms

    def finish_game(self, totals):
        part = self._agent._part
        answer = self._agent.finish_game(totals)
        self._note("decoders", *part.decoders)
        self._note("forecasts", answer.forecast)
        return answer

    def adopt(self, sync):
        answer = self._agent.adopt(sync)
        self._note("forecasts", answer.forecast)
        return answer

    def learn(self, target):
        self._note("features", self._agent._pending.features)  # in the end: relative to where the game has put it
        self._agent.learn(target)

    def __getattr__(self, name):
        return getattr(self._agent, name)
