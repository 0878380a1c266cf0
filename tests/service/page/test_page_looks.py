"""How the page looks and is used: keyboard, contrast, widths, themes, nothing that jumps, nothing from elsewhere."""

import os
import re
import time
import tomllib
from pathlib import Path

import numpy as np
import pytest

from nashcast.service.page.pages import pages
from support.browsing import overflow
from support.service.asking import ask
from support.service.paging import at_step, live, opened, staged, text_of, until
from support.service.served import series

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
# Where to leave screenshots, if anybody wants to look at them: the README's is docs/images/service.png.
PICTURES = os.environ.get("NASHCAST_PICTURES")
STYLE = (ROOT / "src" / "nashcast" / "service" / "page" / "style.css").read_text()


def test_everything_is_reached_and_read_from_the_keyboard(browser, tmp_path):
    with staged(tmp_path) as served, served.client() as client:
        client.observe_many([(v, v) for v in series(60)], first_step=0)
        with opened(browser, served.stream_page) as page:
            live(page)
            at_step(page, 60)
            reached = []
            for _ in range(40):
                page.keyboard.press("Tab")
                name = "document.activeElement.getAttribute('aria-label') ?? document.activeElement.textContent.trim()"
                reached.append(page.evaluate(f"document.activeElement.id || ({name})"))
                if page.evaluate("document.activeElement === document.body"):
                    break  # once round
                seen = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
                own = page.evaluate("document.activeElement.type === 'radio'")  # its label shows it
                assert own or seen != "none", reached[-1]
                if reached[-1].startswith("Target, forecast"):
                    page.keyboard.press("End")
                    assert "60" in page.locator("#series .note").inner_text()
                    page.keyboard.press("ArrowLeft")
                    note = page.locator("#series .note").inner_text().split()
                    assert note[:2] == ["step", "59"]
                    page.keyboard.press("Escape")
                    assert not page.locator("#series .note").is_visible()
            for name in ("Skip to the forecast", "theme", "tab-overview", "target", "forecast", "vendor"):
                assert name in reached, name
            assert [name for name in reached if name.endswith("Arrow keys read values.")] != []
            page.locator("#tab-overview").press("ArrowLeft")
            assert page.evaluate("document.activeElement.id") == "tab-settings"
            assert page.locator("#settings").is_visible()
            assert not page.locator("#overview").is_visible()
            page.keyboard.press("Home")
            page.get_by_label("500").press("ArrowRight")
            until(page, "document.querySelector('[name=range]:checked').value", "2000")
            key = page.locator("#weights .keys button").first
            key.press("Enter")
            assert key.get_attribute("aria-pressed") == "false"
            assert page.locator("#weights .lines path").count() == 4
            assert page.locator("#line").get_attribute("aria-live") == "polite"
            unnamed = """[...document.querySelectorAll('input, select, button, svg[tabindex]')].filter(each =>
                each.offsetParent && !each.labels?.length && !each.ariaLabel && !each.textContent.trim()).length"""
            assert page.evaluate(unnamed) == 0


def colours(head: str) -> dict[str, str]:
    start = STYLE.index(head)
    return dict(re.findall(r"--(\w+): (#[0-9a-f]{6})", STYLE[start : STYLE.index("}", start)]))


def contrast(one: str, other: str) -> float:
    def light(colour: str) -> float:
        parts = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
        parts = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
        return float(parts @ [0.2126, 0.7152, 0.0722]) + 0.05

    pair = sorted((light(one), light(other)))
    return pair[1] / pair[0]


LIGHT, DARK, SYSTEM = ":root {", ':root[data-theme="dark"] {', ':root:not([data-theme="light"]) {'


@pytest.mark.parametrize("theme", [LIGHT, DARK])
def test_texts_have_contrast_aa_and_lines_three_to_one(theme):
    found = colours(theme)
    assert colours(DARK) == colours(SYSTEM)
    for text in ("ink", "quiet", "accent", "good", "warn", "bad"):
        for ground in ("paper", "panel"):
            assert contrast(found[text], found[ground]) >= 4.5, (text, ground)
    assert contrast(found["panel"], found["accent"]) >= 4.5
    for line in [f"c{i}" for i in range(6)] + ["focus"]:
        assert contrast(found[line], found["panel"]) >= 3.0, line


REMEMBERING = """
name = "{name}"
seed = 7
[serve]
x_dim = 1
y_dim = 1
[paper]
mixing = "boa"
lookback = 2
memory = true
[[agents]]
encoder = "persistence"
[[agents]]
encoder = "linear"
lags = 6
forgetting = 0.99
[[agents]]
encoder = "random_features"
features = 20
noise = 0.0
forgetting = 0.99
[[agents]]
encoder = "echo_state"
features = 20
noise = 0.0
forgetting = 0.99
[[agents]]
name = "{vendor}"
encoder = "forecaster"
function = "vendor:ahead"
"""


