"""The rule for masked sums that an agent takes part in: the number of agents, and the set after agents drop out.

Two sums over almost the same agents reveal the terms of the few others. Guarantees and proofs:
docs/explanation/secure-aggregation.md.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from hashlib import sha256

import numpy as np

from nashcast import validation as check

LEAST, ATTEMPTS = 3, 3


def least_present(lookback: int, y_dim: int = 1, noisy: bool = False) -> int:
    """The minimum number of agents for which a game's sums, which the hub sees, do not determine an agent's terms.

    The hub knows the weights: a summed matrix is many equations about few private numbers, T · p(p+1)/2 of each agent.
    This counts both. noisy: any agent's features are random; the count is then an upper bound.
    """
    T, p = check.integer("lookback", lookback, min=1), check.integer("y_dim", y_dim, min=1)
    sizes = [(back + 1) * p for back in range(T)]
    couplings, numbers = sum(k * k for k in sizes), T * _pairs(p)
    if not noisy:
        return max(LEAST, -(-couplings // numbers) + 1)
    others = sum(sizes) + sum(_pairs(k) * (_pairs(k) + k) for k in sizes[:-1])  # offsets and noise tensors
    surprises = sum(k * (k + 1) for k in sizes[1:])  # these add private numbers
    without = -(-(couplings + others) // numbers)
    everything = -(-(couplings + others + surprises) // (numbers + (T - 1) * p * p))
    return max(LEAST, without + 1, everything + 1)


def _pairs(n: int) -> int:
    """Entries of the lower triangle of an n×n matrix."""
    return n * (n + 1) // 2


class Ledger:
    """The sets of agents of the masked sums that one agent has joined in its present step.

    A later attempt must have the same set, or leave out at least `least` of the last one's agents and keep more than
    half of the first one's. If every agent follows this rule, then the sums of one step that can be decoded reveal no
    more than sums over disjoint groups of at least `least` agents, whatever set of agents the hub announces.
    """

    def __init__(self, least: int = LEAST, attempts: int = ATTEMPTS, after: int = -1):
        self._least, self._attempts = check.integer("least", least, min=2), check.integer("attempts", attempts, min=1)
        self._step, self._attempt = check.integer("after", after, min=-1), 0
        self._sets: list[Set[str]] = []
        self._rounds: set[str] = set()

    def admit(self, step: int, attempt: int, round_name: str, present: Set[str], least: int = 0) -> str:
        """Enter one round. least: of this game, if greater. Returns why it must not be sent, or an empty text."""
        least = max(self._least, least)
        if step < self._step or (step == self._step and not self._sets):
            return f"step {step} is over"
        if attempt >= self._attempts:
            return f"there are only {self._attempts} attempts for a step"
        if len(present) < least:
            return f"a sum over {len(present)} agents hides too little; it takes {least}"
        if self._sets and (step, attempt) == (self._step, self._attempt):
            if present != self._sets[-1]:
                return "another set of agents was present in this attempt before"
            if round_name in self._rounds:
                return "this round was sent before, and a mask is used once"
            self._rounds.add(round_name)
            return ""
        before = self._sets if step == self._step else []
        over = f"attempt {attempt} is over" if before and attempt < self._attempt else ""
        if not (reason := over or _why_not(before, present, least)):
            self._step, self._attempt, self._sets, self._rounds = step, attempt, [*before, present], {round_name}
        return reason


def next_present(
    tried: Sequence[Set[str]], missing: Set[str], step: int, least: int = LEAST, attempts: int = ATTEMPTS
) -> frozenset[str] | None:
    """The next set of players when some are missing, or None for no game.

    Further agents are left out so that at least `least` are; which ones changes from step to step. tried: the sets of
    this step's attempts so far.
    """
    left = sorted(tried[-1] - missing, key=lambda name: sha256(packed(step, name)).digest())
    gone = len(tried[-1]) - len(left)
    kept = frozenset(left[max(0, least - gone) if gone else 0 :])
    impossible = len(tried) >= attempts or len(kept) < least or _why_not(tried, kept, least)
    return None if impossible else kept


def why_thin(weights: np.ndarray, least: int) -> str:
    """Why a game with these weights (lookback, agents) reveals too much (few nonzero in a step); or an empty text."""
    counts = np.count_nonzero(weights, axis=1)
    thin = counts[(counts > 0) & (counts < least)]
    return f"only {thin.min()} agents have a weight in some step of the window; it takes {least}" if thin.size else ""


def packed(*fields: str | int | bytes) -> bytes:
    """An injective encoding of fields: each is preceded by its length."""
    parts = [field if isinstance(field, bytes) else str(field).encode() for field in fields]
    return b"".join(len(part).to_bytes(8, "little") + part for part in parts)


def _why_not(tried: Sequence[Set[str]], present: Set[str], least: int) -> str:
    """Why an attempt with these agents is not allowed after those tried, or an empty text."""
    if not tried or present == tried[-1]:
        return ""
    if not present < tried[-1]:
        return "somebody joined within the step"
    gone, first = len(tried[-1]) - len(present), len(tried[0])
    if gone < least:
        return f"it leaves out {gone} of the agents, whose terms would show; leave out at least {least}, or none"
    return "" if 2 * len(present) > first else f"it keeps no more than half of the step's {first} agents"
