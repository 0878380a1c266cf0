"""The agents of this process, at work together: one call encodes, forecasts and learns for all of them.

What each agent remembers (its encoders' states, its decoders, its part in the joint game) lies in arrays whose leading
axis is the agent, so that NumPy serves all at once; no number of one agent enters another's. What leaves an agent is in
`AgentForecasts`, and what reaches it are labels and the residuals of the published sums.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from nashcast import seeds
from nashcast.agents.agent import Agent
from nashcast.agents.bank import FORGETTING, Bank, Member
from nashcast.agents.history import History
from nashcast.agents.joint_blocks import REMEMBERED, Contributions, JointBlocks, PublicBlock, averaging_rate
from nashcast.agents.units import ForecasterUnit, RawUnit, Unit, make_unit
from nashcast.encoders.rows import Rows
from nashcast.errors import InvalidInput
from nashcast.games.joint import JointGame

# Encoders of about the same size are solved in one call; sizes up to each of these stand together.
_SIZES = (4, 8, 16, 32, 64, 128, 256, 512, 1024)
PUBLIC_FEATURES = 7


class AgentForecasts(NamedTuple):
    """What leaves the agents at one step."""

    experts: np.ndarray  # own forecasts, (y_dim, horizon, experts)
    reach: np.ndarray  # 1 + leverage, (y_dim, experts)
    awake: np.ndarray  # (experts,)
    contributions: Contributions | None  # to the joint game, agents in their order
    absent: dict[int, str]  # agents that sit this step out, and why


class _Places(NamedTuple):
    """Members of one bank, or blocks of one size: whose they are, and their columns among all features."""

    members: list[int]
    columns: np.ndarray  # (members, size); the last column of all is 0


def public_features(rows: Rows) -> np.ndarray:
    """What everybody knows of the targets: one, value, last four changes, seasonal change; (rows, y_dim, 7)."""
    parts = [np.ones((rows.count, rows.y_dim)), rows.value(0), *(rows.change(lag) for lag in range(4))]
    return np.stack([*parts, rows.seasonal_change()], axis=2)


class LocalAgents:
    """history: of the stream, shared by all agents of this process and kept up to date by the federation.

    names: of the inputs, if they have any.   seed: names the agents' noise.
    """

    def __init__(
        self, agents: Sequence[Agent], history: History, game: JointGame | None, horizon: int, names=None, seed: int = 0
    ):
        self.names = distinct([agent.name for agent in agents])
        self._history, self._game, self._horizon = history, game, horizon
        x_dim, y_dim = history.inputs.shape[1], history.targets.shape[1]
        self.units: list[list[Unit]] = []
        for i, agent in enumerate(agents):
            columns = input_columns(agent, x_dim, names)
            width = x_dim if columns is None else len(columns)
            key = seeds.key(seed, "agent", i)
            built = [encoder.build(width, y_dim) for encoder in agent.encoders]
            self.units.append([make_unit(one, columns, key, y_dim, horizon) for one in built])
        self._last_step = -1
        self._arrange(y_dim)

    def forecast(self, x: np.ndarray) -> AgentForecasts:
        """Own forecasts and contributions of all agents from the present input x; changes nothing that counts."""
        history, p, H = self._history, self._history.targets.shape[1], self._horizon
        now = history.targets[history.now]
        self._rows_now = rows = history.rows_between(history.now, history.now + 1)
        absent = self._encode(rows, x)
        experts, reach, at = np.empty((p, H, len(self.owner))), np.ones((p, len(self.owner))), 0
        usual = history.scales.change
        self._bank_forecasts = []
        for bank, places in zip(self._banks, self._bank_places, strict=True):
            said = bank.forecast(self._taken(places))
            self._bank_forecasts.append(said)
            count = len(said.leverage)
            experts[:, :, at : at + count] = now[:, None, None] + usual[:, None, None] * said.changes.transpose(1, 2, 0)
            reach[:, at : at + count] = 1.0 + said.leverage.T
            at += count
        for unit in self._forecasters:
            experts[:, :, at : at + unit.forecasts] = unit.said.transpose(2, 1, 0)
            at += unit.forecasts
        awake = np.ones(len(self.owner), dtype=bool)
        for i in absent:
            awake[self.owner == i] = False
        self.public_now = public_features(rows)[0]
        contributions = None if self._game is None else self._contributions(usual)
        return AgentForecasts(experts, reach, awake, contributions, absent)

    def add_row(self, labelled: bool, taught: bool = True) -> None:
        """The present row ends. labelled: its next label is here and will be learnt now.

        taught: whether the row may teach anything; if not, all memories fade only.
        """
        step = self._last_step = self._history.step
        place = step % REMEMBERED
        if not taught:
            self._flat[:] = 0.0
        self._flat_rows[place] = self._flat
        for bank, places, said, kept in zip(
            self._banks, self._bank_places, self._bank_forecasts, self._stand_ins, strict=True
        ):
            stand_ins = bank.stand_ins(said.changes)
            if labelled:
                stand_ins[..., 0] = 0.0
            kept[place] = stand_ins
            bank.add_row(self._taken(places), stand_ins)
        if self._game is not None:
            gain = self._public.learn(self.public_now)
            for blocks, places in zip(self._blocks, self._block_places, strict=True):
                blocks.add_row(step, self._taken(places), self.public_now, gain, taught)
        for units in self.units:
            for unit in units:
                unit.commit()

    def learn(self, steps: np.ndarray, changes: np.ndarray, known: np.ndarray) -> None:
        """Labels came, one for each horizon, of the forecasts made at `steps` (horizon,).

        changes: of the target since then, (y_dim, horizon), in usual changes.   known: (horizon,) whether there is one.
        """
        ages = np.where(known, self._last_step - steps, 0)
        places = np.where(known, steps % REMEMBERED, 0)
        flat = self._flat_rows[places]
        horizons = np.arange(self._horizon)
        for bank, where, kept in zip(self._banks, self._bank_places, self._stand_ins, strict=True):
            stood_in = kept[places, ..., horizons]  # (horizon, members, forgettings, y_dim)
            corrections = (changes.T[:, None, None, :] - stood_in) * known[:, None, None, None]
            features = flat[:, :, where.columns].swapaxes(1, 2)
            bank.add_labels(features, corrections, ages)
            kept[places[known], ..., horizons[known]] += corrections[known]

    def recall(self, steps: np.ndarray) -> np.ndarray:
        """What the agents' present decoders of the joint game say of earlier rows, in their order; see `JointBlocks`."""
        parts = [blocks.recall(steps) for blocks in self._blocks]
        return np.concatenate(parts, axis=1)[:, self._block_order]

    def learn_jointly(self, steps: np.ndarray, residuals: np.ndarray) -> None:
        """residuals: ρ of each variant and agent, (variants, agents, y_dim, horizon), in usual changes."""
        assert self._game is not None
        rate = averaging_rate(self._history.step, self._game.forgetting[0])
        for blocks, places in zip(self._blocks, self._block_places, strict=True):
            blocks.learn(steps, residuals[:, places.members], rate)

    def relearn(self, before: Rows) -> None:
        """Scales or season have changed: all memories again, from the rows that are remembered.

        before: the same rows as they were standardised until now.
        """
        history = self._history
        first, last = before.span.first, before.span.last
        rows = history.rows_between(first, last)
        flat_before = self._flat_of(before, keep_states=False)
        for unit, _ in self._unit_columns:
            unit.revise(rows)
        flat = self._flat_of(rows, keep_states=True)
        changes, taught = self._past_changes(first, last)
        taught_flat = flat * taught[:, None, None]
        for bank, places in zip(self._banks, self._bank_places, strict=True):
            bank.relearn(taught_flat[:, :, places.columns].swapaxes(1, 2), changes)
        count = min(rows.count, REMEMBERED)
        recent = np.arange(history.step - count, history.step) % REMEMBERED
        self._flat_rows[recent] = flat[rows.count - count :]
        for kept in self._stand_ins:
            kept[recent] = changes[rows.count - count :, None, None]
        if self._game is not None:
            public = public_features(rows), public_features(before)
            self._public.relearn(public[0])
            for blocks, places in zip(self._blocks, self._block_places, strict=True):
                features = [part[:, :, places.columns].swapaxes(1, 2) for part in (flat, flat_before)]
                blocks.relearn(features, public, self._public, history.step, rows.unit_before(before))

    def _flat_of(self, rows: Rows, keep_states: bool) -> np.ndarray:
        flat = np.zeros((rows.count, rows.y_dim, self._flat.shape[1]))
        for unit, (begin, end) in self._unit_columns:
            flat[:, :, begin:end], state = unit.encode_rows(rows)
            if keep_states:
                unit.take_state(state)
        return flat

    def _past_changes(self, first: int, last: int) -> tuple[np.ndarray, np.ndarray]:
        """Changes that followed each row, (rows, y_dim, horizon), in usual changes; and whether a row has a label."""
        history, H = self._history, self._horizon
        usual = history.scales.change
        scale = np.divide(1.0, usual, out=np.zeros_like(usual), where=usual > 0.0)
        targets, labelled = history.targets, history.labelled
        changes = np.zeros((last - first, len(usual), H))
        for h in range(1, H + 1):
            ends = np.minimum(np.arange(first + h, last + h), history.now)
            known = labelled[ends] & (np.arange(first + h, last + h) <= history.now)
            changes[:, :, h - 1] = np.where(known[:, None], (targets[ends] - targets[first:last]) * scale, 0.0)
            if h > 1:  # what is not known yet is taken to stay where the shorter horizon leaves it
                changes[~known, :, h - 1] = changes[~known, :, h - 2]
        return changes, labelled[first + 1 : last + 1]

    def _encode(self, rows: Rows, x: np.ndarray) -> dict[int, str]:
        self._flat[:] = 0.0
        absent: dict[int, str] = {}
        places = iter(self._unit_columns)
        for i, units in enumerate(self.units):
            own = [next(places) for _ in units]
            try:
                for unit, (begin, end) in own:
                    self._flat[:, begin:end] = unit.encode(self._history, rows, x)
            except Exception as error:
                # Whatever a black box raises must not stop the others: the agent sits out, and the reason is reported.
                absent[i] = _reason(error)
                for unit, (begin, end) in own:
                    self._flat[:, begin:end] = 0.0
                    if isinstance(unit, RawUnit):
                        unit.forget_present(self._history)
        return absent

    def _contributions(self, usual: np.ndarray) -> Contributions:
        parts = [
            blocks.forecast(self._taken(places), self.public_now)
            for blocks, places in zip(self._blocks, self._block_places, strict=True)
        ]
        played, averaged, leverage = (np.concatenate(part, axis=axis) for part, axis in zip(zip(*parts), (1, 0, 1)))
        scale = usual[:, None]
        order = self._block_order
        return Contributions(played[:, order] * scale, averaged[order] * scale, leverage[:, order])

    def _taken(self, places: _Places) -> np.ndarray:
        return self._flat[:, places.columns].swapaxes(0, 1)

    def _arrange(self, y_dim: int) -> None:
        """Give every encoder its columns, and put encoders and agents of about one size together."""
        at, members, owners, blocks = 0, [], [], []
        self._unit_columns = []
        for i, units in enumerate(self.units):
            all_columns, private = [], []
            for unit in units:
                self._unit_columns.append((unit, (at, at + unit.size)))
                if unit.decoded:
                    members.append((Member(unit.size, unit.leading), i, list(range(at, at + unit.size))))
                all_columns += range(at, at + unit.size)
                private += range(at, at + unit.private)
                at += unit.size
            if len(units) > 1:
                members.append((Member(len(all_columns), joined=True), i, all_columns))
            blocks.append(private)
        self._flat = np.zeros((y_dim, at + 1))
        self._flat_rows = np.zeros((REMEMBERED, y_dim, at + 1))
        self._banks, self._bank_places, self._stand_ins, owners = [], [], [], []
        for group in _grouped([len(columns) for *_, columns in members]):
            chosen = [members[place] for place in group]
            bank = Bank([member for member, *_ in chosen], y_dim, self._horizon)
            self._banks.append(bank)
            self._bank_places.append(_Places(group, _padded([columns for *_, columns in chosen], at)))
            shape = (REMEMBERED, len(chosen), len(FORGETTING), y_dim, self._horizon)
            self._stand_ins.append(np.zeros(shape))
            owners += [chosen[e][1] for e in bank.member]
        self._forecasters = [u for units in self.units for u in units if isinstance(u, ForecasterUnit)]
        owners += [i for i, units in enumerate(self.units) for u in units for _ in range(u.forecasts)]
        self.owner = np.array(owners, dtype=np.int64)
        self._blocks, self._block_places = [], []
        if self._game is not None:
            public = PUBLIC_FEATURES if self._game.partial else 0
            for group in _grouped([len(private) for private in blocks]):
                sizes = [max(len(blocks[i]), 1) for i in group]
                self._blocks.append(JointBlocks(self._game, sizes, public, y_dim, self._horizon))
                self._block_places.append(_Places(group, _padded([blocks[i] for i in group], at)))
            order = np.concatenate([places.members for places in self._block_places])
            self._block_order = np.argsort(order)
            self._public = PublicBlock(y_dim, PUBLIC_FEATURES)

    def save(self) -> dict[str, np.ndarray]:
        found = {"flat_rows": self._flat_rows, "last_step": np.array(self._last_step)}
        for prefix, part in self._parts():
            found |= {f"{prefix}{name}": value for name, value in part.save().items()}
        return found | {f"stand_ins.{i}": kept for i, kept in enumerate(self._stand_ins)}

    def restore(self, fields) -> None:
        self._last_step = int(fields.take("last_step", (), dtype=np.int64, min=-1))
        self._flat_rows = fields.take("flat_rows", self._flat_rows.shape)
        for prefix, part in self._parts():
            part.restore(fields.part(prefix))
        self._stand_ins = [fields.take(f"stand_ins.{i}", kept.shape) for i, kept in enumerate(self._stand_ins)]

    def _parts(self):
        yield from ((f"bank.{i}.", bank) for i, bank in enumerate(self._banks))
        yield from ((f"blocks.{i}.", blocks) for i, blocks in enumerate(self._blocks))
        yield from ((f"unit.{i}.", unit) for i, (unit, _) in enumerate(self._unit_columns))
        if self._game is not None:
            yield "public.", self._public


