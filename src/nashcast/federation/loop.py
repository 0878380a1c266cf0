"""One step of a federation: agents forecast, the server mixes; a label comes, and agents and mixture learn from it.

    x_t     → agents: own forecasts, contributions and leverages → joint forecasts → mixture → forecast, all horizons
    y_{t+1} → mixture: scores of the experts → agents: own decoders, and the joint ones from the residual of the sums

A label y scores the forecasts of horizon h that were made h steps before it, so in-time labels, horizons and late
labels are one case: `_learn_labels`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from nashcast.agents.arrangement import BASELINES, JOINT
from nashcast.agents.history import History
from nashcast.agents.joint.public_features import PUBLIC_FEATURES
from nashcast.federation.forecast import Forecast, Scored
from nashcast.federation.incoming.pending import Pending, Said
from nashcast.federation.incoming.public_rows import Lesson, PublicRows
from nashcast.federation.joint.joint_server import JointServer
from nashcast.federation.joint.window_server import WindowServer
from nashcast.federation.lookback.transport import Message
from nashcast.federation.loop_agents import LoopAgents
from nashcast.federation.members import Members
from nashcast.federation.views.deferred_trust import DeferredTrust
from nashcast.fields import restore_parts, saved_parts
from nashcast.games.joint import JointGame
from nashcast.mixing.adaptive import AdaptiveMixture, Mixed

# Forgetting of the running means of the targets, experts beside persistence.
LEVELS = np.array([0.5, 0.9, 1.0])
_NO_OBJECTS: Mapping[str, Any] = MappingProxyType({})


class Settings(NamedTuple):
    """game: the joint game, or None.   season: its length, if known.   rule: makes the mixture."""

    game: JointGame | None
    horizon: int
    season: int | None
    seed: int
    rule: Callable = AdaptiveMixture


class Loop:
    """make_agents: makes them from the rows that they share.   x_dim: numbers in an input.

    start: the first known target.   first_step: rows before it.
    """

    transcript: Sequence[Message] = ()  # not recorded

    def __init__(
        self, make_agents: Callable[[History], LoopAgents], x_dim: int, start: np.ndarray, settings: Settings,
        first_step: int = 0,
    ):  # fmt: skip
        p, H = len(start), settings.horizon
        self.settings = settings
        self._rows = PublicRows(x_dim, start, settings.season, H, first_step)
        self.history = self._rows.history
        self._agents = make_agents(self.history)
        self.gives_quantiles = self._agents.gives_quantiles
        game, N = settings.game, len(self._agents.names)
        self._server: JointServer | WindowServer | None = None
        if game is not None and game.window is None:
            self._server = JointServer(game, N, PUBLIC_FEATURES, p, H, self._agents.groups)
        elif game is not None:
            self._server = WindowServer(game, N, PUBLIC_FEATURES, p, H)
        variants = 0 if game is None else len(game.variants)
        self.members = [BASELINES, *self._agents.names, *([JOINT] if variants else [])]
        owners = [np.zeros(1 + len(LEVELS)), 1 + self._agents.owner, np.full(variants, 1 + N)]
        self.owner = np.concatenate(owners).astype(np.int64)  # the member each expert belongs to
        self._members = Members(self.members, self.owner)
        self._mixture = settings.rule(p * H, self._members.prior, np.tile(np.arange(1, H + 1), p))
        self._means, self._mean_counts = np.repeat(start[None], len(LEVELS), axis=0), np.ones(len(LEVELS))
        self._largest = np.zeros((p, H))  # the largest change of each target within 1 … H steps
        self._no_shares = np.zeros((variants, N, p))
        self._pending = Pending(p, H, len(self.owner), (variants, N))
        self.trust = DeferredTrust(self._members, p, (variants, N))
        self.weights = np.zeros(len(self.members))
        self._now: tuple[Said, Mixed] | None = None

    @property
    def step(self) -> int:
        return self.history.step

    @property
    def season(self) -> int | None:
        return self.history.season.length or None

    @property
    def suspect_labels(self) -> int:
        return self._rows.screen.count

    def count_suspects(self, labels: int) -> None:
        """Add labels that were found to be suspect elsewhere."""
        self._rows.screen.count += labels

    @property
    def included(self) -> np.ndarray:
        """Which members are in the sums of the joint game at present; baselines and the game itself count as in."""
        inside = np.ones(len(self.members), dtype=bool)
        if self._server is not None:
            inside[1:-1] = self._server.included
        return inside

    @property
    def agents(self) -> LoopAgents:
        return self._agents

    @property
    def _inside(self) -> np.ndarray | None:
        return None if self._server is None else self._server.included

    def forecast(self, x: np.ndarray, time: float = np.nan, objects: Mapping[str, Any] = _NO_OBJECTS) -> Forecast:
        """Forecast from the present input and all labels so far. The same input again gives the same forecast."""
        self._refresh()
        history = self.history
        history.put_input(x, time, objects)
        now, H = history.targets[history.now], self.settings.horizon
        given = self._agents.forecast(x, self._inside)
        if given.stopped is not None:
            assert self._server is not None
            self._server.take_over(given.stopped)
        experts, leverage, shares = self._experts(now, given)
        p, K = len(now), len(self.owner)
        shared = np.ones((p * H, K), dtype=bool)
        if given.absent:
            shared[:, 1 + len(LEVELS) : 1 + len(LEVELS) + len(given.awake)] = given.awake
        mixed = self._mixture.mix(experts.reshape(p * H, K), leverage, shared)
        weights = mixed.weights.reshape(p, H, K)[:, 0]
        forecast = mixed.forecast.reshape(p, H).T
        row = Said(experts, leverage, shared[0], forecast, weights, shares)
        self._now = row, mixed
        self.weights = np.add.reduce(weights @ self._members.experts, axis=0) / p
        absent, own = {1 + i: why for i, why in given.absent.items()}, partial(self._members.own, row.mixture)
        distance = self._agents.expected_distance()
        return Forecast(forecast, self.weights, own, absent, distance, played=self._server is not None)

    def own_forecasts(self) -> np.ndarray:
        """Each member's own forecasts, by the weights of its experts, (members, horizon, y_dim); after `forecast`."""
        assert self._now is not None
        row, mixed = self._now
        return self._members.own_forecasts(mixed.weights.reshape(row.experts.shape), row.experts, row.awake)

    def learn(self, target: np.ndarray | None) -> list[Scored]:
        """Learn the label of the present row, or None if it is not known (yet). Call `forecast` first."""
        assert self._now is not None
        (row, mixed), self._now = self._now, None
        self._pending.add(self.step, row)
        scored = []
        self._agents.end_row(target, row.forecasts[0])
        for part in self._rows.learn(target, row.forecasts[0]):
            if isinstance(part, Lesson):
                scored.append(self._learn_labels(part, mixed if part.in_time and len(row.forecasts) == 1 else None))
                continue
            self._agents.add_row(part.label, part.taught)
            if self._server is not None:
                self._server.add_row(part.step, part.taught, self._agents.public_gain)
        return scored

    def learn_late(self, step: int, target: np.ndarray) -> list[Scored] | None:
        """Learn the label of an earlier step. None if it is too long ago, known already, or suspect."""
        lessons = self._rows.learn_late(step, target)
        if lessons is None:
            return None
        self._now = None
        self._agents.learn_late(step, target)
        return [self._learn_labels(lesson, None) for lesson in lessons]

    def _learn_labels(self, lesson: Lesson, mixed: Mixed | None) -> Scored:
        """The label of a target came: all forecasts of it are scored, and learnt from."""
        step, target, steps, known, changes, taught, _ = lesson
        p, H, K = len(target), self.settings.horizon, len(self.owner)
        past = self._pending.take(steps)
        np.maximum(self._largest, np.abs(changes) * known, out=self._largest)
        targets = target if H == 1 else target.repeat(H)
        labelled, awake = (known, past.awake) if p == 1 else (np.tile(known, p), np.tile(past.awake, (p, 1)))
        experts, leverage = past.experts.reshape(p * H, K), past.leverage.reshape(p * H, K)
        self._mixture.learn(mixed, experts, leverage, awake, targets, labelled)
        if known[0]:
            self.trust.learn(target, past.forecasts[0], past.mixture)
        if taught:
            usual, units = self.history.scales.change, self.history.scales.inverse_change
            self._agents.learn(steps, changes * units[:, None], known)
            self._agents.teach(step, target)
            recalled = None if self._server is None else self._agents.recall(steps, self._inside)
            if self._server is not None and recalled is not None:
                residuals = self._server.residuals(steps, changes, known, recalled * usual[:, None], usual)
                self._agents.learn_jointly(steps, residuals)
        self._mean_counts = LEVELS * self._mean_counts + 1.0
        self._means += (target - self._means) / self._mean_counts[:, None]
        return Scored(target, past.forecasts, partial(self._members.own, past.mixture), known, step)

    def _refresh(self) -> None:
        """Before a forecast: fit all memories again if scales or season have changed."""
        before = self._rows.refresh()
        if before is not None:
            self._agents.relearn(before, self.included[1 : 1 + len(self._agents.names)])
            if self._server is not None:
                self._rows.relearn(self._server, before)

    def _experts(self, now: np.ndarray, given) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Experts' forecasts, clipped to the largest change so far; leverages; agents' shares of the joint ones."""
        p, H, K = len(now), self.settings.horizon, len(self.owner)
        experts, leverage, shares = np.empty((p, H, K)), np.zeros((p, K)), self._no_shares
        first, last = 1 + len(LEVELS), 1 + len(LEVELS) + given.experts.shape[2]
        anchor = now[:, None, None]
        experts[:, :, :1] = anchor
        experts[:, :, 1:first] = self._means.T[:, None, :]
        experts[:, :, first:last] = given.experts
        leverage[:, first:last] = given.leverage
        if self._server is not None:
            joint = self._server.forecast(given.contributions, self._agents.public_now, self.history.scales.change)
            np.add(anchor, joint.changes.transpose(1, 2, 0), out=experts[:, :, last:])
            leverage[:, last:] = joint.leverage.T
            shares = joint.shares[..., 0]
        if np.count_nonzero(np.isfinite(experts)) < experts.size:  # non-finite forecasts are replaced by persistence
            experts = np.where(np.isfinite(experts), experts, anchor)
        if np.count_nonzero(np.isfinite(leverage)) < leverage.size:
            leverage = np.where(np.isfinite(leverage), leverage, 0.0)
        largest = self._largest[:, :, None]
        np.maximum(experts, anchor - largest, out=experts)
        return np.minimum(experts, anchor + largest, out=experts), leverage, shares

    def save(self) -> dict[str, np.ndarray]:
        own = {"means": self._means, "mean_counts": self._mean_counts, "largest": self._largest}
        return own | saved_parts(self._parts())

    def restore(self, fields) -> None:
        """Continue as saved, bit for bit. Raises InvalidInput; then this object must be discarded."""
        self._means = fields.take("means", self._means.shape)
        self._mean_counts = fields.take("mean_counts", self._mean_counts.shape, min=0.0)
        self._largest = fields.take("largest", self._largest.shape, min=0.0)
        restore_parts(self._parts(), fields)
        self._now = None

    def _parts(self):
        yield "rows.", self._rows
        yield "agents.", self._agents
        yield "mixture.", self._mixture
        yield "pending.", self._pending
        yield "trust.", self.trust
        if self._server is not None:
            yield "server.", self._server
