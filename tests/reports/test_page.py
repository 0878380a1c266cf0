"""The page in a real browser without a network: it draws, sorts, fits, follows the scheme, and lets no text run."""

import base64
import json
import re
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from nashcast import InvalidInput
from nashcast.records.study import Column, Figure, Line, Panel, Table, write
from nashcast.reports.line_styles import looks
from nashcast.reports.page.page_plots import LETTERS, plots
from nashcast.reports.page.write import html_page, write_page
from support.browsing import launched, overflow
from support.studies import EVIL, TABLE, example, hostile, many_panels

pytestmark = pytest.mark.slow
WIDE, PHONE = {"width": 1280, "height": 800}, {"width": 390, "height": 844}
BUTTONS = {"Download plot as a PNG", "Zoom", "Pan", "Zoom in", "Zoom out", "Reset axes"}


@pytest.fixture(scope="module")
def browser():
    with launched() as browser:
        yield browser


@pytest.fixture
def visit(browser, tmp_path):
    """Open a study's page; at the end nothing may have been reported, asked of the network, or run."""
    contexts, troubles, requests = [], [], []

    def open_page(study, query="", **options):
        path = tmp_path / f"{len(contexts)}.html"
        path.write_text(html_page(study), encoding="utf-8")
        settings = {"viewport": WIDE, "offline": True, "service_workers": "block", **options}
        context = browser.new_context(**settings)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(20_000)
        page.on("console", lambda message: message.type in ("error", "warning") and troubles.append(message.text))
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on("request", lambda request: requests.append(request.url))
        page.on("requestfailed", lambda request: troubles.append(f"failed: {request.url}"))
        page.goto(path.as_uri() + query)
        return page

    yield open_page
    for context in contexts:
        for page in context.pages:
            assert page.evaluate("window.hacked") is None
        context.close()
    assert troubles == []
    assert [url for url in requests if not re.match(r"file:///.*/\d+\.html(\?all)?$|data:", url)] == []


def drawn(page) -> int:
    return page.locator(".plot[data-drawn]").count()


def column(page, number: int) -> list[str]:
    return page.locator(f"#tables tbody td:nth-child({number})").all_inner_texts()


def test_every_part_is_there_and_every_figure_is_drawn_as_on_paper(visit):
    study = example()
    page = visit(study)
    assert page.title() == page.locator("h1").inner_text() == study.title
    assert "Made 2025-11-15 20:14 UTC with nashcast 0.1 in 12.5 s" in page.locator("header").inner_text()
    assert page.locator("header li").all_inner_texts()[-2:] == list(study.notes)
    assert column(page, 3) == ["4.49e-5", "diverges", "4.58e-5", "7.90e-3"]
    marks = page.locator("dl.marks").inner_text()
    for words in ("better than persistence", "no value", "not finite, or a million and more"):
        assert words in marks
    repeat = page.locator("#repeat").inner_text()
    for words in (study.command, "game.lookback", "1, 2", "numpy"):
        assert words in repeat
    for figure in study.figures:
        box = page.locator(f"#figure-{figure.name}")
        box.scroll_into_view_if_needed()
        box.locator(".main-svg").first.wait_for(state="attached")
        shown = box.evaluate("box => box.querySelector('.canvas').data.map(t => [t.name, t.line.color, t.line.dash])")
        style = looks(figure, study.figures)
        wanted = {name: [look.colour.replace("#000000", "#1b1f23"), look.dash] for name, look in style.items()}
        assert {name: rest for name, *rest in shown} == wanted
        assert box.locator(".scatterlayer .trace").count() == sum(len(panel.lines) for panel in figure.panels)
        assert box.locator("figcaption").inner_text() == figure.caption
    assert drawn(page) == 3
    keys = page.locator("#figure-forecasts .keys button").all_inner_texts()
    assert keys == ["with game", "target", "without game (diverges)"]
    canvas = page.locator("#figure-lookback .canvas")
    np.testing.assert_allclose(canvas.evaluate("it => Array.from(it.data[0].y)"), study.arrays["mse"], rtol=1e-6)
    assert canvas.evaluate("it => [it.layout.xaxis.type, it.layout.yaxis.type]") == ["log", "log"]
    assert page.locator("#figure-ratios .canvas").evaluate("it => it.layout.shapes[0].y0") == 1


