"""Trust against plain loops over steps and members that share no code with it."""

from __future__ import annotations

import numpy as np
import pytest

from nashcast.federation.members import Members, Mixture
from nashcast.federation.views.deferred_trust import DeferredTrust
from nashcast.federation.views.trust import FADING
from nashcast.fields import Fields

NAMES = ["baselines", "one", "two", "joint game"]
OWNER = np.array([0, 0, 1, 1, 1, 2, 2, 3, 3])  # the last two experts are the variants of the joint game
VARIANTS, AGENTS, Y_DIM = 2, 2, 2


def steps(count: int, seed: int = 0):
    """Target, forecast and mixture of each step; agent "two" sleeps at every third one."""
    rng = np.random.default_rng(seed)
    for t in range(count):
        awake = np.ones(len(OWNER), dtype=bool)
        awake[OWNER == 2] = t % 3 > 0
        weights = rng.random((Y_DIM, len(OWNER))) * awake
        weights /= weights.sum(axis=1, keepdims=True)
        experts = rng.standard_normal((Y_DIM, len(OWNER)))
        shares = 0.1 * rng.standard_normal((VARIANTS, AGENTS, Y_DIM))
        target = rng.standard_normal(Y_DIM)
        yield target, (weights * experts).sum(axis=1), Mixture(weights, experts, awake, shares)


def by_loops(rows) -> np.ndarray:
    """Error, recent error and loss without each member, (members, 3)."""
    M = len(NAMES)
    total, count, recent, recent_count, without, mine = *(np.zeros(M) for _ in range(5)), 0.0
    for target, forecast, (weights, experts, awake, shares) in rows:
        mine = FADING * mine + np.mean((forecast - target) ** 2)
        for m in range(M):
            of_member = np.flatnonzero(np.equal(OWNER, m))
            others = np.flatnonzero(np.not_equal(OWNER, m))
            left = np.empty(Y_DIM)
            for k in range(Y_DIM):
                said = experts[k].copy()
                if 0 < m < M - 1:  # an agent's part of the joint experts goes too
                    said[-VARIANTS:] -= shares[:, m - 1, k]
                left[k] = weights[k, others] @ said[others] / weights[k, others].sum()
            without[m] = FADING * without[m] + np.mean((left - target) ** 2)
            if awake[of_member].any():
                own = [np.average(experts[k, of_member], weights=weights[k, of_member]) for k in range(Y_DIM)]
                loss = np.mean((np.array(own) - target) ** 2)
                total[m], count[m] = total[m] + loss, count[m] + 1
                recent[m], recent_count[m] = FADING * recent[m] + loss, FADING * recent_count[m] + 1
    with np.errstate(invalid="ignore"):  # a member that has never forecast has no error
        return np.stack([total / count, recent / recent_count, without / mine - 1.0], axis=1)


def log() -> DeferredTrust:
    return DeferredTrust(Members(NAMES, OWNER), Y_DIM, (VARIANTS, AGENTS))


def reported(trust: DeferredTrust) -> np.ndarray:
    rows = trust.report(NAMES, np.zeros(len(NAMES)), np.ones(len(NAMES), dtype=bool))
    return np.array([(row.error, row.recent_error, row.loss_without) for row in rows])


@pytest.mark.parametrize("count", [1, 63, 64, 65, 200])
def test_it_is_what_loops_over_the_steps_give(count):
    trust = log()
    for row in steps(count):
        trust.learn(*row)
    got, wanted = reported(trust), by_loops(list(steps(count)))
    np.testing.assert_allclose(got, wanted, rtol=1e-9, atol=1e-9)


def test_to_ask_changes_nothing_and_a_restored_log_continues_bit_for_bit():
    asked, quiet = log(), log()
    for t, row in enumerate(steps(150)):
        asked.learn(*row)
        quiet.learn(*row)
        reported(asked)
        if t == 90:
            restored = log()
            restored.restore(Fields({name: value.copy() for name, value in asked.save().items()}))
            asked = restored
    np.testing.assert_array_equal(reported(asked), reported(quiet))
