"""Agents of a joint game behind bytes, without a network, and the same federation in one process."""

from collections import defaultdict

import numpy as np

import nashcast as nc
from nashcast.agents.local_agents import LocalAgents
from nashcast.federation.loop import Loop
from nashcast.federation.loop_factory import JointLoopFactory
from nashcast.remote.hub.joint.joint_federation import JointHub
from nashcast.remote.hub.row_journal import RowJournal
from nashcast.remote.owner.joint_owner import JointOwner
from nashcast.remote.wire.format import unpack
from nashcast.remote.wire.joint.joint_messages import LogPart, Told
from nashcast.remote.wire.transport import Failure


def make_team(count=4, share="forecasts"):
    """Owners that each see one of the inputs; the last one has two encoders."""
    made = [
        nc.Agent(nc.encoders.Linear(lags=1), inputs=[i % 4], name=f"agent-{i:02}", share=share)
        for i in range(count - 1)
    ]
    both = [nc.encoders.Trend(), nc.encoders.RandomFeatures(features=5, seed=3)]
    return [*made, nc.Agent(both, name=f"agent-{count - 1:02}", share=share)]


def make_stream(steps, y_dim=1, seed=0, missing=0.0):
    """Four inputs that each move the target, and labels that are missing now and then."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((steps, 4))
    moves = (X @ np.array([1.0, -1.0, 1.0, -1.0]))[:, None] + 0.3 * rng.standard_normal((steps, y_dim))
    Y = np.cumsum(moves, axis=0)
    Y[rng.random(steps) < missing] = np.nan
    return X, Y


class LocalLine:
    """Calls the owners one after the other. Whatever an agent in `lose` says in a step is lost, or it hears nothing.

    lose: (name, number of the question) -> "before", "after" or None.
    """

    def __init__(self, owners, lose=lambda name, question: None):
        self.owners, self.lose = owners, lose
        self.kept, self.asked, self.answers = [], [], []
        self.lost = defaultdict(set)
        self.traffic = {"down": 0, "up": 0}
        self.journal = RowJournal(None)

    def ask(self, data, names, read):
        question, found = len(self.asked), {}
        self.asked.append(unpack(data, (Told,)))
        for name in names:
            way = self.lose(name, question)
            if way is not None:
                self.lost[name].add(question)
            answer = None if way == "before" else self.owners[name].hear(data)
            found[name] = Failure("no answer") if way is not None or answer is None else read(name, answer)
            self.answers.append((name, answer))
        return {name: answer or Failure("no answer") for name, answer in found.items()}

    def tell(self, data, now=False):
        for name, owner in self.owners.items():
            if self.lose(name, len(self.asked) - 1) != "before":
                assert owner.hear(data) is None

    def keep(self, step, data):
        self.kept.append(data)

    def missed(self, run, number):
        parts = [unpack(data, (LogPart,)) for data in self.kept]
        for part in parts:
            if part.run == run and part.number + len(part.events) > number:
                yield part.number, part.events


def make_owner(agent, line, masks=None, **options):
    own = None if masks is None else masks(agent.name)
    return JointOwner(agent, missed=line.missed, masks=own, **options)


def make_joint(agents, lose=lambda name, question: None, masks=None, **settings):
    """A federation over bytes, and its line."""
    line = LocalLine({}, lose)
    for agent in agents:
        line.owners[agent.name] = make_owner(agent, line, masks)
    hub = JointHub(list(line.owners), line, **settings)
    for owner in line.owners.values():
        hub.greet(owner.hello())
    return hub, line


def run(federation, X, Y, late=None):
    """Forecasts of all horizons. late: after which step, labels of which earlier ones come: {t: {s: y}}."""
    found = []
    for t, (x, y) in enumerate(zip(X, Y, strict=True)):
        found.append(np.ravel(federation.predict_one(x)))
        missing = np.isnan(y).any()
        federation.learn_one(x, None if missing else y if len(y) > 1 else y[0])
        for s, label in (late or {}).get(t, {}).items():
            federation.learn_late(s, label if len(label) > 1 else label[0])
    return np.array(found)


class AbsentAgents(LocalAgents):
    """In one process, agents whose answers are lost in some steps: they learn, and play nothing there.

    away: the steps of each agent.
    """

    away = ()

    def forecast(self, x, included=None):
        said = super().forecast(x, included)
        self._now_away = self._find_away()
        for i in self._now_away:
            said.contributions.said[:, i], said.contributions.leverage[:, i] = 0.0, 0.0
            said.awake[self.owner == i] = False
            said.absent[i] = "no answer"
            for blocks, group in zip(self._blocks, self._arrangement.block_groups, strict=True):
                if i in group.members:
                    z, unexplained, gains = (part.copy() for part in blocks._pending)
                    z[group.members.index(i)], gains[:, group.members.index(i)] = 0.0, 0.0
                    blocks._pending = type(blocks._pending)(z, unexplained, gains)
        return said

    def relearn(self, before, included):
        here = np.array(included)
        here[self._find_away()] = False  # what it stops saying is not in the sums
        super().relearn(before, here)

    def _find_away(self):
        return [i for i, steps in enumerate(self.away) if self._history.step in steps]

    def recall(self, steps, included=None):
        recalled = super().recall(steps, included).copy()
        recalled[:, self._now_away] = 0.0  # its decoders are not asked
        return recalled


def make_twin(agents, away, **settings):
    """A federation in one process with the same absences."""
    kind = type("Absent", (AbsentAgents,), {"away": away})

    class Factory(JointLoopFactory):
        def begin(self, columns, start, first_step):
            s = self._settings
            return Loop(lambda h: kind(agents, h, s.game, s.horizon, None, s.seed), columns.x_dim, start, s, first_step)

    own = {
        "game": nc.JointGame(),
        "mixing": "adaptive",
        "season": None,
        "seed": 0,
        "horizon": settings.pop("horizon", 1),
    }
    return nc.Federation.over(Factory(agents, **own), **settings)
