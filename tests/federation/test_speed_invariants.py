"""What is computed in a faster way equals what the general way gives."""

import numpy as np
import pytest

import nashcast as nc
from nashcast.agents import arrangement
from nashcast.agents.bank import DECODERS, Bank, Member
from nashcast.agents.history import History
from nashcast.agents.joint import joint_blocks, small_solve
from nashcast.agents.joint.joint_blocks import JointBlocks
from nashcast.encoders.base import input_context
from nashcast.encoders.families.analogs import LAGS, LOCAL, NEAREST
from nashcast.encoders.families.rows import Rows, Scales, Span
from nashcast.federation.incoming.columns import Columns
from nashcast.federation.incoming.pending import Pending, Said
from nashcast.fields import Fields
from nashcast.games.joint import JointGame
from nashcast.mixing import log_score
from nashcast.mixing.errors import error_scale

FAMILIES = [
    nc.encoders.Trend(), nc.encoders.Lags(), nc.encoders.Lags(changes=True), nc.encoders.Seasonal(),
    nc.encoders.Quadratic(), nc.encoders.RandomLags(), nc.encoders.Reservoir(),
]  # fmt: skip


@pytest.mark.parametrize("size", range(1, small_solve.SMALL + 1))
def test_small_systems_are_solved_as_by_lapack(size):
    rng = np.random.default_rng(size)
    roots = rng.standard_normal((2, 50, 3, size, size))
    A, b = roots @ roots.swapaxes(3, 4) + 0.1 * np.eye(size), rng.standard_normal((50, 3, size))
    expected = np.linalg.solve(A, np.broadcast_to(b[..., None], (*A.shape[:-1], 1)))[..., 0]
    np.testing.assert_allclose(small_solve.solve(A, b), expected, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(small_solve.dot(A[..., 0], b), np.einsum("...i,...i", A[..., 0], b), rtol=1e-12)


@pytest.mark.parametrize(("public", "horizon"), [(0, 1), (2, 1), (0, 3)])
def test_many_tiny_joint_blocks_equal_the_general_ones(monkeypatch, public, horizon):
    rng, sizes = np.random.default_rng(3), [3] * 40
    monkeypatch.setattr(small_solve, "pays", lambda size, systems: True)
    tiny = JointBlocks(JointGame(), sizes, public, 2, horizon, remembered=8)
    monkeypatch.setattr(small_solve, "pays", lambda size, systems: False)
    general = JointBlocks(JointGame(), sizes, public, 2, horizon, remembered=8)
    for step in range(30):
        features, known, gain = rng.standard_normal((40, 2, 3)), rng.standard_normal((2, public)), 0.1
        features[step % 40] = 0.0  # absent
        said, expected = tiny.forecast(features, known), general.forecast(features, known)
        for one, other in zip(said[:2], expected[:2], strict=True):  # without a window there is no kernel
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)
        steps = np.maximum(step - np.arange(horizon), 0)
        residuals = rng.standard_normal((len(JointGame().variants), 40, 2, horizon))
        for blocks in (tiny, general):
            blocks.add_row(step, gain * known, taught=step % 7 != 3)
            blocks.learn(steps, residuals, 0.05)
        np.testing.assert_allclose(tiny.recall(steps), general.recall(steps), rtol=1e-9, atol=1e-12)
        if step == 15:
            tiny.restore(Fields(general.save()))


def test_agents_of_other_sizes_are_solved_apart_with_the_same_result(monkeypatch):
    rng, sizes = np.random.default_rng(4), [3, 5, 20, 26, 26, 4]
    apart = JointBlocks(JointGame(), sizes, 0, 2, 1)
    monkeypatch.setattr(joint_blocks, "_MOST_CALLS", 0)
    together = JointBlocks(JointGame(), sizes, 0, 2, 1)
    assert (len(apart._runs), len(together._runs)) == (3, 1)
    for step in range(20):
        features = rng.standard_normal((6, 2, 26)) * (np.arange(26) < np.array(sizes)[:, None, None])
        said, expected = (blocks.forecast(features, np.empty((2, 0))) for blocks in (apart, together))
        np.testing.assert_allclose(said.leverage, expected.leverage, rtol=1e-9)
        np.testing.assert_allclose(said.said, expected.said, rtol=1e-9, atol=1e-12)
        residuals = rng.standard_normal((len(JointGame().variants), 1, 2, 1))
        for blocks in (apart, together):
            blocks.add_row(step, None, taught=True)
            blocks.learn(np.array([step]), residuals, 0.05)


