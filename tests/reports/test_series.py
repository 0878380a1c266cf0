"""Thinning keeps peaks and gaps; what diverges is told from what is large, and clipped."""

import numpy as np
import pytest

from nashcast.records.study import Figure, Line, Panel
from nashcast.reports.line_styles import COLOURS, FIXED, looks
from nashcast.reports.series import drawable, few_ticks, legend_labels, thin


def panel(*names, **options):
    return Panel("", "x", "y", [Line(name, name) for name in names], **options)


@pytest.mark.parametrize("seed", range(5))
def test_thinning_keeps_both_ends_and_the_extremes_of_every_stretch(seed):
    rng = np.random.default_rng(seed)
    y = rng.standard_t(2, size=54_321)
    kept = thin(np.arange(len(y)), y, 2000)
    assert len(kept) <= 2000
    assert (np.diff(kept) > 0).all()
    assert {0, len(y) - 1, int(y.argmax()), int(y.argmin())} <= set(kept)
    # Of any stretch twice as long as a bucket, no more than the neighbouring bucket's peak is lost.
    for start in rng.integers(0, len(y) - 200, 50):
        inside = kept[(kept >= start) & (kept < start + 200)]
        assert y[inside].max() >= y[start + 60 : start + 140].max()


def test_short_series_are_left_alone_and_gaps_stay():
    assert thin(np.arange(50), np.zeros(50), 50).tolist() == list(range(50))
    assert thin(np.arange(0), np.zeros(0), 50).tolist() == []
    y = np.sin(np.arange(9000.0))
    y[3000:6000] = np.nan
    kept = thin(np.arange(9000), y, 300)
    assert np.isnan(y[kept]).sum() >= 40
    assert np.isfinite(y[kept]).sum() >= 150


def test_a_logarithmic_axis_keeps_its_beginning():
    x = np.arange(1, 100_001.0)
    kept = thin(x, np.sin(x), 200, log_x=True)
    assert set(range(5)) <= set(kept.tolist())
    assert len(kept) <= 200
    assert thin(np.ones(1000), np.arange(1000.0), 100, log_x=True).tolist() == [0, 999]


def test_a_line_that_diverges_is_said_to_and_leaves_the_panel_once():
    t = np.arange(2000)
    target = 1 + 0.1 * np.sin(t / 50)
    # It swings back and forth, ever wider, until it overflows.
    wild = 1 + np.exp(np.minimum(t, 700)) * np.where(t % 2, 1, -1)
    wild[1500:] = np.where(t[1500:] % 2, np.inf, np.nan)
    drawn = drawable(panel("wild", "target"), {"wild": wild, "target": target}, 3000)
    assert [series.diverges for series in drawn.series] == [True, False]
    low, high = drawn.limits
    assert low < target.min() < target.max() < high
    assert high - low < 0.5
    shown = drawn.series[0].y
    assert not np.isinf(shown).any()
    assert np.isnan(shown[10:]).all()
    np.testing.assert_array_equal(drawn.series[1].y, target)
    assert legend_labels([drawn]) == {"wild": "wild (diverges)", "target": "target"}


def test_the_legend_says_in_how_many_panels_a_line_diverges():
    arrays = {"a": np.array([1.0, np.inf]), "b": np.ones(2)}
    wild = drawable(panel("a", "b"), arrays, 10)
    calm = drawable(panel("a", "b"), {"a": np.ones(2), "b": np.ones(2)}, 10)
    assert legend_labels([wild, calm, calm])["a"] == "a (diverges in 1 of 3)"


CALM = {
    "large data": np.linspace(2e6, 5e6, 100),
    "from nothing": np.linspace(0, 9e5, 100),
    "one spike": np.where(np.arange(100) == 50, 900.0, 1.0),
    "a gap": np.where(np.arange(100) < 50, 1.0, np.nan),
    "no values": np.full(100, np.nan),
    "a point": np.ones(1),
    "nothing": np.zeros(0),
}


@pytest.mark.parametrize("name", CALM)
def test_large_data_spikes_and_gaps_do_not_diverge(name):
    drawn = drawable(panel("a"), {"a": CALM[name]}, 3000)
    assert not drawn.series[0].diverges
    assert drawn.limits is None
    np.testing.assert_array_equal(drawn.series[0].y, CALM[name])


def test_on_a_logarithmic_axis_single_huge_ratios_are_data_and_what_is_not_positive_a_gap():
    ratio = np.ones(200)
    ratio[[3, 50]], ratio[7], ratio[8] = 1e9, 0.0, -1.0
    drawn = drawable(panel("a", log_y=True), {"a": ratio}, 3000)
    assert not drawn.series[0].diverges
    assert drawn.limits is None
    assert np.isnan(drawn.series[0].y[[7, 8]]).all()
    assert np.nanmax(drawn.series[0].y) == 1e9


def test_infinite_points_stay_in_sight_at_the_edge():
    ratio = np.full(100, 2.0)
    ratio[10] = np.inf
    points = Panel("", "x", "y", [Line("a", "a", style="points")], log_y=True, reference=1.0)
    drawn = drawable(points, {"a": ratio}, 3000)
    assert not drawn.series[0].diverges
    low, high = drawn.limits
    assert low < 1.0 < 2.0 < high
    assert drawn.series[0].y[10] == high


def test_where_all_lines_diverge_their_beginning_is_shown():
    growth = 10.0 ** np.arange(0, 300, 3)
    drawn = drawable(panel("a"), {"a": growth}, 3000)
    assert drawn.series[0].diverges
    assert np.isfinite(drawn.limits).all()
    empty = drawable(panel("a"), {"a": np.full(5, np.inf)}, 3000)
    assert np.isfinite(empty.limits).all()


def test_few_values_of_x_are_the_ticks_unless_they_are_powers_of_ten():
    line = [Line("a", "y", "x")]
    logarithmic, linear = Panel("", "x", "y", line, log_x=True), Panel("", "x", "y", line)
    lookback = {"x": np.array([1.0, 2.0, 5.0]), "y": np.ones(3)}
    powers = {"x": np.array([1e3, 1e4, 1e5]), "y": np.ones(3)}
    assert few_ticks(logarithmic, drawable(logarithmic, lookback, 10)) == [1.0, 2.0, 5.0]
    assert few_ticks(logarithmic, drawable(logarithmic, powers, 10)) is None
    assert few_ticks(linear, drawable(linear, lookback, 10)) is None


def test_looks_differ_and_the_same_label_looks_the_same_in_every_panel():
    names = [f"line {i}" for i in range(24)]
    figure = Figure("f", "", "", [panel("target", *names[:12], "persistence"), panel(*names)])
    look = looks(figure)
    assert len({(look[name].colour, look[name].dash) for name in names}) == 24
    assert len({look[name].colour for name in names[:6]}) == len(COLOURS)
    assert (look["target"], look["persistence"]) == (FIXED["target"], FIXED["persistence"])


def test_a_label_keeps_its_colour_from_figure_to_figure_while_there_are_enough():
    first, second = Figure("f", "", "", [panel("a", "b", "c")]), Figure("g", "", "", [panel("c", "target", "d")])
    assert looks(second, [first, second])["c"] == looks(first, [first, second])["c"] == looks(first)["c"]
    assert looks(second)["c"] != looks(first)["c"]
    assert list(looks(second, [first, second])) == ["c", "target", "d"]
    crowd = Figure("h", "", "", [panel(*(f"line {i}" for i in range(9)))])
    assert looks(second, [crowd, first, second]) == looks(second)