@pytest.fixture(scope="module")
def long_running(tmp_path_factory):
    """A service with a stream worth a picture: a tide that drifts, and a vendor that was away for a while."""
    folder, rng = tmp_path_factory.mktemp("picture"), np.random.default_rng(11)
    t = np.arange(760)
    level = np.sin(t / 14) + 0.35 * np.sin(t / 4.7) + 0.5 * (t > 520) + np.cumsum(rng.normal(size=760)) / 60
    values = np.round(level + 0.03 * rng.normal(size=760), 4)
    with staged(folder, name="tide at the harbour", agents=REMEMBERING) as served, served.client() as client:
        for start in range(0, 760, 20):
            broken = folder / "broken"
            broken.touch() if 600 <= start < 660 else broken.unlink(missing_ok=True)
            client.observe_many([(v, v) for v in values[start : start + 20]], first_step=start)
        yield served


GROUND = "getComputedStyle(document.body).backgroundColor"
GROUNDS = {"light": "rgb(245, 246, 247)", "dark": "rgb(15, 18, 21)"}


@pytest.mark.parametrize("theme", GROUNDS)
@pytest.mark.parametrize("width", [390, 1024, 1280, 1920])
def test_it_fits_every_width_in_both_themes(browser, long_running, width, theme):
    with opened(browser, long_running.stream_page, width=width, color_scheme=theme) as page:
        live(page)
        at_step(page, 760)
        until(page, text_of("games") + " !== '–'", True)
        assert overflow(page) <= 0
        cut = """[...document.querySelectorAll('.tile dt, .tile .quiet, td, th, h1, h2, button, #shown')]
            .filter(one => one.offsetParent && one.scrollWidth > one.clientWidth + 1).map(one => one.textContent)"""
        assert page.evaluate(cut) == []
        assert page.evaluate(GROUND) == GROUNDS[theme]
        if PICTURES is not None:
            page.screenshot(path=str(Path(PICTURES) / f"service-{width}-{theme}.png"), full_page=True)


@pytest.mark.skipif(PICTURES is None, reason="a picture is made when NASHCAST_PICTURES names a folder for it")
def test_the_picture_of_the_readme(browser, long_running):
    with opened(browser, long_running.stream_page, width=1280) as page:
        live(page)
        at_step(page, 760)
        until(page, text_of("games") + " !== '–'", True)
        page.screenshot(path=str(Path(PICTURES) / "service.png"), full_page=True)


def test_the_theme_is_the_systems_until_another_is_chosen(browser, long_running):
    with opened(browser, long_running.stream_page, color_scheme="dark") as page:
        button = page.locator("#theme")
        assert page.evaluate(GROUND) == GROUNDS["dark"]
        button.click()
        assert (button.inner_text(), page.evaluate(GROUND)) == ("Theme: light", GROUNDS["light"])
        page.reload()
        assert (button.inner_text(), page.evaluate(GROUND)) == ("Theme: light", GROUNDS["light"])
        button.click()
        page.emulate_media(color_scheme="light")
        assert page.evaluate(GROUND) == GROUNDS["dark"]
        button.click()
        assert (button.inner_text(), page.evaluate(GROUND)) == ("Theme: system", GROUNDS["light"])


WATCH = """
    window.jumps = 0;
    new PerformanceObserver(list => list.getEntries().forEach(each => { window.jumps += each.value }))
        .observe({ type: 'layout-shift' })
"""


def test_nothing_jumps_while_numbers_come_in(browser, tmp_path):
    values = series(200)
    with staged(tmp_path) as served, served.client() as client:
        client.observe_many([(v, v) for v in values[:100]], first_step=0)
        with opened(browser, served.stream_page, width=390) as page:
            live(page)
            at_step(page, 100)
            time.sleep(1.0)
            page.evaluate(WATCH)
            for step in range(100, 200):
                client.observe(values[step], values[step], step=step)
            at_step(page, 200)
            time.sleep(1.0)
            assert page.evaluate("window.jumps") < 0.005


def test_the_page_is_open_to_all_and_says_nothing_of_the_stream(served):
    paths = [route.path.replace("{stream}", "federation") for route in pages()]
    assert {"/", "/streams/federation"} < set(paths)
    for path in paths:
        status, headers, content = ask(served, "GET", path, token=None)
        assert status == 200
        policy = headers["content-security-policy"]
        assert policy.startswith("default-src 'self'; ")
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert ask(served, "HEAD", path, token=None)[0] == 200
        assert not re.search(rb"https?://(?!www\.w3\.org/2000/svg)", content), path
    for path, script in (("/", "fleet.js"), ("/streams/federation", "stream.js")):
        page = ask(served, "GET", path, token=None)[2].decode()
        assert not re.search(r"<script(?![^>]* src=)|<style| style=| on\w+=", page)
        named = re.findall(r'(?:src|href)="(?:\.\./)?(page/[^"]+)"', page)
        assert sorted(named) == sorted(["page/icon.svg", f"page/{script}", "page/style.css", "page/theme.js"])
        assert {f"/{name}" for name in named} < set(paths)
    assert ask(served, "GET", "/page/none.js", token=None)[0] == 401
    assert ask(served, "POST", "/", b"{}")[0] == 405


def test_every_file_of_the_page_is_in_the_wheel():
    packed = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["package-data"]["nashcast"]
    package = ROOT / "src" / "nashcast"
    there = {path for pattern in packed for path in package.glob(pattern)}
    page = {path for path in (package / "service" / "page").rglob("*.*") if path.suffix != ".pyc"}
    assert page <= there
