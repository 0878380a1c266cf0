"""The layout of several agents' features: columns of each encoder, and groups of encoders and agents of one size."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import NamedTuple

import numpy as np

from nashcast.agents.agent import Agent
from nashcast.agents.bank import Member
from nashcast.agents.units.encoder_units import ForecasterUnit, Unit
from nashcast.errors import InvalidInput

# Names of the members that every federation has.
BASELINES, JOINT = "baselines", "joint game"
RESERVED = (BASELINES, JOINT)
# Encoders of about the same size are solved in one call; these are the upper limits of the size classes. A call costs
# as much as about a dozen small systems.
_SIZES = (16, 32, 64, 128, 256, 512, 1024)
# The joint game has fewer systems, and more calls for each group.
_BLOCK_SIZES = _SIZES[1:]


class Group(NamedTuple):
    """Members of one bank, or agents in one set of joint blocks: their indices, and their columns of all features."""

    members: list[int]
    columns: np.ndarray  # (members, size), padded with the last column, which is 0

    def of_row(self, features: np.ndarray) -> np.ndarray:
        """Their part, (members, y_dim, size), of the features of a row, (y_dim, columns)."""
        return features.take(self.columns, axis=1).swapaxes(0, 1)

    def of_rows(self, features: np.ndarray) -> np.ndarray:
        """The same of several rows: (rows, members, y_dim, size)."""
        return features.take(self.columns, axis=2).swapaxes(1, 2)


class Arrangement(NamedTuple):
    """units: those of each agent, with their columns.   width: number of columns, including one that is 0.

    banks: members of each bank.   bank_groups: their columns.   owner: the agent of each expert: decoders, bank by
    bank, then forecasters.   block_sizes: features that each agent of a group plays the joint game with.
    """

    units: list[list[tuple[Unit, slice]]]
    width: int
    banks: list[list[Member]]
    bank_groups: list[Group]
    owner: np.ndarray
    block_sizes: list[list[int]]
    block_groups: list[Group]

    @property
    def all_units(self) -> list[tuple[Unit, slice]]:
        return [pair for own in self.units for pair in own]

    @property
    def forecasters(self) -> list[ForecasterUnit]:
        return [unit for unit, _ in self.all_units if isinstance(unit, ForecasterUnit)]


def arranged(units: list[list[Unit]]) -> Arrangement:
    """Give every encoder its columns, and put encoders and agents of about one size together."""
    at, placed, private = 0, [], []
    members: list[tuple[Member, int, list[int]]] = []  # each with its agent and its columns
    for agent, own in enumerate(units):
        places, first = [], at
        private.append([])
        for unit in own:
            columns = range(at, at + unit.size)
            places.append((unit, slice(at, at + unit.size)))
            if unit.decoded:
                members.append((Member(unit.size, unit.leading), agent, list(columns)))
            private[agent] += columns[: unit.private]
            at += unit.size
        if len(own) > 1:
            members.append((Member(at - first, joined=True), agent, list(range(first, at))))
        placed.append(places)
    member_columns = [columns for *_, columns in members]
    bank_groups = [_group(group, member_columns, at) for group in _by_size(member_columns, _SIZES)]
    banks = [[members[place][0] for place in group.members] for group in bank_groups]
    owner = [members[place][1] for group in bank_groups for place in group.members for _ in members[place][0].decoders]
    owner += [agent for agent, own in enumerate(units) for unit in own for _ in range(unit.forecasts)]
    block_groups = [_group(group, private, at) for group in _by_size(private, _BLOCK_SIZES)]
    sizes = [[max(len(private[agent]), 1) for agent in group.members] for group in block_groups]
    return Arrangement(placed, at + 1, banks, bank_groups, np.array(owner, dtype=np.int64), sizes, block_groups)


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


def distinct(names: list[str], reserved: Sequence[str] = ()) -> list[str]:
    """The same names, with numbers appended to those that occur more than once or are reserved.

    >>> distinct(["desk", "desk", "desk 2", "baselines"], RESERVED)
    ['desk 1', 'desk 3', 'desk 2', 'baselines 1']
    """
    unique = {name for name in names if names.count(name) == 1} - set(reserved)
    taken, found = {*reserved, *unique}, []
    for name in names:
        numbered = (f"{name} {number}" for number in count(1))
        found.append(name if name in unique else next(each for each in numbered if each not in taken))
        taken.add(found[-1])
    return found


def _by_size(columns: list[list[int]], limits: tuple[int, ...]) -> list[list[int]]:
    """Indices grouped by about the same number of columns, in ascending order of it."""
    groups: dict[int, list[int]] = {}
    for place, size in enumerate(map(len, columns)):
        group = next((limit for limit in limits if size <= limit), size)
        groups.setdefault(group, []).append(place)
    return [groups[key] for key in sorted(groups)]


def _group(members: list[int], columns: list[list[int]], nothing: int) -> Group:
    own = [columns[member] for member in members]
    size = max(1, *(len(one) for one in own))
    return Group(members, np.array([one + [nothing] * (size - len(one)) for one in own]))
