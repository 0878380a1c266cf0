"""The page of all streams in a real browser: several hundred rows, sorted, searched, changed in place."""

import os
import time
from pathlib import Path

import pytest

from nashcast import Client
from nashcast.service.http.access.tokens import TokenFile
from support.service.paging import opened, until
from support.service.served import FILE, Served, series

pytestmark = pytest.mark.slow
PICTURES = os.environ.get("NASHCAST_PICTURES")
NAMES = "[...document.querySelectorAll('.fleet tbody th')].map(each => each.textContent)"
COUNT = "document.querySelectorAll('.fleet tbody tr').length"
SMALL = """
[serve]
x_dim = 1
y_dim = 1
[[agents]]
encoder = "trend"
"""


@pytest.fixture(scope="module")
def fleet(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fleet")
    streams = folder / "streams"
    streams.mkdir()
    for i in range(300):
        (streams / f"site-{i:03d}.toml").write_text(f"seed = {i}\n{SMALL}")
    with Served(folder, path=streams) as served, Client(served.url) as client:
        for i in range(0, 300, 5):
            values = series(60, seed=i)
            client.stream(f"site-{i:03d}").send([(v, v) for v in values], first_step=0)
        while any(row["behind"] for row in client.streams()):
            time.sleep(0.1)
        yield served


def test_three_hundred_rows_are_sorted_and_searched(browser, fleet):
    with opened(browser, f"{fleet.url}/", width=1280) as page:
        until(page, COUNT, 300, seconds=5.0)
        assert page.evaluate(NAMES)[:2] == ["site-000", "site-001"]
        page.get_by_role("button", name="Stream").click()
        assert page.evaluate(NAMES)[0] == "site-299"
        page.get_by_role("button", name="Than persistence").click()
        shown = "[...document.querySelectorAll('.fleet tbody tr td:nth-child(5)')].map(each => each.textContent)"
        found = page.evaluate(shown)
        assert found[60:] == ["–"] * 240
        assert page.locator("th[aria-sort=descending]").inner_text().startswith("Than persistence")
        with Client(fleet.url) as client:
            ratios = {row["name"]: row["against_persistence"] for row in client.streams()}
        worst = sorted((ratio, name) for name, ratio in ratios.items() if ratio is not None)[::-1]
        assert len(worst) == 60
        assert page.evaluate(NAMES)[:60] == [name for _, name in worst]
        for words, (ratio, _) in zip(found[:60], worst, strict=True):
            times = ratio**0.5
            way = "worse" if times > 1.005 else "better" if times < 0.995 else "about equal"
            assert words.endswith(way)
            if way != "about equal" and times < 1.99:
                assert words == f"{max(1, round(100 * abs(times - 1)))} % {way}"
        red = "[...document.querySelectorAll('.fleet td[data-good=false]')].map(each => each.textContent)"
        assert page.evaluate(red) == [words for words in found if words.endswith("worse")]
        page.locator("#search").fill("site-12")
        until(page, COUNT, 10)
        assert page.locator("#shown").inner_text() == "10 of 300 streams"
        page.locator("#search").fill("")
        until(page, COUNT, 300)
        page.get_by_role("link", name="site-005").click()
        page.wait_for_selector('html[data-line="live"]')
        until(page, "document.getElementById('forecast').dataset.step", "60")
        page.get_by_role("link", name="All streams").click()
        until(page, COUNT, 300)


def test_rows_follow_what_comes_in(browser, fleet):
    with opened(browser, f"{fleet.url}/", width=1280) as page, Client(fleet.url) as client:
        until(page, COUNT, 300)
        step = client.stream("site-000").status()["step"]
        client.stream("site-000").observe_many([(1.0, 1.0), (2.0, 2.0)])
        until(page, "document.querySelector('.fleet tbody tr td:nth-child(8)').textContent", str(step + 2))


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280, 1920])
def test_it_fits_every_width_in_both_themes(browser, fleet, width, theme):
    with opened(browser, f"{fleet.url}/", width=width, color_scheme=theme) as page:
        until(page, COUNT, 300)
        page.locator("[data-key=error]").click()
        assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0
        if PICTURES is not None:
            page.screenshot(path=str(Path(PICTURES) / f"fleet-{width}-{theme}.png"))


def test_without_a_token_it_asks_for_one(browser, tmp_path):
    (tmp_path / "s").mkdir()
    (tmp_path / "s" / "one.toml").write_text(FILE)
    secret = TokenFile(tmp_path / "journal" / "tokens.json").add("page", ["read"])
    with Served(tmp_path, tokens=True, path=tmp_path / "s") as served:
        with opened(browser, f"{served.url}/", allowed=["401"]) as page:
            page.locator("#token-form").wait_for()
            page.locator("#token").fill(secret)
            page.get_by_role("button", name="Show").click()
            until(page, COUNT, 1)
        with opened(browser, f"{served.url}/#token={secret}") as page:
            until(page, COUNT, 1)
            assert secret not in page.url
