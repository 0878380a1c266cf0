"""The agents of this process: one call encodes, forecasts and learns for all of them.

The agents' memories (encoder states, decoders, parts in the joint game) are arrays whose leading axis is the agent, so
that NumPy handles all at once; no number of one agent enters another's. An agent sends what is in `AgentForecasts`, and
receives labels and the residuals of the published sums.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from nashcast import seeds
from nashcast.agents.agent import Agent
from nashcast.agents.arrangement import RESERVED, arranged, distinct, input_columns
from nashcast.agents.bank import FORGETTING, Bank
from nashcast.agents.expected_distance import expected_distance
from nashcast.agents.history import History
from nashcast.agents.joint.joint_blocks import REMEMBERED, Contributions, JointBlocks, PublicBlock, averaging_rate
from nashcast.agents.joint.public_features import PUBLIC_FEATURES, public_features
from nashcast.agents.joint.window_blocks import WindowBlocks
from nashcast.agents.units.encoder_units import RawUnit, Unit
from nashcast.agents.units.learner_unit import LearnerUnit
from nashcast.agents.units.make_unit import make_unit
from nashcast.encoders.base import build_encoder
from nashcast.encoders.families.rows import Rows
from nashcast.fields import restore_parts, saved_parts
from nashcast.games.joint import JointGame


class AgentForecasts(NamedTuple):
    """What the agents send at one step."""

    experts: np.ndarray  # own forecasts, (y_dim, horizon, experts)
    leverage: np.ndarray  # (y_dim, experts)
    awake: np.ndarray  # (experts,)
    contributions: Contributions | None  # to the joint game, agents in their order
    absent: dict[int, str]  # agents that sit this step out, and why
    stopped: np.ndarray | None = None  # the part that their sum has lost since: see `JointBlocks.relearn`


class LocalAgents:
    """history: the rows of the stream, shared by all agents of this process and updated by the federation.

    names: the inputs' names, if any.   seed: seeds the agents' noise.   place: index of the first among all agents.
    """

    groups: np.ndarray | None = None

    def __init__(
        self,
        agents: Sequence[Agent],
        history: History,
        game: JointGame | None,
        horizon: int,
        names=None,
        seed=0,
        place=0,
    ):
        self.names = distinct([agent.name for agent in agents], RESERVED)
        self._history, self._game, self._horizon = history, game, horizon
        x_dim, y_dim = history.inputs.shape[1], history.targets.shape[1]
        units: list[list[Unit]] = []
        for i, agent in enumerate(agents):
            columns = input_columns(agent, x_dim, names)
            width = x_dim if columns is None else len(columns)
            key = seeds.key(seed, "agent", place + i)
            own_names = names if names is None or columns is None else [names[column] for column in columns]
            built = [build_encoder(encoder, width, y_dim, own_names) for encoder in agent.encoders]
            units.append([make_unit(one, columns, key, y_dim, horizon) for one in built])
        self._last_step, self._label_was_known = -1, False
        self._stopped: np.ndarray | None = None
        found = self._arrangement = arranged(units)
        self.owner = found.owner
        self._units, self._forecasters = found.all_units, found.forecasters
        self._learners = [unit for unit in self._forecasters if isinstance(unit, LearnerUnit)]
        self._flat = np.zeros((y_dim, found.width))
        self._flat_rows = np.zeros((REMEMBERED, y_dim, found.width))
        self._banks = [Bank(members, y_dim, horizon) for members in found.banks]
        stored = (len(FORGETTING), y_dim, horizon)
        self._stand_ins = [np.zeros((REMEMBERED, len(members), *stored)) for members in found.banks]
        self._blocks: Sequence[JointBlocks | WindowBlocks] = []
        if game is not None:
            public = PUBLIC_FEATURES if game.plays_remainder else 0
            make = JointBlocks if game.window is None else WindowBlocks
            self._blocks = [make(game, sizes, public, y_dim, horizon) for sizes in found.block_sizes]
            self._block_order = np.argsort(np.concatenate([group.members for group in found.block_groups]))
            self._public = PublicBlock(y_dim, PUBLIC_FEATURES)

    def forecast(self, x: np.ndarray, included: np.ndarray | None = None) -> AgentForecasts:
        """Own forecasts and contributions of all agents from the present input x; a repeated call gives the same."""
        history, p, H = self._history, self._history.targets.shape[1], self._horizon
        now, usual = history.targets[history.now], history.scales.change
        rows = history.rows_between(history.now, history.now + 1)
        absent = self._encode(rows, x)
        experts, leverage, at = np.empty((p, H, len(self.owner))), np.zeros((p, len(self.owner))), 0
        self._said = []
        for bank, group in zip(self._banks, self._arrangement.bank_groups, strict=True):
            features = group.of_row(self._flat)
            found = bank.forecast(features)
            self._said.append((features, found.changes))
            end = at + len(found.leverage)
            experts[:, :, at:end] = found.changes.transpose(1, 2, 0)
            leverage[:, at:end] = found.leverage.T
            at = end
        decoded = experts[:, :, :at]
        decoded *= usual[:, None, None]
        decoded += now[:, None, None]
        for unit in self._forecasters:
            experts[:, :, at : at + unit.forecasts] = unit.said.transpose(2, 1, 0)
            at += unit.forecasts
        awake = np.ones(len(self.owner), dtype=bool)
        for i in absent:
            awake[self.owner == i] = False
        self.public_now = public_features(rows)[0]
        contributions = None if self._game is None else self._contributions(usual)
        stopped, self._stopped = self._stopped, None
        return AgentForecasts(experts, leverage, awake, contributions, absent, stopped)

    def add_row(self, label: np.ndarray | None, taught: bool = True) -> None:
        """The present row ends.   label: the change to its next target, (y_dim,), in usual changes, if it is known.

        taught: whether the row may be learnt from; if not, all memories only fade.
        """
        step = self._last_step = self._history.step
        place, self._label_was_known = step % REMEMBERED, label is not None
        if not taught:
            self._flat[:] = 0.0
        self._flat_rows[place] = self._flat
        for bank, (features, changes), stored in zip(self._banks, self._said, self._stand_ins, strict=True):
            learnt = None if label is None else label[:, None]
            if self._horizon > 1 or label is None:
                learnt = bank.stand_ins(changes)
                if label is not None:
                    learnt[..., 0] = label
                stored[place] = learnt
            bank.add_row(features if taught else np.zeros_like(features), learnt)
        if self._game is not None:
            gain = self.public_gain = self._public.learn(self.public_now)
            for blocks in self._blocks:
                blocks.add_row(step, gain, taught)
        for unit, _ in self._units:
            unit.commit()

    def sit_out(self) -> None:
        """The sums of the present row exclude these agents: they play nothing in it."""
        for blocks in self._blocks:
            assert isinstance(blocks, JointBlocks)
            blocks.sit_out()

    def end_row(self, target: np.ndarray | None, stand_in: np.ndarray) -> None:
        """Does nothing: the agents read the shared history."""

    def learn_late(self, step: int, target: np.ndarray) -> None:
        """Does nothing: the agents read the shared history."""

    def learn(self, steps: np.ndarray, changes: np.ndarray, known: np.ndarray) -> None:
        """Learn labels, one for each horizon, of the forecasts made at `steps` (horizon,).

        changes: in the target since then, (y_dim, horizon), in usual changes.   known: (horizon,) whether there is one.
        """
        ages, places = self._last_step - steps, steps % REMEMBERED
        if self._horizon == 1 and self._label_was_known and not ages[0]:
            return
        everything = np.count_nonzero(known) == len(known)
        if not everything:
            ages, places = np.where(known, ages, 0), np.where(known, places, 0)
        flat = self._flat_rows[places]
        horizons = np.arange(self._horizon)
        labels = changes.T[:, None, None, :]
        for bank, group, stored in zip(self._banks, self._arrangement.bank_groups, self._stand_ins, strict=True):
            # The stand-in of a label is read once: a target is learnt only once.
            stood_in = stored[places, ..., horizons]  # (horizon, members, forgettings, y_dim)
            corrections = labels - stood_in
            if not everything:
                corrections *= known[:, None, None, None]
            bank.add_labels(group.of_rows(flat), corrections, ages)

    def teach(self, step: int, target: np.ndarray) -> None:
        """Pass the label of one step to the encoders that learn by themselves."""
        for unit in self._learners:
            unit.teach(step, target)

    @property
    def gives_quantiles(self) -> bool:
        return any(unit.gives_quantiles for unit in self._forecasters)

    def expected_distance(self) -> np.ndarray | None:
        """The expected distance of the next targets from the forecasts, (horizon, y_dim); None without quantiles."""
        given = [unit.quantiles for unit in self._forecasters if unit.gives_quantiles and unit.quantiles is not None]
        return expected_distance(given)

    def recall(self, steps: np.ndarray, included: np.ndarray | None = None) -> np.ndarray:
        """Forecasts of earlier rows by the agents' present decoders of the joint game; see `JointBlocks`."""
        parts = [blocks.recall(steps) for blocks in self._blocks]
        return self._in_order(parts, axis=1)

    def learn_jointly(self, steps: np.ndarray, residuals: np.ndarray) -> None:
        """residuals: ρ of each variant and agent, (variants, agents or 1, y_dim, horizon), in usual changes."""
        assert self._game is not None
        rate = averaging_rate(self._history.step, self._game.forgetting[0])
        for blocks, group in zip(self._blocks, self._arrangement.block_groups, strict=True):
            alike = len(self._blocks) == 1 or residuals.shape[1] == 1
            own = residuals if alike else residuals.take(group.members, axis=1)
            blocks.learn(steps, own, rate)

    def relearn(self, before: Rows, included: np.ndarray) -> None:
        """Scales or season have changed: fit all memories again, from the stored rows.

        before: the same rows as they were standardised until now.   included: agents in the sums of the joint game.
        """
        history = self._history
        first, last = before.span.first, before.span.last
        rows = history.rows_between(first, last)
        flat_before = self._flat_of(before, keep_states=False)
        for unit, _ in self._units:
            unit.revise(rows)
        flat = self._flat_of(rows, keep_states=True)
        changes, taught = history.changes_after(first, last, self._horizon)
        taught_flat = flat * taught[:, None, None]
        for bank, group in zip(self._banks, self._arrangement.bank_groups, strict=True):
            bank.relearn(group.of_rows(taught_flat), changes)
        count = min(rows.count, REMEMBERED)
        recent = np.arange(history.step - count, history.step) % REMEMBERED
        self._flat_rows[recent] = flat[rows.count - count :]
        for stored in self._stand_ins:
            stored[recent] = changes[rows.count - count :, None, None]
        if self._game is None:
            return
        public, unit = (public_features(rows), public_features(before)), rows.unit_before(before)
        self._public.relearn(public[0])
        block, parts = self._public if self._game.plays_remainder else None, []
        for blocks, group in zip(self._blocks, self._arrangement.block_groups, strict=True):
            features = [group.of_rows(part) for part in (flat, flat_before)]
            parts.append(blocks.relearn(features, public, block, history.step, unit, included[group.members]))
        self._stopped = None if block is None else np.add.reduce(parts)

    def _flat_of(self, rows: Rows, keep_states: bool) -> np.ndarray:
        flat = np.zeros((rows.count, rows.y_dim, self._flat.shape[1]))
        for unit, columns in self._units:
            flat[:, :, columns], state = unit.encode_rows(rows)
            if keep_states:
                unit.take_state(state)
        return flat

    def _encode(self, rows: Rows, x: np.ndarray) -> dict[int, str]:
        """Fill `_flat` with the features of the present row. Returns absent agents, whose features are 0, and why."""
        absent: dict[int, str] = {}
        for i, own in enumerate(self._arrangement.units):
            try:
                for unit, columns in own:
                    self._flat[:, columns] = unit.encode(self._history, rows, x)
            except Exception as error:
                # An exception of a black box must not stop the others: its agent sits out, and the reason is reported.
                absent[i] = _reason(error)
                for unit, columns in own:
                    self._flat[:, columns] = 0.0
                    if isinstance(unit, RawUnit):
                        unit.forget_present(self._history)
        return absent

    def _contributions(self, usual: np.ndarray) -> Contributions:
        groups = zip(self._blocks, self._arrangement.block_groups, strict=True)
        parts = [blocks.forecast(group.of_row(self._flat), self.public_now) for blocks, group in groups]
        self.contributed = self._in_order([part.said for part in parts], axis=1)  # in usual changes
        contributed = self.contributed * usual[:, None]
        leverage = self._in_order([part.leverage for part in parts], axis=1)
        kernels = [part.kernel for part in parts if part.kernel is not None]
        return Contributions(contributed, leverage, self._in_order(kernels, axis=1) if kernels else None)

    def _in_order(self, parts: list[np.ndarray], axis: int) -> np.ndarray:
        """The results of the groups of blocks, with agents in their order."""
        if len(parts) == 1:  # a group has its agents in order
            return parts[0]
        return np.concatenate(parts, axis=axis).take(self._block_order, axis=axis)

    def save(self) -> dict[str, np.ndarray]:
        found = {"flat_rows": self._flat_rows, "last_step": np.array(self._last_step)}
        found |= saved_parts(self._parts())
        return found | {f"stand_ins.{i}": stored for i, stored in enumerate(self._stand_ins)}

    def restore(self, fields) -> None:
        self._last_step = int(fields.take("last_step", (), dtype=np.int64, min=-1))
        self._flat_rows = fields.take("flat_rows", self._flat_rows.shape)
        restore_parts(self._parts(), fields)
        self._stand_ins = [fields.take(f"stand_ins.{i}", stored.shape) for i, stored in enumerate(self._stand_ins)]

    def _parts(self):
        yield from ((f"bank.{i}.", bank) for i, bank in enumerate(self._banks))
        yield from ((f"blocks.{i}.", blocks) for i, blocks in enumerate(self._blocks))
        yield from ((f"unit.{i}.", unit) for i, (unit, _) in enumerate(self._units))
        if self._game is not None:
            yield "public.", self._public


def _reason(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:500]
