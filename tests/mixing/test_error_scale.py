"""The usual error size and bounded errors: sane steps untouched, outliers bounded, changes followed."""

import numpy as np
import pytest

from nashcast.mixing.errors import error_scale
from nashcast.mixing.errors.error_scale import CLIP, COMMON, WINDOW


def steps(scale, count, size=1.0, columns=1, experts=5, seed=0):
    rng = np.random.default_rng(seed)
    for _ in range(count):
        error_scale.observe(scale, size * rng.standard_normal((columns, experts)), np.zeros(columns))


def test_errors_of_sane_steps_are_exact_and_the_size_is_their_root_mean_square():
    rng, scale = np.random.default_rng(1), error_scale.init(3)
    for _ in range(300):
        f, y = rng.standard_normal((3, 6)) + 5.0, np.full(3, 5.0)
        errors = error_scale.observe(scale, f, y)
        np.testing.assert_array_equal(errors.values, f - y[:, None])
        assert not errors.outlying.any()
    np.testing.assert_allclose(np.sqrt(scale.squares), 1.0, rtol=0.15)


def test_a_wrong_target_shrinks_the_step_and_a_wrong_forecast_is_clipped():
    scale = error_scale.init(2)
    steps(scale, 100, columns=2)
    f = np.array([[1.0, 2.0, -1.0, 0.5, 0.0], [1.0, -1.0, 0.5, 0.2, 1e100]])
    errors = error_scale.observe(scale, f, np.array([1e15, 0.0]))
    usual = np.sqrt(errors.usual)
    np.testing.assert_allclose(errors.values[0], -usual[0], rtol=1e-12)
    np.testing.assert_array_equal(errors.values[1, :4], f[1, :4])
    assert errors.values[1, 4] == CLIP * usual[1]
    np.testing.assert_array_equal(errors.outlying, [True, True])
    np.testing.assert_array_equal(errors.shrunk, [True, False])
    assert (usual < 1.5).all()


def test_a_common_error_keeps_the_order_of_the_experts():
    scale = error_scale.init(1)
    steps(scale, 100)
    f = np.array([[50.0, 60.0, 70.0, 80.0, 200.0]])
    errors = error_scale.observe(scale, f, np.zeros(1))
    assert COMMON * np.sqrt(errors.usual[0]) < 70.0
    np.testing.assert_allclose(errors.values[0] / errors.values[0, 2], f[0] / 70.0)


@pytest.mark.parametrize("factor", [1e-9, 1e-3, 1e3, 1e9])
def test_another_size_for_good_is_accepted(factor):
    scale = error_scale.init(1)
    steps(scale, 300)
    steps(scale, 1000, size=factor, seed=1)
    assert 0.5 * factor < np.sqrt(scale.squares[0]) < 3.0 * factor


def test_a_wrong_start_is_corrected_once_most_of_the_window_is_sane():
    scale = error_scale.init(1)
    steps(scale, WINDOW // 2, size=1e15)
    steps(scale, 4 * WINDOW, seed=1)
    assert np.sqrt(scale.squares[0]) < 3.0


def test_sleeping_unlabelled_and_exact_experts_say_nothing_about_the_size():
    scale, other = error_scale.init(2), error_scale.init(2)
    rng = np.random.default_rng(2)
    for _ in range(50):
        f, y = rng.standard_normal((2, 6)), np.zeros(2)
        error_scale.observe(other, f[:, :4], y)
        f[:, 4], f[:, 5] = np.nan, 0.0
        error_scale.observe(scale, f, y)
        unlabelled = error_scale.observe(scale, f, np.full(2, np.nan), None, np.array([False, False]))
        assert not unlabelled.awake.any()
    for one, two in zip(scale, other, strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-12)


def test_units_scale_the_errors():
    one, other = error_scale.init(1), error_scale.init(1)
    rng = np.random.default_rng(3)
    for t in range(60):
        f, y = rng.standard_normal((1, 4)), rng.standard_normal(1) * (1e6 if t % 20 == 19 else 1.0)
        a, b = error_scale.observe(one, f, y), error_scale.observe(other, 2.0**30 * f, 2.0**30 * y)
        np.testing.assert_array_equal(2.0**30 * a.values, b.values)
        np.testing.assert_array_equal(a.outlying, b.outlying)
