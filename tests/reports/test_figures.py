"""Figures on paper: what they show is asked of matplotlib before they are saved, and of the files after."""

import sys
import warnings

import numpy as np
import pytest
from matplotlib import get_backend
from matplotlib.colors import to_hex
from PIL import Image

from nashcast import InvalidInput
from nashcast.records.study import Figure, Line, Panel
from nashcast.reports.figures import COLUMN_WIDTH, draw, figure_on_paper
from nashcast.reports.line_styles import looks
from support.studies import example, hostile, many_panels


def legend_texts(legend):
    return [text.get_text() for text in legend.get_texts()]


def drawn(panels, arrays, columns=1):
    paper = figure_on_paper(Figure("f", "t", "c", panels, columns), arrays)
    paper.canvas.draw()
    return paper


def test_png_and_pdf_are_written_and_the_same_each_time(tmp_path):
    study = example()
    for figure in study.figures:
        paths = draw(figure, study.arrays, tmp_path, figure.name)
        assert [path.name for path in paths] == [f"{figure.name}.png", f"{figure.name}.pdf"]
        assert paths[1].read_bytes().startswith(b"%PDF")
        with Image.open(paths[0]) as image:
            pixels = np.asarray(image.convert("RGB"))
            inches = image.width / image.info["dpi"][0]
        assert inches == pytest.approx(COLUMN_WIDTH * figure.columns, abs=0.05)
        assert (pixels[[0, -1]] == 255).all()  # white to the edge: nothing is cut off
        # Every line's colour is there.
        for look in looks(figure).values():
            wanted = [int(look.colour[i : i + 2], 16) for i in (1, 3, 5)]
            assert (pixels == np.array(wanted, np.uint8)).all(axis=2).sum() > 20, look
    again = draw(study.figures[2], study.arrays, tmp_path / "again", "lookback")
    assert [path.read_bytes() for path in again] == [(tmp_path / path.name).read_bytes() for path in again]
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_file()) == sorted(
        f"{figure.name}.{kind}" for figure in study.figures for kind in ("png", "pdf")
    )


def test_one_legend_names_every_line_once_and_covers_no_data():
    study = example()
    paper = figure_on_paper(study.figures[0], study.arrays)
    paper.canvas.draw()
    (legend,) = paper.legends
    assert legend_texts(legend) == ["with game", "target", "without game (diverges)"]
    assert all(ax.get_legend() is None for ax in paper.axes)
    box = legend.get_window_extent()
    assert not any(box.overlaps(ax.get_tightbbox()) for ax in paper.axes)
    # The legend's keys look like the lines they name.
    lines = {line.get_label(): line for ax in paper.axes for line in ax.get_lines()}
    for key, text in zip(legend.get_lines(), legend_texts(legend), strict=True):
        line = lines[text.removesuffix(" (diverges)")]
        assert (key.get_color(), key.get_linestyle()) == (line.get_color(), line.get_linestyle())


def test_panels_with_little_in_common_have_a_legend_each_below_them():
    arrays = {"y": np.arange(5.0)}
    panels = [Panel(f"p{i}", "x", "y", [Line(f"line {i}.{j}", "y") for j in range(4)]) for i in range(4)]
    paper = drawn(panels, arrays, 2)
    assert not paper.legends
    for i, ax in enumerate(paper.axes):
        assert legend_texts(ax.get_legend()) == [f"line {i}.{j}" for j in range(4)]
        box = ax.get_legend().get_window_extent()
        assert box.y1 <= ax.get_window_extent().y0
        assert box.y0 >= 0
        assert not any(box.overlaps(other.get_window_extent()) for other in paper.axes)