def rows_of(rng, first, last, season=5, y_dim=2, known_from=20):
    targets, inputs = rng.standard_normal((80, y_dim)).cumsum(axis=0), rng.standard_normal((80, 3))

    def rows(first, last):
        span = Span(first, last, known_from, first + 100, season)
        return Rows(targets, inputs, Scales.of(targets), Scales.of(inputs), span)

    return rows(first, last), [rows(row, row + 1) for row in range(first, last)]


def test_one_row_is_standardised_as_among_many():
    together, alone = rows_of(np.random.default_rng(0), 20, 60)
    for place, row in enumerate(alone):
        np.testing.assert_array_equal(row.values(4)[0], together.values(4)[place])
        np.testing.assert_array_equal(row.changes(8)[0], together.changes(8)[place])
        np.testing.assert_array_equal(row.value(3)[0], together.values(4)[place, :, 3])
        # The rows together reach back beyond the first known one, where a season before is not known.
        np.testing.assert_array_equal(row.seasonal_change[0], together.seasonal_change[place])
        assert row.season_places()[0] == together.season_places()[place]


@pytest.mark.parametrize("family", FAMILIES, ids=repr)
@pytest.mark.parametrize("season", [0, 5])
def test_encoders_see_one_row_as_among_many(family, season):
    together, alone = rows_of(np.random.default_rng(1), 20, 50, season=season)
    built = family.build(3, 2)
    expected, last = built.encode_rows(together, built.start())
    state = built.start()
    for place, row in enumerate(alone):
        features, state = built.encode_rows(row, state)
        np.testing.assert_allclose(features[0], expected[place], rtol=1e-12, atol=1e-14)
    if last is not None:
        np.testing.assert_allclose(state, last, rtol=1e-12)


@pytest.mark.parametrize(
    ("x_dim", "y_dim", "horizon", "steps"), [(3, 1, 1, 90), (0, 2, 1, 40), (7, 2, 4, 60), (1, 1, 6, 12)]
)
def test_analogs_equal_their_definition(x_dim, y_dim, horizon, steps):
    rng = np.random.default_rng(steps)
    y, X = rng.standard_normal((steps + 1, y_dim)).cumsum(axis=0), rng.standard_normal((steps + 1, x_dim))
    scales, input_scales = Scales.of(y), Scales.of(X)
    context = input_context(X[-1], None)._replace(inputs=X[:-1], targets=y, scales=scales, input_scales=input_scales)
    said = nc.encoders.Analogs().build(x_dim, y_dim).forecast(context, horizon)
    used = min(x_dim, 6)
    for k in range(y_dim):

        def windows(end, k=k):
            values = [y[end - lag, k] / scales.spread[k] for lag in range(LAGS)]
            changes = [(y[end - lag, k] - y[end - lag - 1, k]) / scales.change[k] for lag in range(LAGS)]
            return values, changes, values[:2] + list(X[end, :used] / input_scales.spread[:used])

        for kind, now in enumerate(windows(steps)):
            past = [(np.subtract(windows(end)[kind], now), end) for end in range(LAGS, steps)]
            near = sorted(past, key=lambda pair: pair[0] @ pair[0])[:LOCAL]
            for h in range(1, horizon + 1):
                changes = [y[end + h, k] - y[end, k] if end + h <= steps else np.nan for _, end in near]
                mean = np.nanmean(changes) if np.isfinite(changes).any() else 0.0
                changes = np.where(np.isnan(changes), mean, changes)
                design = np.array([[1.0, *difference] for difference, _ in near])
                ridge = 0.1 * np.mean([difference @ difference for difference, _ in near]) + 1e-12
                gram = design.T @ design + ridge * np.diag([0.0] + [1.0] * (design.shape[1] - 1))
                line = np.linalg.solve(gram, design.T @ changes)[0]
                expected = y[-1, k] + np.array([changes[:NEAREST].mean(), line])
                np.testing.assert_allclose(said[2 * kind : 2 * kind + 2, h - 1, k], expected, rtol=1e-9, atol=1e-9)


