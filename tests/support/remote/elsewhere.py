"""Agents elsewhere, without a network: transports that call their owners, well or badly, and twins in this process."""

import numpy as np

import nashcast as nc
from nashcast.agents.lookback.paper_agent import PaperAgent
from nashcast.agents.protocol import Answer
from nashcast.federation.lookback.transport import NoGame, Post
from nashcast.remote.hub.lookback.remote_agents import RemoteAgents
from nashcast.remote.hub.lookback.sent_once import ToldOnce
from nashcast.remote.owner.owner import Owner
from nashcast.remote.wire.format import pack, unpack
from nashcast.remote.wire.messages import Reply, Turn
from nashcast.remote.wire.transport import Failure

MIXED = ("features", "moments", "sums", "forecasts", "moments", "features")


def swings(y_dim):
    """A black box that forecasts the target itself."""
    return lambda x: np.tanh(x[0]) + 0.1 * np.arange(y_dim)


def make_agents(y_dim, shares=("features",) * 6, forgetting=None):
    """One of each family. They hold what they learn, so every run needs its own."""
    encoders = [
        nc.encoders.RandomFeatures(features=3, seed=1, noise=0.3),
        nc.encoders.EchoState(features=2, seed=2, noise=0.2, samples=20, leak=0.7),
        nc.encoders.Linear(lags=1),
        nc.encoders.Forecaster(swings(y_dim)),
        nc.encoders.EchoState(features=3, seed=5, noise=0.0, samples=10),
        nc.encoders.Persistence(),
    ]
    settings = [{"ridge": 0.8 + i / 7, "decay": i / 10, "window": 3 + i % 3} for i in range(len(encoders))]
    return [
        PaperAgent(encoder, name=f"agent-{i}", share=share, forgetting=forgetting if i % 2 else None, **own)
        for i, (encoder, share, own) in enumerate(zip(encoders, shares, settings, strict=True))
    ]


def make_stream(y_dim, steps=60, x_dim=3, seed=0):
    rng = np.random.default_rng(seed)
    return 0.5 * rng.standard_normal((steps, x_dim)), np.cumsum(0.3 * rng.standard_normal((steps, y_dim)), axis=0)


def seen(inputs):
    """What an owner calls for the inputs of missed steps."""
    return lambda first, last: list(inputs[first : last + 1])


class LocalTransport:
    """Calls the owners one after the other, and writes down what went through."""

    def __init__(self, owners):
        self.owners = owners
        self.sent = {name: [] for name in owners}
        self.turns = []

    def exchange(self, turns, deadline):
        self.turns.append({name: unpack(turn, (Turn,)) for name, turn in turns.items()})
        return {name: self.carry(name, turn) for name, turn in turns.items()}

    def carry(self, name, turn):
        reply = self.owners[name].answer(turn)
        self.sent[name].append(reply)
        return reply


class Unreliable(LocalTransport):
    """Something goes wrong with a turn now and then; `away` says in which steps, by agent."""

    WAYS = (
        "dead",
        "lost",
        "garbage",
        "cut",
        "longer",
        "not a number",
        "stale",
        "ahead",
        "shape",
        "more",
        "less",
        "old",
    )

    def __init__(self, owners, seed, often, before=lambda transport, turns: None):
        super().__init__(owners)
        self._rng, self._often, self._before = np.random.default_rng(seed), often, before
        self.away = {name: set() for name in owners}
        self.ways = set()
        self._old = {}

    def exchange(self, turns, deadline):
        self._before(self, turns)
        return super().exchange(turns, deadline)

    def carry(self, name, turn):
        step = unpack(turn, (Turn,)).step
        if self._rng.random() > self._often:
            reply = super().carry(name, turn)
            self._old[name] = step, reply
            return reply
        self.away[name].add(step)
        way = str(self._rng.choice(self.WAYS))
        self.ways.add(way)
        if way == "dead":
            return Failure("not connected")
        return self.spoilt(way, super().carry(name, turn), step, self._old.get(name))

    def spoilt(self, way, data, step, old):
        if way == "lost":
            return Failure("no answer within 1 s")
        if way == "garbage":
            return self._rng.bytes(int(self._rng.integers(0, 300)))
        if way in ("cut", "longer"):
            return data[:-1] if way == "cut" else data + b"\x00"
        if way == "old" and old is not None and old[0] < step:
            return old[1]
        reply = unpack(data, (Reply,))
        numbers = [i for i, result in enumerate(reply.results) if any(part.size for part in _arrays(result))]
        if way in ("stale", "ahead") or not reply.results or (way in ("not a number", "shape") and not numbers):
            return pack(reply._replace(step=max(0, step - 1) if way == "stale" and step else step + 1))
        if way == "more":
            return pack(reply._replace(results=(*reply.results, reply.results[-1])))
        if way in ("not a number", "shape"):
            change = (lambda a: np.full_like(a, np.nan)) if way == "not a number" else lambda a: a[:-1]
            results = list(reply.results)
            results[numbers[-1]] = _changed(results[numbers[-1]], change)
            return pack(reply._replace(results=tuple(results)))
        return pack(reply._replace(results=reply.results[:-1]))


def _arrays(result):
    return [part for part in (result if isinstance(result, tuple) else [result]) if isinstance(part, np.ndarray)]


def _changed(result, change):
    if isinstance(result, np.ndarray):
        return change(result)
    return type(result)(*[change(part) if isinstance(part, np.ndarray) else part for part in result])


class Twin:
    """An agent in this process that sits out given steps, and whose encoder sees their inputs all the same."""

    def __init__(self, agent, away, inputs):
        self._agent, self._away, self._inputs = agent, away, inputs

    def forecast(self, x):
        return Answer(None, "away") if self._agent.step in self._away else self._agent.forecast(x)

    def learn(self, target):
        if self._agent.step in self._away:
            self._agent.sit_out()
            self._agent.see(self._inputs[self._agent.step])
        self._agent.learn(target)

    def __getattr__(self, name):
        return getattr(self._agent, name)


class Abandoned(ToldOnce):
    """Notes the steps whose game is not played to its end. steps: of all hubs together."""

    steps: set[int]

    def check_game(self, now, players):
        self._noted(now, super().check_game, players)

    def check_syncs(self, now, asked):
        self._noted(now, super().check_syncs, asked)

    def _noted(self, now, check, what):
        try:
            check(now, what)
        except NoGame:
            self.steps.add(now.number)
            raise


class Gameless(Post):
    """Some steps have no game."""

    def __init__(self, opening, steps):
        super().__init__(opening)
        self._steps, self._without = steps, False

    def prepare(self, step, x):
        self._without = step in self._steps

    def players(self):
        return frozenset() if self._without else super().players()

    def why_nobody(self):
        return "an agent was lost" if self._without else ""


def make_remote(agents, inputs, settings, transport=LocalTransport, **options):
    """A federation over bytes, its transport and its owners."""
    owners = {agent.name: Owner(agent, inputs=seen(inputs)) for agent in agents}
    carrier = transport(owners, **options)
    return RemoteAgents(list(owners), carrier, **settings), carrier


def assert_same(one, other):
    for a, b in zip(one[:3], other[:3], strict=True):
        np.testing.assert_array_equal(a, b)