def test_a_heading_sorts_its_column_both_ways_and_what_is_missing_stays_last(visit):
    page = visit(example(figures=[]))
    error, agents = page.get_by_role("button", name="MSE"), page.get_by_role("button", name="agents")
    error.click()
    assert column(page, 3) == ["4.49e-5", "4.58e-5", "7.90e-3", "diverges"]
    assert column(page, 1)[-1] == "without game"
    error.click()
    assert column(page, 3) == ["diverges", "7.90e-3", "4.58e-5", "4.49e-5"]
    agents.focus()
    page.keyboard.press("Enter")
    assert column(page, 2) == ["5", "5", "20", "–"]
    page.keyboard.press("Space")
    assert column(page, 2) == ["20", "5", "5", "–"]
    order = [head.get_attribute("aria-sort") for head in page.locator("#tables th").all()]
    assert order == ["none", "descending", "none", "none", "none", "none"]
    page.get_by_role("button", name="method").click()
    assert column(page, 1) == ["anchored, no game", "persistence", "with game", "without game"]


def test_no_text_is_markup(visit):
    study = hostile()
    page = visit(study, "?all")
    assert drawn(page) == 1
    assert page.locator("h1").inner_text() == EVIL
    assert page.locator("#tables tbody td").all_inner_texts() == [EVIL, EVIL]
    assert page.locator("#command").inner_text() == EVIL
    assert page.locator(".keys button").first.inner_text() == EVIL
    # In the drawing, too, it is text.
    assert page.locator(".annotation-text").first.text_content().startswith("</script><script>window.hacked")
    assert page.locator("img, .canvas a[href]").count() == 0
    assert html_page(study).count("<script") == 3


@pytest.mark.parametrize("study", [example(), hostile()], ids=["example", "hostile"])
def test_a_phone_has_no_sideways_scroll_and_one_panel_a_row(visit, study):
    page = visit(study, "?all", viewport=PHONE, has_touch=True, is_mobile=True)
    assert overflow(page) <= 0
    assert len({round(panel.bounding_box()["x"]) for panel in page.locator(".nsewdrag").all()}) == 1
    assert page.locator(".canvas .main-svg").first.bounding_box()["width"] < 390
    # A finger on a figure scrolls the page.
    assert page.locator(".canvas").first.evaluate("it => it.layout.dragmode") is False


def test_figures_follow_the_width_of_the_window(visit):
    page = visit(example(), "?all", viewport=PHONE)
    canvas = page.locator("#figure-forecasts .canvas")
    for width in (1024, 1920):
        page.set_viewport_size({"width": width, "height": 900})
        inner = canvas.evaluate("it => it.clientWidth")
        canvas.locator(f".main-svg[width='{inner}']").first.wait_for(state="attached")
        assert 900 < inner < width
        assert len({round(panel.bounding_box()["y"]) for panel in canvas.locator(".nsewdrag").all()}) == 1
        assert overflow(page) <= 0


def test_the_scheme_of_the_system_is_followed_also_while_open(visit):
    page = visit(example(), "?all", color_scheme="dark")

    def colours():
        return page.evaluate(
            "[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color,"
            " getComputedStyle(document.querySelector('.xtick text')).fill,"
            " document.querySelector('#figure-forecasts .canvas').data.find(t => t.name === 'target').line.color]"
        )

    assert colours() == ["rgb(20, 23, 26)", "rgb(232, 234, 237)", "rgb(232, 234, 237)", "#e8eaed"]
    page.emulate_media(color_scheme="light")
    # The browser tells its pages with the next frame.
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    assert colours() == ["rgb(255, 255, 255)", "rgb(27, 31, 35)", "rgb(27, 31, 35)", "#1b1f23"]


def test_figures_are_drawn_when_they_come_into_view_and_all_for_print(visit):
    page = visit(many_panels())
    assert drawn(page) < 4
    last = page.locator("#figure-figure-5")
    last.scroll_into_view_if_needed()
    last.locator(".main-svg").first.wait_for(state="attached")
    assert drawn(page) < 10
    end = page.locator("#figure-figure-9 .canvas")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert drawn(page) == 10
    assert end.evaluate("it => it.layout.width") == 660
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert end.evaluate("it => it.layout.width") > 1000


def test_lines_hide_and_show_and_everything_is_reached_from_the_keyboard(visit):
    page = visit(example(), "?all")
    key = page.get_by_role("button", name="without game")
    lines = page.locator("#figure-forecasts .scatterlayer .trace")
    assert (lines.count(), key.get_attribute("aria-pressed")) == (5, "true")
    reached = []
    for _ in range(45):
        page.keyboard.press("Tab")
        reached.append(page.evaluate("document.activeElement.textContent.trim()"))
        if reached[-1].startswith("without game"):
            page.keyboard.press("Enter")
            assert (lines.count(), key.get_attribute("aria-pressed")) == (4, "false")
            page.keyboard.press("Enter")
            assert (lines.count(), key.get_attribute("aria-pressed")) == (5, "true")
    for name in ("Skip to the results", "Tables", "MSE", "without game (diverges)", "each step", "Copy"):
        assert name in reached, name
    page.locator("button[data-copies]").click()
    page.get_by_role("button", name="Copied").wait_for()
    # By default plotly offers to send the figure's data to its makers.
    titles = {button.get_attribute("data-title") for button in page.locator(".modebar-btn").all()}
    assert titles == BUTTONS


