"""Owners who each know a part of the target learn it together, as far as one regression over all inputs would."""

import numpy as np
import pytest

import nashcast as nc
from support.streams_of_owners import four_owners, pooled_errors


def owners(y_dim=1):
    """Each sees one of the four inputs; the function gives one number for each target."""
    return [
        nc.Agent(nc.encoders.Callable(lambda x, i=i: np.repeat(x[i], y_dim), features=1), name=f"owner {i}")
        for i in range(4)
    ]


def errors_of(federation, X, Y):
    replay = federation.replay(X, Y)
    return (replay.forecasts - Y) ** 2


@pytest.mark.slow
@pytest.mark.parametrize(("correlation", "limit"), [(0.0, 1.10), (0.5, 1.10), (0.9, 1.25)])
@pytest.mark.parametrize("y_dim", [1, 2])
def test_four_owners_come_close_to_the_pooled_regression(correlation, limit, y_dim):
    X, Y = four_owners(correlation, y_dim)
    errors = errors_of(nc.Federation(owners(y_dim), y_dim=y_dim, start=np.zeros(y_dim)), X, Y)
    first = len(X) // 5
    assert errors[first:].mean() <= limit * pooled_errors(X, Y)[first:].mean()


def test_together_they_are_far_better_than_apart():
    X, Y = four_owners(0.0, steps=800)
    together = errors_of(nc.Federation(owners(), start=0.0), X, Y)[200:].mean()
    mixed = errors_of(nc.Federation(owners(), game=None, start=0.0), X, Y)[200:].mean()
    persistence = (np.diff(Y[:, 0])[199:] ** 2).mean()
    assert together < 0.15 * persistence
    assert together < 0.3 * mixed


def test_an_owner_may_see_its_inputs_only():
    X, Y = four_owners(0.0, steps=300)
    seen = []

    def look(x):
        seen.append(x.shape)
        return x

    agents = [nc.Agent(nc.encoders.Callable(look, features=2), inputs=[1, 3]), nc.Agent(nc.encoders.Trend())]
    federation = nc.Federation(agents, start=0.0)
    federation.replay(X[:20], Y[:20])
    assert set(seen) == {(2,)}


def test_the_order_of_agents_changes_nothing():
    X, Y = four_owners(0.5, steps=150)
    one = nc.Federation(owners(), start=0.0).replay(X, Y).forecasts
    other = nc.Federation(owners()[::-1], start=0.0).replay(X, Y).forecasts
    np.testing.assert_allclose(one, other, rtol=1e-7, atol=1e-9)


def test_units_change_nothing_but_units():
    X, Y = four_owners(0.5, steps=150)
    one = nc.Federation(owners(), start=0.0).replay(X, Y).forecasts
    scaled = nc.Federation(owners(), start=0.0).replay(1e4 * X, 1e-3 * Y).forecasts
    np.testing.assert_allclose(one, 1e3 * scaled, rtol=1e-6, atol=1e-8)


def test_a_silent_agent_changes_next_to_nothing():
    """Features that are 0 throughout contribute nothing to the joint game."""
    X, Y = four_owners(0.0, steps=400)
    silent = nc.Agent(nc.encoders.Callable(lambda x: np.zeros(1), features=1), name="silent")
    plain = errors_of(nc.Federation(owners(), start=0.0), X, Y)[100:].mean()
    beside = errors_of(nc.Federation([*owners(), silent], start=0.0), X, Y)[100:].mean()
    assert beside < 1.05 * plain


def test_a_liar_costs_little_and_is_named():
    """An agent whose feature turns against the others in mid-stream is left out of the sums."""
    X, Y = four_owners(0.0, steps=1500)
    turned = X.copy()
    turned[700:, 0] *= -3.0
    lying = [
        nc.Agent(nc.encoders.Callable(lambda x: x[:1], features=1), name="liar"),
        *(
            nc.Agent(nc.encoders.Callable(lambda x, i=i: x[i : i + 1], features=1), name=f"owner {i}")
            for i in (1, 2, 3)
        ),
    ]
    federation = nc.Federation(lying, start=0.0)
    errors = errors_of(federation, turned, Y)
    silent = nc.Federation(lying[1:], start=0.0)
    without = errors_of(silent, turned, Y)
    assert errors[760:].mean() < 1.5 * without[760:].mean()


def test_trust_names_what_each_owner_is_worth():
    X, Y = four_owners(0.0, steps=600)
    weights = np.array([2.0, 1.0, 0.0, -1.0])
    Y = np.cumsum(X @ weights[:, None] + 0.3 * np.random.default_rng(1).standard_normal((600, 1)), axis=0)
    federation = nc.Federation(owners(), start=0.0)
    federation.replay(X, Y)
    trust = {row.name: row for row in federation.trust()}
    assert list(trust) == ["baselines", "owner 0", "owner 1", "owner 2", "owner 3", "joint game"]
    assert trust["owner 0"].loss_without > trust["owner 1"].loss_without > trust["owner 2"].loss_without
    assert abs(trust["owner 2"].loss_without) < 0.05
    assert trust["owner 0"].loss_without > 1.0
    assert trust["owner 0"].error < trust["baselines"].error
    assert sum(row.weight for row in trust.values()) == pytest.approx(1.0)
