"""One step of a federation: agents forecast, the server mixes; a label comes, and everything learns from it.

    x_t     → agents: own forecasts, contributions and leverages → joint forecasts → mixture → forecast, all horizons
    y_{t+1} → mixture: scores of the experts → agents: own decoders, and the joint ones from the residual of the sums

A label y reaches the forecasts of horizon h that were made h steps before it, so in-time labels, horizons and late
labels are one case: `_learn_labels`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from nashcast.agents.agent import Agent
from nashcast.agents.arrangement import BASELINES, JOINT
from nashcast.agents.history import History
from nashcast.agents.local_agents import PUBLIC_FEATURES, LocalAgents, public_features
from nashcast.federation.deferred_trust import DeferredTrust
from nashcast.federation.forecast import Forecast, Scored
from nashcast.federation.joint_server import JointServer
from nashcast.federation.members import Members
from nashcast.federation.pending import Pending, Said
from nashcast.federation.post import Message
from nashcast.federation.screen import Doubt, Screen, Verdict
from nashcast.federation.window_server import WindowServer
from nashcast.fields import restore_parts, saved_parts
from nashcast.games.joint import JointGame
from nashcast.mixing.adaptive import AdaptiveMixture, Mixed

# Forgetting of the running means of the targets, experts beside persistence.
LEVELS = np.array([0.5, 0.9, 1.0])
# Rows after a suspect label that teach nothing: inputs may repeat it as lags.
_COOLING = 4
_NO_OBJECTS: Mapping[str, Any] = MappingProxyType({})


class Settings(NamedTuple):
    """game: the joint game, or None.   season: its length, if known.   rule: makes the mixture."""

    game: JointGame | None
    horizon: int
    season: int | None
    seed: int
    rule: Callable = AdaptiveMixture


class Loop:
    """agents: as described.   x_dim: numbers in an input.   start: the first known target.   names: of the inputs."""

    transcript: Sequence[Message] = ()  # its agents are in this process, and exchange no messages

    def __init__(
        self, agents: Sequence[Agent], x_dim: int, start: np.ndarray, settings: Settings, names=None, first_step=0
    ):
        p, H = len(start), settings.horizon
        self.settings = settings
        self.history = History(x_dim, start, settings.season, first_step)
        self._agents = LocalAgents(agents, self.history, settings.game, H, names, settings.seed)
        self.gives_quantiles = self._agents.gives_quantiles
        game, N = settings.game, len(agents)
        self._server: JointServer | WindowServer | None = None
        if game is not None:
            serve = JointServer if game.window is None else WindowServer
            self._server = serve(game, N, PUBLIC_FEATURES, p, H)
        variants = 0 if game is None else len(game.variants)
        self.members = [BASELINES, *self._agents.names, *([JOINT] if variants else [])]
        owners = [np.zeros(1 + len(LEVELS)), 1 + self._agents.owner, np.full(variants, 1 + N)]
        self.owner = np.concatenate(owners).astype(np.int64)  # the member each expert belongs to
        self._members = Members(self.members, self.owner)
        self._mixture = settings.rule(p * H, self._members.prior, np.tile(np.arange(1, H + 1), p))
        self._means, self._mean_counts = np.repeat(start[None], len(LEVELS), axis=0), np.ones(len(LEVELS))
        self._back = np.arange(H)  # how many steps before the last one forecasts of each horizon were made
        self._largest = np.zeros((p, H))  # the furthest each target ever moved within 1 … H steps
        self._no_shares = np.zeros((variants, N, p))
        self._pending = Pending(p, H, len(self.owner), (variants, N))
        self._screen = Screen(p)
        self._cooling = 0
        self.trust = DeferredTrust(self._members, p, (variants, N))
        self.weights = np.zeros(len(self.members))
        self._stale, self._season = True, self.history.season.length
        self._now: tuple[Said, Mixed] | None = None

    @property
    def step(self) -> int:
        return self.history.step

    @property
    def season(self) -> int | None:
        return self.history.season.length or None

    @property
    def suspect_labels(self) -> int:
        return self._screen.count

    def count_suspects(self, labels: int) -> None:
        """Labels that were found to be suspect elsewhere."""
        self._screen.count += labels

    @property
    def included(self) -> np.ndarray:
        """Which members are in the sums of the joint game at present; baselines and the game itself count as in."""
        inside = np.ones(len(self.members), dtype=bool)
        if self._server is not None:
            inside[1:-1] = self._server.included
        return inside

    def forecast(self, x: np.ndarray, time: float = np.nan, objects: Mapping[str, Any] = _NO_OBJECTS) -> Forecast:
        """From the present input and all labels so far. The same input again gives the same forecast."""
        self._refresh()
        history = self.history
        history.put_input(x, time, objects)
        now, H = history.targets[history.now], self.settings.horizon
        said = self._agents.forecast(x)
        experts, leverage, shares = self._experts(now, said)
        p, K = len(now), len(self.owner)
        shared = np.ones((p * H, K), dtype=bool)
        if said.absent:
            shared[:, 1 + len(LEVELS) : 1 + len(LEVELS) + len(said.awake)] = said.awake
        mixed = self._mixture.mix(experts.reshape(p * H, K), leverage, shared)
        weights = mixed.weights.reshape(p, H, K)[:, 0]
        forecast = mixed.forecast.reshape(p, H).T
        row = Said(experts, leverage, shared[0], forecast, weights, shares)
        self._now = row, mixed
        self.weights = np.add.reduce(weights @ self._members.experts, axis=0) / p
        absent, own = {1 + i: why for i, why in said.absent.items()}, partial(self._members.own, row.mixture)
        distance = self._agents.expected_distance()
        return Forecast(forecast, self.weights, own, absent, distance, played=self._server is not None)

    def own_forecasts(self) -> np.ndarray:
        """Each member's own forecasts, by the weights of its experts, (members, horizon, y_dim); after `forecast`."""
        assert self._now is not None
        said, mixed = self._now
        return self._members.own_forecasts(mixed.weights.reshape(said.experts.shape), said.experts, said.awake)

    def learn(self, target: np.ndarray | None) -> list[Scored]:
        """The label of the present row, or None if it is not known (yet). Call `forecast` first."""
        assert self._now is not None
        scored, spike = self._settle_doubt(target)
        history, step = self.history, self.history.step
        now = history.targets[history.now].copy()
        verdict = None if target is None else self._screen.judge(target, now)
        accepted, suspect = verdict is Verdict.ACCEPTED, verdict is Verdict.SUSPECT
        taught = not suspect and not spike and self._cooling == 0
        said, mixed = self._now
        self._pending.add(step, now, said)
        label = None
        if target is not None and accepted and taught:
            label = self._screen.clipped((target - now)[:, None])[:, 0] * history.scales.inverse_change
        self._agents.add_row(label, taught)
        if self._server is not None:
            self._server.add_row(step, taught, self._agents.public_gain)
        if verdict is Verdict.DOUBTFUL:
            assert target is not None
            self._screen.doubt = Doubt(step, target.copy(), now)
        history.append(now if suspect else said.forecasts[0] if target is None else target, accepted)
        self._cooling = _COOLING if suspect or spike else max(0, self._cooling - 1)
        self._now, self._stale = None, True
        # After a spike the present row was forecast from it: its experts are not judged by that.
        if accepted and not spike:
            assert target is not None
            mixed = mixed if self.settings.horizon == 1 else None
            scored.append(self._learn_labels(step, target, mixed, taught))
        return scored

    def learn_late(self, step: int, target: np.ndarray) -> list[Scored] | None:
        """The label of an earlier step. None if it is too long ago, known already, or suspect."""
        row = self.history.row_of(step)
        if row is None or row + 1 > self.history.now or self.history.labelled[row + 1]:
            return None
        if not self._screen.accept_late(target, self.history.targets[row]):
            return None
        self.history.set_target(row + 1, target)
        self._now, self._stale = None, True
        return [self._learn_labels(step, target, None, True)]

    def _settle_doubt(self, target: np.ndarray | None) -> tuple[list[Scored], bool]:
        """The label after a doubtful one, which it confirms, so that it is learnt now, or shows to be a spike."""
        doubt = self._screen.doubt
        if doubt is None or target is None:
            return [], False
        self._screen.doubt = None
        row = self.history.row_of(doubt.step)
        if row is None or self.history.labelled[row + 1]:
            return [], False
        if self._screen.is_spike(doubt, target):
            self.history.targets[row + 1] = doubt.before
            return [], True
        self.history.set_target(row + 1, doubt.value)
        return [self._learn_labels(doubt.step, doubt.value, None, True)], False

    def _learn_labels(self, step: int, target: np.ndarray, mixed: Mixed | None, taught: bool) -> Scored:
        """The label of the target after `step` came: all forecasts of it are scored, and learnt from."""
        history, H = self.history, self.settings.horizon
        steps = step - self._back
        known = self._pending.holds(steps)
        everything = np.count_nonzero(known) == H
        if not everything:
            steps = np.where(known, steps, step)
        past = self._pending.take(steps)
        changes = self._screen.clipped(target[:, None] - past.anchors)
        moved = np.abs(changes) if everything else np.abs(changes) * known
        np.maximum(self._largest, moved, out=self._largest)
        p, K = len(target), len(self.owner)
        targets = target if H == 1 else target.repeat(H)
        labelled, awake = (known, past.awake) if p == 1 else (np.tile(known, p), np.tile(past.awake, (p, 1)))
        experts, leverage = past.experts.reshape(p * H, K), past.leverage.reshape(p * H, K)
        self._mixture.learn(mixed, experts, leverage, awake, targets, labelled)
        if known[0]:
            self.trust.learn(target, past.forecasts[0], past.mixture)
        if taught:
            usual = history.scales.change
            self._agents.learn(steps, changes * history.scales.inverse_change[:, None], known)
            self._agents.teach(step, target)
            if self._server is not None:
                recalled = self._agents.recall(steps) * usual[:, None]
                residuals = self._server.residuals(steps, changes, known, recalled, usual)
                self._agents.learn_jointly(steps, residuals)
        self._mean_counts = LEVELS * self._mean_counts + 1.0
        self._means += (target - self._means) / self._mean_counts[:, None]
        row = history.row_of(step)
        if row is not None:
            history.learn_season(row + 1)
        return Scored(target, past.forecasts, partial(self._members.own, past.mixture), known, step)

    def _refresh(self) -> None:
        """Before a forecast: scales and season as they are now, and memories learnt again if those changed."""
        if not self._stale:
            return
        self._stale = False
        history = self.history
        first, last = history.first, history.now
        season, self._season = self._season, history.season.length
        before = history.standard
        if not history.revise_scales() and season == self._season:
            return
        if last > first:
            old = history.rows_between(first, last, before, season)
            stopped = self._agents.relearn(old, self.included[1 : 1 + len(self._agents.names)])
            if self._server is not None:
                now = history.rows_between(first, last)
                public = public_features(now), public_features(old)
                self._server.relearn(public, history.step, now.unit_before(old), stopped)

    def _experts(self, now: np.ndarray, said) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Experts' forecasts, no further than the target ever moved; leverages; agents' shares of the joint ones."""
        p, H, K = len(now), self.settings.horizon, len(self.owner)
        experts, leverage, shares = np.empty((p, H, K)), np.zeros((p, K)), self._no_shares
        first, last = 1 + len(LEVELS), 1 + len(LEVELS) + said.experts.shape[2]
        anchor = now[:, None, None]
        experts[:, :, :1] = anchor
        experts[:, :, 1:first] = self._means.T[:, None, :]
        experts[:, :, first:last] = said.experts
        leverage[:, first:last] = said.leverage
        if self._server is not None:
            joint = self._server.forecast(said.contributions, self._agents.public_now, self.history.scales.change)
            np.add(anchor, joint.changes.transpose(1, 2, 0), out=experts[:, :, last:])
            leverage[:, last:] = joint.leverage.T
            shares = joint.shares[..., 0]
        if np.count_nonzero(np.isfinite(experts)) < experts.size:  # what is not a number counts as persistence
            experts = np.where(np.isfinite(experts), experts, anchor)
        if np.count_nonzero(np.isfinite(leverage)) < leverage.size:
            leverage = np.where(np.isfinite(leverage), leverage, 0.0)
        largest = self._largest[:, :, None]
        np.maximum(experts, anchor - largest, out=experts)
        return np.minimum(experts, anchor + largest, out=experts), leverage, shares

    def save(self) -> dict[str, np.ndarray]:
        own = {
            "means": self._means, "mean_counts": self._mean_counts, "largest": self._largest,
            "flags": np.array([self._cooling, self._stale, self._season]),
        }  # fmt: skip
        return own | saved_parts(self._parts())

    def restore(self, fields) -> None:
        """Continue as saved, bit for bit. Raises InvalidInput; then this object is of no use."""
        self._means = fields.take("means", self._means.shape)
        self._mean_counts = fields.take("mean_counts", self._mean_counts.shape, min=0.0)
        self._largest = fields.take("largest", self._largest.shape, min=0.0)
        cooling, stale, season = fields.take("flags", (3,), dtype=np.int64, min=0).tolist()
        self._cooling, self._stale, self._season = cooling, bool(stale), season
        restore_parts(self._parts(), fields)
        self._now = None

    def _parts(self):
        yield "history.", self.history
        yield "agents.", self._agents
        yield "mixture.", self._mixture
        yield "pending.", self._pending
        yield "screen.", self._screen
        yield "trust.", self.trust
        if self._server is not None:
            yield "server.", self._server
