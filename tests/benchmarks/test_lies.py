"""Agents that lie: what a lie says, and a sample of the table of what lies cost."""

import lies
import lying_agents as lying
import numpy as np
import pytest

BY_NAME = {lie.name: lie for lie in lying.LIES}


def short(name, rows):
    return lying.first_rows(lying.STREAMS[name](), rows)


def test_there_are_at_least_twelve_lies_and_five_streams():
    assert len(BY_NAME) == len(lying.LIES) >= 12
    assert len(lying.STREAMS) == 5


def test_a_liar_that_tells_the_truth_changes_nothing():
    stream = lying.five_owners(steps=60)
    agents, truth = lying.owners_agents(stream), lying.Lie("truth", lambda said, _: said)
    honest = lying.forecasts(stream, agents)
    np.testing.assert_allclose(lying.forecasts(stream, agents, truth, (1,)), honest, rtol=1e-12)
    assert not np.allclose(lying.forecasts(stream, agents, BY_NAME["scaled by 10"], (1,)), honest)


def test_every_lie_is_told_and_stays_finite():
    said, rng = np.ones((6, 2, 1)), np.random.default_rng(0)
    past = [np.full((6, 2, 1), float(i)) for i in range(lying.STALE)]
    for lie in lying.LIES:
        moments = [lying.Moment(step, 100, 0, past, rng, np.random.default_rng(1)) for step in range(0, 100, 3)]
        told = np.array([lie.said(said, moment) for moment in moments])
        assert np.isfinite(told).all()
        leverage = said[0] if lie.leverage is None else lie.leverage(0.5 * said[0])
        assert (told != said).any() or (leverage != 0.5 * said[0]).any()


def test_a_pair_whose_lies_cancel_says_the_truth_together_at_times():
    said, lie = np.ones((6, 1, 1)), BY_NAME["a pair whose lies cancel at times"]

    def told(liar, step):
        return lie.said(said, lying.Moment(step, 100, liar, [], np.random.default_rng(0), np.random.default_rng(1)))

    np.testing.assert_allclose(told(0, 0) + told(1, 0), 2.0 * said)
    assert not np.allclose(told(0, lying.TURNS) + told(1, lying.TURNS), 2.0 * said)


def test_the_error_is_relative_to_persistence():
    stream = lying.five_owners(targets=2, steps=50)
    last = np.vstack([stream.start, stream.targets[:-1]])
    assert lying.error(stream, last) == pytest.approx(1.0)
    assert lying.error(stream, stream.targets) == 0.0


def test_the_table_has_the_largest_ratio():
    row = {"stream": "TMY3 temperature", "rows": 9, "sharing": lies.OPEN, "lie": "sign flipped"}
    rows = [{**row, "liar": i, "ratio": ratio} for i, ratio in enumerate([0.9, 1.05])]
    assert "| sign flipped | 1.050 |" in lies.table(rows)
    assert "Largest: 1.050. Above 1.1: 0 of 2." in lies.page(rows)
    assert lies.page([*rows, {**rows[0], "rows": 20}]).count("### ") == 2  # lengths are not mixed


@pytest.mark.slow
@pytest.mark.parametrize("lie", ["sign flipped", "scaled by -3, 50 rows of 100", "random, 2 usual changes"])
def test_a_liar_costs_at_most_a_tenth_more_than_leaving_it_out(lie):
    for row in lies.measured("five owners, correlated 0.5, two targets", 2000, [2], False, [BY_NAME[lie]]):
        assert row["ratio"] <= lies.LIMIT