def test_a_bank_of_padded_members_equals_ridge_regressions():
    rng, sizes = np.random.default_rng(2), (3, 5)
    bank = Bank([Member(3, leading=True), Member(5)], y_dim=1, horizon=2)
    Z, R = rng.standard_normal((40, 2, 1, 5)), rng.standard_normal((40, 1, 2))
    Z[:, 0, :, 3:] = 0.0
    for t in range(40):
        bank.forecast(Z[t])
        bank.add_row(Z[t], None)
        corrections = np.broadcast_to(R[t].T[:, None, None], (2, 2, 5, 1))
        bank.add_labels(np.stack([Z[t], Z[t]]), corrections, np.zeros(2, dtype=np.int64))
    now = rng.standard_normal((2, 1, 5))
    now[0, :, 3:] = 0.0
    said = bank.forecast(now)
    place = 0
    for e, member in enumerate(bank.members):
        d = sizes[e]
        assert len(member.decoders) >= len(DECODERS)
        for forgetting, rho, centre in member.decoders:
            weights = forgetting ** np.arange(40)[::-1]
            z, c = Z[:, e, 0, :d], np.eye(d)[0] * centre
            A = (z * weights[:, None]).T @ z + rho * d * np.eye(d)
            leverage = now[e, 0, :d] @ np.linalg.solve(A, now[e, 0, :d])
            share = 1.0 / max(1.0, leverage / 5.0)
            for h in range(2):
                beta = np.linalg.solve(A, (z * weights[:, None]).T @ R[:, 0, h] + rho * d * c)
                expected = now[e, 0, :d] @ (c + share * (beta - c))
                np.testing.assert_allclose(said.changes[place, 0, h], expected, rtol=1e-8, atol=1e-10)
            np.testing.assert_allclose(said.leverage[place, 0], leverage, rtol=1e-8)
            place += 1


def test_a_bank_keeps_its_grams_definite_however_long_features_are_constant(monkeypatch):
    monkeypatch.setattr("nashcast.agents.bank.LONGEST_MEMORY", 100)
    bank = Bank([Member(4)], y_dim=1, horizon=1)
    z = np.array([0.1, -0.3, 16.0, 7.0]).reshape(1, 1, 4)
    grams = []
    for _ in range(3000):
        bank.forecast(z)
        bank.add_row(z, None)
        grams.append(bank.save()["gram"].max())
    np.testing.assert_allclose(grams[98], 99 * 256.0)
    np.testing.assert_allclose(grams[-1], 100 * 256.0)  # without a limit it would be 3000 * 256
    assert np.linalg.eigvalsh(bank.save()["gram"]).min() > -1e-9
    other = Bank([Member(4)], y_dim=1, horizon=1)
    other.restore(Fields(bank.save()))
    other.add_row(z, None)
    bank.add_row(z, None)
    np.testing.assert_array_equal(other.save()["gram"], bank.save()["gram"])


def test_groups_of_other_sizes_give_the_same_forecasts(monkeypatch):
    rng = np.random.default_rng(5)
    X, Y = rng.standard_normal((60, 2)), rng.standard_normal((60, 1)).cumsum(axis=0)
    expected = nc.default_federation(2).replay(X, Y).forecasts
    monkeypatch.setattr(arrangement, "_SIZES", (4, 8, 16, 20, 32, 64))
    monkeypatch.setattr(arrangement, "_BLOCK_SIZES", (8, 16, 64))
    np.testing.assert_allclose(nc.default_federation(2).replay(X, Y).forecasts, expected, rtol=1e-9, atol=1e-9)


def test_pending_forecasts_of_one_horizon_equal_the_general_form():
    rng, parts = np.random.default_rng(6), []
    one, two = Pending(2, 1, 5, (4, 3)), Pending(2, 2, 5, (4, 3))
    for step in range(300):
        said = [rng.standard_normal(shape) for shape in ((2, 1, 5), (2, 5), (5,), (1, 2), (2, 5), (4, 3, 2))]
        said[2] = said[2] > 0.0
        one.add(step, Said(*said))
        doubled = Said(*said)._replace(experts=said[0].repeat(2, axis=1), forecasts=said[3].repeat(2, axis=0))
        two.add(step, doubled)
        parts.append(said)
    for step in (299, 120):
        short, long = one.take(np.array([step])), two.take(np.array([step, step]))
        np.testing.assert_array_equal(short.experts[:, 0], long.experts[:, 1])
        np.testing.assert_array_equal(short.leverage[:, 0], long.leverage[:, 1])
        np.testing.assert_array_equal(short.awake[0], long.awake[1])
        np.testing.assert_array_equal(short.forecasts[0], long.forecasts[1])
        for kept, also in zip(short.mixture, long.mixture, strict=True):
            np.testing.assert_array_equal(kept, also)
        np.testing.assert_array_equal(short.mixture.weights, parts[step][4])
        np.testing.assert_array_equal(short.mixture.shares, parts[step][5])


