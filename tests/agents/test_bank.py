"""The bank of decoders against batch ridge regressions that share no code with it."""

import numpy as np
import pytest

from nashcast.agents.bank import CENTRED, DECODERS, FEW_HORIZONS, FORGETTING, TRUSTED_LEVERAGE, Bank, Member
from nashcast.fields import Fields


def batch(Z, r, z, forgetting, ridge, centre):
    """Forecast and leverage of one decoder from all rows at once."""
    ages = np.arange(len(Z))[::-1]
    w = forgetting**ages
    gram = (Z * w[:, None]).T @ Z + ridge * np.eye(Z.shape[1])
    cross = (Z * w[:, None]).T @ r + ridge * centre
    beta = np.linalg.solve(gram, cross)
    leverage = z @ np.linalg.solve(gram, z)
    share = 1.0 / max(1.0, leverage / TRUSTED_LEVERAGE)
    return centre @ z + share * (beta - centre) @ z, leverage


@pytest.mark.parametrize("y_dim", [1, 2])
def test_every_decoder_is_its_batch_ridge(y_dim):
    rng, sizes = np.random.default_rng(1), (3, 5)
    bank = Bank([Member(3, leading=True), Member(5)], y_dim, 1)
    rows, changes = [], []
    for _ in range(60):
        z = rng.standard_normal((2, y_dim, 5))
        z[0, :, 3:] = 0.0
        r = rng.standard_normal((y_dim, 1))
        bank.add_row(z, np.zeros((2, len(FORGETTING), y_dim, 1)))
        bank.add_labels(z[None], np.broadcast_to(r[:, 0], (1, 2, len(FORGETTING), y_dim)), np.zeros(1))
        rows.append(z)
        changes.append(r[:, 0])
    z = rng.standard_normal((2, y_dim, 5))
    z[0, :, 3:] = 0.0
    said = bank.forecast(z)
    Z, r, at = np.array(rows), np.array(changes), 0
    for e, size in enumerate(sizes):
        settings = [(*pair, 0.0) for pair in DECODERS] + ([(*pair, 1.0) for pair in CENTRED] if e == 0 else [])
        for forgetting, ridge, centre in settings:
            for k in range(y_dim):
                c = np.zeros(size)
                c[0] = centre
                wanted = batch(Z[:, e, k, :size], r[:, k], z[e, k, :size], forgetting, ridge * size, c)
                got = said.changes[at, k, 0], said.leverage[at, k]
                np.testing.assert_allclose(got, wanted, rtol=1e-9)
            at += 1
    assert at == len(said.leverage)


def test_learning_again_from_rows_is_learning_row_by_row():
    rng = np.random.default_rng(2)
    one, again = (Bank([Member(4)], 1, 1) for _ in range(2))
    Z, r = rng.standard_normal((80, 1, 1, 4)), rng.standard_normal((80, 1, 1))
    for z, change in zip(Z, r, strict=True):
        one.add_row(z, np.zeros((1, len(FORGETTING), 1, 1)))
        one.add_labels(z[None], np.broadcast_to(change[:, 0], (1, 1, len(FORGETTING), 1)), np.zeros(1))
    again.relearn(Z, r)
    z = rng.standard_normal((1, 1, 4))
    np.testing.assert_allclose(one.forecast(z).changes, again.forecast(z).changes, rtol=1e-9)


def test_a_label_that_comes_late_counts_as_if_it_had_been_in_time():
    rng = np.random.default_rng(3)
    on_time, late = (Bank([Member(3)], 1, 1) for _ in range(2))
    nothing = np.zeros((1, len(FORGETTING), 1, 1))
    Z, r = rng.standard_normal((30, 1, 1, 3)), rng.standard_normal(30)
    for z, change in zip(Z, r, strict=True):
        on_time.add_row(z, nothing)
        on_time.add_labels(z[None], np.full((1, 1, len(FORGETTING), 1), change), np.zeros(1))
        late.add_row(z, nothing)
    for t in np.random.default_rng(4).permutation(30):
        late.add_labels(Z[t][None], np.full((1, 1, len(FORGETTING), 1), r[t]), np.array([29 - t]))
    z = rng.standard_normal((1, 1, 3))
    np.testing.assert_allclose(on_time.forecast(z).changes, late.forecast(z).changes, rtol=1e-9)


def test_an_unlabelled_row_that_stands_in_for_itself_changes_no_decoder():
    rng = np.random.default_rng(5)
    bank = Bank([Member(3)], 1, 1)
    for _ in range(40):
        z = rng.standard_normal((1, 1, 3))
        bank.add_row(z, np.zeros((1, len(FORGETTING), 1, 1)))
        bank.add_labels(z[None], np.full((1, 1, len(FORGETTING), 1), z.sum()), np.zeros(1))
    z, probe = rng.standard_normal((2, 1, 1, 3))
    before = bank.forecast(probe).changes[0]  # forgetting 1, least ridge: its own forecast stands in
    bank.add_row(z, bank.stand_ins(bank.forecast(z).changes))
    np.testing.assert_allclose(bank.forecast(probe).changes[0], before, rtol=1e-9)


@pytest.mark.parametrize("horizon", [1, FEW_HORIZONS, FEW_HORIZONS + 1])
def test_decoders_of_a_gram_matrix_that_is_not_definite_by_rounding_are_solved_all_the_same(horizon):
    rng, size = np.random.default_rng(6), 3
    bank = Bank([Member(size)], 1, horizon)
    gram, cross = bank.save()["gram"].copy(), rng.standard_normal((1, len(FORGETTING), 1, horizon, size))
    # Below 0 by more than the least ridge, 1e-4 for each feature.
    gram[0, FORGETTING.index(1.0), 0] = np.diag([5.0, 2.0, -1e-3])
    bank.restore(Fields({"gram": gram, "cross": cross, "rows": np.array(1)}))
    z = 0.1 * rng.standard_normal(size)
    said = bank.forecast(z[None, None])
    for place, (forgetting, ridge) in enumerate(DECODERS):
        m = FORGETTING.index(forgetting)
        solved = np.linalg.inv(gram[0, m, 0] + ridge * size * np.eye(size)) @ z
        share = 1.0 / max(1.0, z @ solved / TRUSTED_LEVERAGE)
        np.testing.assert_allclose(said.leverage[place, 0], z @ solved, rtol=1e-9)
        np.testing.assert_allclose(said.changes[place, 0], share * cross[0, m, 0] @ solved, rtol=1e-9)
    assert said.leverage[0, 0] < 0.0


@pytest.mark.parametrize("horizon", [1, FEW_HORIZONS + 1])
def test_a_label_that_comes_with_its_row_equals_one_that_comes_after_it(horizon):
    rng = np.random.default_rng(7)
    with_row, after = (Bank([Member(4, leading=True), Member(3)], 2, horizon) for _ in range(2))
    nothing = np.zeros((2, len(FORGETTING), 2, horizon))
    for _ in range(30):
        z, label = rng.standard_normal((2, 2, 4)), rng.standard_normal((2, horizon))
        with_row.add_row(z, label)
        after.add_row(z, nothing)
        labels = np.broadcast_to(label.T[:, None, None], (horizon, 2, len(FORGETTING), 2))
        after.add_labels(np.broadcast_to(z, (horizon, *z.shape)), labels, np.zeros(horizon))
    z = rng.standard_normal((2, 2, 4))
    np.testing.assert_allclose(with_row.forecast(z).changes, after.forecast(z).changes, rtol=1e-9)