def input_columns(agent: Agent, x_dim: int, names: Sequence[str] | None) -> np.ndarray | None:
    """The places of the inputs that an agent may see; None for all."""
    if agent.inputs is None:
        return None
    columns = []
    for one in agent.inputs:
        if isinstance(one, str):
            if names is None or one not in names:
                known = (
                    "Inputs have no names here: pass places." if names is None else f"Pass some of {', '.join(names)}."
                )
                raise InvalidInput(f"inputs of agent {agent.name!r}", repr(one), known)
            columns.append(list(names).index(one))
        elif one >= x_dim:
            remedy = f"Inputs have {x_dim} numbers; the first place is 0."
            raise InvalidInput(f"inputs of agent {agent.name!r}", f"place {one}", remedy)
        else:
            columns.append(one)
    return np.array(columns, dtype=np.int64)


def distinct(names: list[str]) -> list[str]:
    """The same with numbers behind names that occur more than once."""
    return [f"{name} {names[: i + 1].count(name)}" if names.count(name) > 1 else name for i, name in enumerate(names)]


def _grouped(sizes: list[int]) -> list[list[int]]:
    """Places of about the same size together, in ascending order of size."""
    groups: dict[int, list[int]] = {}
    for place, size in enumerate(sizes):
        group = next((limit for limit in _SIZES if size <= limit), size)
        groups.setdefault(group, []).append(place)
    return [groups[key] for key in sorted(groups)]


def _padded(columns: list[list[int]], nothing: int) -> np.ndarray:
    size = max(1, *(len(own) for own in columns))
    return np.array([own + [nothing] * (size - len(own)) for own in columns])


def _reason(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:500]