def test_policy_names_the_scripts_and_forbids_the_rest():
    page = html_page(example())
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', page)[1]
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe-eval" not in policy
    assert "unsafe-inline" not in policy.split("style-src")[0]
    assert not re.search(r"(src|href)=\"(https?:)?//", page[: page.index("<script>")])


def test_thirty_panels_stay_under_six_megabytes():
    assert len(html_page(many_panels()).encode()) <= 6_000_000


def test_data_are_thinned_shared_and_capped_without_losing_extremes():
    rng = np.random.default_rng(2)
    long = {f"{i}": rng.standard_normal(20_000).cumsum() * 1e-3 for i in range(60)}
    time = np.arange(20_000) * 60.0 + 1.7e9
    panels = [Panel(name, "", "", [Line("a", name, "time")]) for name in long]
    capped = plots(example(figures=[Figure("f", "", "", panels, 5)], arrays={**long, "time": time}))
    assert 0.7 * LETTERS < sum(len(text) for _, text in capped["arrays"]) <= LETTERS
    unpacked = [np.frombuffer(base64.b64decode(text), f"<{kind}") for kind, text in capped["arrays"]]
    for panel, y in zip(capped["figures"][0]["panels"], long.values(), strict=True):
        (line,) = panel["lines"]
        shown = unpacked[line["y"]]
        assert 500 < len(shown) <= 2000
        np.testing.assert_allclose([shown.min(), shown.max()], [y.min(), y.max()], rtol=1e-6)
        assert (np.diff(unpacked[line["x"]]) > 0).all()
        assert unpacked[line["x"]][-1] == time[-1]
    once = [Panel("", "", "", [Line("a", "0", "time"), Line("b", "0", "time")])] * 3
    shared = plots(example(figures=[Figure("f", "", "", once)], arrays={**long, "time": time}))
    assert len(shared["arrays"]) == 2


EXACT = {
    "tiny": np.array([1e-60, 2e-60]),
    "huge": np.array([-1e60, 2e60]),
    "whole": np.array([0.0, 65_535.0]),
    "negative": np.array([-1.0, 70_000.0]),
    "fine": np.array([1 / 3, 2 / 3]),
    "nothing": np.zeros(0),
}


@pytest.mark.parametrize("name", EXACT)
def test_numbers_arrive_with_seven_digits(name):
    x = EXACT[name]
    figure = Figure("f", "", "", [Panel("", "", "", [Line("a", "y", "x")])])
    packed = json.loads(json.dumps(plots(example(figures=[figure], arrays={"x": x, "y": 0.5 + 0 * x}))))
    (line,) = packed["figures"][0]["panels"][0]["lines"]
    shown = [np.frombuffer(base64.b64decode(text), f"<{kind}") for kind, text in packed["arrays"]]
    np.testing.assert_allclose(np.arange(len(x)) if line["x"] is None else shown[line["x"]], x, rtol=1e-6)
    np.testing.assert_array_equal(shown[line["y"]], 0.5 + 0 * x)


def test_without_figures_the_page_is_small_and_needs_no_plotly(monkeypatch):
    monkeypatch.setitem(sys.modules, "plotly.offline", None)
    assert len(html_page(example(figures=[]))) < 40_000
    with pytest.raises(InvalidInput) as caught:
        html_page(example())
    assert str(caught.value) == "page: got no package plotly. Install it: pip install 'nashcast[report]'."


def test_a_page_is_written_beside_its_record_or_elsewhere(tmp_path):
    folder = write(tmp_path / "a", example(tables=[TABLE, Table("empty", [Column("a", "a")], [])]))
    assert write_page(folder) == folder / "report.html"
    assert write_page(folder, tmp_path / "b") == tmp_path / "b" / "report.html"
    assert (folder / "report.html").read_bytes() == (tmp_path / "b" / "report.html").read_bytes()
    assert {path.name for path in folder.iterdir()} == {"record.json", "arrays.npz", "report.html"}


def test_plotly_with_other_line_ends_keeps_its_hash(monkeypatch):
    monkeypatch.setitem(sys.modules, "plotly.offline", SimpleNamespace(get_plotlyjs=lambda: "a;\r\nb;\r"))
    assert "<script>a;\nb;\n</script>" in html_page(example())