def test_axes_reference_and_styles_are_as_described():
    study = example()
    ratios = figure_on_paper(study.figures[1], study.arrays).axes[0]
    assert (ratios.get_xscale(), ratios.get_yscale()) == ("linear", "log")
    reference, points = ratios.get_lines()
    assert list(reference.get_ydata()) == [1.0, 1.0]
    assert (points.get_linestyle(), points.get_marker()) == ("None", "o")
    lookback = figure_on_paper(study.figures[2], study.arrays).axes[0]
    assert (lookback.get_xscale(), lookback.get_yscale()) == ("log", "log")
    assert [tick.get_text() for tick in lookback.get_xticklabels()] == ["1", "2", "3", "5"]
    assert (lookback.get_xlabel(), lookback.get_ylabel()) == ("look-back", "MSE")
    step = drawn([Panel("", "x", "y", [Line("a", "y", style="step")])], {"y": np.arange(3.0)}).axes[0]
    assert step.get_lines()[0].get_drawstyle() == "steps-post"


def test_text_is_never_smaller_than_seven_points():
    study = example()
    for figure in study.figures:
        paper = figure_on_paper(figure, study.arrays)
        paper.canvas.draw()
        sizes = [text.get_fontsize() for text in paper.findobj(lambda artist: hasattr(artist, "get_fontsize"))]
        assert min(sizes) >= 7


def test_a_peak_of_a_long_series_is_drawn():
    y = np.zeros(200_000)
    y[123_457] = 5.0
    line = drawn([Panel("", "x", "y", [Line("a", "y")])], {"y": y}).axes[0].get_lines()[0]
    assert len(line.get_ydata()) <= 3000
    assert 5.0 in line.get_ydata()
    assert line.get_xdata()[np.argmax(line.get_ydata())] == 123_457


ODD = {
    "nothing": np.zeros(0), "one point": np.ones(1), "all NaN": np.full(9, np.nan), "all infinite": np.full(9, np.inf),
    "constant": np.zeros(9), "tiny": np.full(9, 1e-300), "huge": 10.0 ** np.arange(0, 306, 34),
    "integers": np.arange(9), "booleans": np.array([True, False]),
}  # fmt: skip


@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize("name", ODD)
def test_odd_data_draw_without_a_warning(tmp_path, name, log):
    figure = Figure("f", "t", "", [Panel("", "", "", [Line("a", "y")], log_x=log, log_y=log, reference=1.0)])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert draw(figure, {"y": ODD[name]}, tmp_path, "f", ["png"])[0].stat().st_size > 1000


def test_names_are_neither_formulas_nor_missing_letters(tmp_path):
    name = r"costs $5 or $\frac{ 会社 ☃"
    figure = Figure("f", name, name, [Panel(name, name, name, [Line(name, "y")])])
    assert len(draw(figure, {"y": np.ones(3)}, tmp_path, "f")) == 2
    study = hostile()
    assert len(draw(study.figures[0], study.arrays, tmp_path, "g")) == 2


def test_no_global_state_is_touched(tmp_path):
    import matplotlib

    before, backend = dict(matplotlib.rcParams), get_backend()
    study = example()
    draw(study.figures[2], study.arrays, tmp_path, "f", ["png"])
    assert dict(matplotlib.rcParams) == before
    assert get_backend() == backend
    assert "matplotlib.pyplot" not in sys.modules or not sys.modules["matplotlib.pyplot"].get_fignums()


def test_empty_places_of_the_last_row_are_left_empty():
    study = many_panels()
    panels = study.figures[0].panels
    paper = drawn(panels, study.arrays, 2)
    assert [ax.get_visible() for ax in paper.axes] == [True, True, True, False]
    assert paper.get_figwidth() == pytest.approx(2 * COLUMN_WIDTH)


def test_colours_are_those_of_the_page():
    study = example()
    paper = figure_on_paper(study.figures[0], study.arrays)
    shown = {line.get_label(): to_hex(line.get_color()).upper() for ax in paper.axes for line in ax.get_lines()}
    assert shown == {label: look.colour.upper() for label, look in looks(study.figures[0]).items()}


def test_without_matplotlib_the_remedy_is_its_pip_line(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    study = example()
    with pytest.raises(InvalidInput) as caught:
        draw(study.figures[0], study.arrays, tmp_path, "f")
    assert str(caught.value) == "figures: got no package matplotlib. Install it: pip install 'nashcast[report]'."
    assert not list(tmp_path.iterdir())
