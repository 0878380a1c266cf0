"""Agents elsewhere that mask their terms, and twins in this process that play with whom they played."""

from functools import cache

import nkeys
import numpy as np

import nashcast as nc
from nashcast.agents.lookback.paper_agent import PaperAgent
from nashcast.agents.protocol import Answer
from nashcast.federation.lookback.transport import Post
from nashcast.remote.hub.lookback.remote_agents import RemoteAgents
from nashcast.remote.masking.owner import MaskSettings
from nashcast.remote.owner.owner import Owner
from nashcast.remote.wire.format import pack, unpack
from nashcast.remote.wire.messages import FinishGame, Reply, Turn
from nashcast.remote.wire.transport import Failure
from support.remote.elsewhere import LocalTransport, Twin, seen

FEDERATION = "power"


@cache
def identity(seed):
    """An nkey's seed and public form."""
    secret = nkeys.encode_seed(np.random.default_rng([seed, 7]).bytes(32), nkeys.PREFIX_BYTE_USER)
    return secret.decode(), nkeys.from_seed(secret).public_key.decode()


def name_of(i):
    return f"agent-{i:02}"


def waves(i, y_dim):
    return lambda x: np.sin(np.outer(1 + np.arange(y_dim), 1 + np.arange(2 + i % 3)) * x[i % 2] + i)


def make_team(count, random=True, y_dim=1, share="sums", forgetting=None):
    """Agents of several kinds. They hold what they learn, so every run needs its own."""
    made = []
    for i in range(count):
        if i % 4 == 3:
            encoder = nc.encoders.Linear(lags=1)
        elif not random:
            encoder = nc.encoders.Callable(waves(i, y_dim), features=2 + i % 3)
        elif i % 4 == 2:
            encoder = nc.encoders.EchoState(features=2, seed=i, noise=0.2, samples=10)
        else:
            encoder = nc.encoders.RandomFeatures(features=2 + i % 3, seed=i, noise=0.3)
        own = {"ridge": 0.8 + i / 7, "decay": i / 10, "window": 3 + i % 3}
        made.append(PaperAgent(encoder, name=name_of(i), share=share, forgetting=forgetting if i % 2 else None, **own))
    return made


def settings_for(name, count, **more):
    """What the owner of an agent in a team of so many has."""
    enrolled = {name_of(i): identity(i)[1] for i in range(count)}
    return MaskSettings(FEDERATION, identity(int(name[-2:]))[0], enrolled, **more)


def make_owner(agent, count, inputs=None, **options):
    inputs = None if inputs is None else seen(inputs)
    return Owner(agent, inputs=inputs, masks=settings_for(agent.name, count), **options)


class Watched(LocalTransport):
    """Notes every byte, and by step who ended a game and who was away.

    lose(name, turn): "before" or "after" to lose the turn or its reply.   change(name, turn): what the agent is told
    instead.   before(transport): done before each exchange.
    """

    def __init__(self, owners, lose=None, change=None, before=None):
        super().__init__(owners)
        self.lose, self.change, self.before = lose, change, before
        self.bytes, self.away = [], {name: set() for name in owners}
        self.ended = {}

    def exchange(self, turns, deadline):
        if self.before is not None:
            self.before(self)
        self.bytes += turns.values()
        replies = super().exchange(turns, deadline)
        self.bytes += [reply for reply in replies.values() if isinstance(reply, bytes)]
        asked = self.turns[-1]
        step = next(iter(asked.values())).step
        if any(isinstance(turn.calls[-1], FinishGame) for turn in asked.values()):
            read = {name: unpack(reply, (Reply,)) for name, reply in replies.items() if isinstance(reply, bytes)}
            ended = {name for name, reply in read.items() if reply.results and isinstance(reply.results[-1], Answer)}
            self.ended[step] = ended if ended == set(asked) else set()
        return replies

    def carry(self, name, turn):
        asked = unpack(turn, (Turn,))
        when = None if self.lose is None else self.lose(name, asked)
        if when is not None:
            self.away[name].add(asked.step)
        if when == "before":
            return Failure("not connected")
        reply = super().carry(name, turn if self.change is None else pack(self.change(name, asked)))
        return reply if when is None else Failure("no answer within 1 s")


def make_masked(agents, inputs, settings, team=None, **options):
    """A masked federation over bytes, and its transport. team: how many are enrolled, if more."""
    owners = {agent.name: make_owner(agent, team or len(agents), inputs) for agent in agents}
    transport = Watched(owners, **options)
    return RemoteAgents(list(owners), transport, masked=True, **settings), transport


class Rostered(Post):
    """The game of each step has given players, by their names."""

    def __init__(self, opening, roster):
        super().__init__(opening)
        self._roster, self._playing = roster, set()

    def prepare(self, step, x):
        self._playing = self._roster.get(step, set())

    def players(self):
        return frozenset(i for i, name in enumerate(self._names) if name in self._playing)


def twin_of(agents, transport, X, settings):
    """The same absences, the same players in each step, and no masks."""
    twins = [Twin(agent, transport.away[agent.name], X) for agent in agents]
    return nc.paper_federation(twins, make_post=lambda opening: Rostered(opening, transport.ended), **settings)


def assert_close(found, expected):
    """Relative to the largest number: forecasts near zero are differences of larger ones."""
    for one, other in zip(found[:3], expected[:3], strict=True):
        assert np.abs(one - other).max() <= 1e-12 * np.abs(other).max()