def test_rows_like_the_one_before_are_read_the_same():
    quick, slow = Columns(None, 1), Columns(None, 1)
    for row in np.random.default_rng(7).standard_normal((5, 3)):
        row[1] = np.nan
        values = quick.read_input(row)
        np.testing.assert_array_equal(values, slow.read_input(row.tolist()))
        assert not values.flags.writeable
        assert not np.shares_memory(values, row)
        np.testing.assert_array_equal(quick.read_target("y", float(row[0])), slow.read_target("y", [row[0]]))
    with pytest.raises(nc.errors.InvalidInput, match="shape"):
        quick.read_input(np.zeros(4))
    with pytest.raises(nc.errors.InvalidInput, match="1e150"):
        quick.read_input(np.array([1e200, 0.0, 0.0]))


def test_log_scores_at_several_speeds_equal_each_alone():
    rng = np.random.default_rng(8)
    speeds = [(1.0, 0.98), (0.95, 0.8), (0.8, 0.3)]
    scale, together = error_scale.init(2), log_score.init(2, 4, rules=(3,))
    alone = [log_score.init(2, 4) for _ in speeds]
    prior, memory = np.log(np.full(4, 0.25)), np.array(speeds).T[:, :, None]
    for step in range(60):
        leverage, awake = rng.random((2, 4)), rng.random((2, 4)) > 0.2
        labelled = np.array([True, step % 3 > 0])
        weights = log_score.weights(together, prior, awake, leverage)
        errors = error_scale.observe(scale, rng.standard_normal((2, 4)), np.zeros(2), awake, labelled)
        log_score.learn(together, errors, weights, memory=memory[0], scale_memory=memory[1], leverage=leverage)
        for i, (state, (one, other)) in enumerate(zip(alone, speeds, strict=True)):
            np.testing.assert_allclose(log_score.weights(state, prior, awake, leverage), weights[i], rtol=1e-12)
            log_score.learn(state, errors, weights[i], memory=one, scale_memory=other, leverage=leverage)


def test_usual_sizes_restart_by_the_median_of_the_last_ones():
    rng, scale, restarts = np.random.default_rng(9), error_scale.init(1), 0
    for step in range(400):
        size = 1e3 if step % 100 < 30 else 1.0
        errors = error_scale.observe(scale, size * rng.standard_normal((1, 6)), np.zeros(1))
        if errors.revised[0]:
            restarts += 1
            median = np.median(scale.recent[0])
            np.testing.assert_allclose(scale.squares[0], error_scale.RESTART**2 * median)
        elif scale.steps[0] >= error_scale.WINDOW:
            assert scale.squares[0] <= error_scale.LIMIT**2 * np.median(scale.recent[0])
    assert restarts > 0


def test_what_encoders_see_is_read_only():
    history = History(2, np.zeros(1))
    history.put_input(np.ones(2))
    rows = history.rows_between(history.now, history.now + 1)
    for columns in (None, np.array([1])):
        context = history.context(rows.take(columns), np.ones(2), columns, (3, 3), None)
        for array in (context.x, context.inputs, context.targets, context.times):
            assert not array.flags.writeable


@pytest.mark.parametrize("horizon", [1, 3])
def test_a_restored_federation_goes_on_bit_for_bit(tmp_path, horizon):
    rng = np.random.default_rng(10)
    X, Y = rng.standard_normal((60, 2)), rng.standard_normal(60).cumsum()
    one, other = (nc.default_federation(2, horizon=horizon) for _ in range(2))
    for x, y in zip(X[:40], Y[:40], strict=True):
        one.learn_one(x, y)
    one.save(tmp_path / "state")
    other.load(tmp_path / "state")
    for x, y in zip(X[40:], Y[40:], strict=True):
        np.testing.assert_array_equal(one.predict_one(x), other.predict_one(x))
        one.learn_one(x, y)
        other.learn_one(x, y)
