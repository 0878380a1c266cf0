"""What a stream's page tells its reader: the steps ahead with bounds, dates, whom to trust, what is worse, in words."""

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from support.service.paging import at_step, live, opened, text_of, until
from support.service.served import Served

pytestmark = pytest.mark.slow
AHEAD = """
horizon = 6
[serve]
x_dim = 1
y_dim = 1
units = "MW"
time_step = 3600
[[agents]]
encoder = "seasonal"
[[agents]]
encoder = "trend"
"""
BEGIN = datetime(2026, 3, 1, tzinfo=UTC)
PATH = "document.querySelector('#series .lines path').getAttribute('d')"


@pytest.fixture(scope="module")
def hourly(tmp_path_factory):
    """Two weeks of a daily cycle by the hour."""
    t = np.arange(336)
    values = np.round(100 + 20 * np.sin(2 * np.pi * t / 24) + np.random.default_rng(3).normal(size=336), 3)
    with Served(tmp_path_factory.mktemp("hourly"), text=AHEAD) as served, served.client() as client:
        client.observe_many(
            [(v, v) for v in values], first_step=0, times=[BEGIN + timedelta(hours=int(h)) for h in t]
        )  # fmt: skip
        yield served


def open_page(browser, served, **options):
    return opened(browser, served.stream_page, timezone_id="UTC", **options)


def test_the_path_is_drawn_with_its_bounds_and_read_with_its_dates(browser, hourly):
    with open_page(browser, hourly, width=1280) as page, hourly.client() as client:
        live(page)
        at_step(page, 336)
        page.locator("[name=range][value='100']").check()
        until(page, f"{text_of('shown')}.startsWith('steps 237 to 336')", True)
        path = client.forecast().path
        keys = page.locator("#series .keys button").all_inner_texts()
        assert keys == ["6 steps ahead", "target", "forecast"]
        assert page.evaluate(PATH).count("L") == 5
        assert page.locator("#series path.band").count() == 4  # two coverages, behind and ahead
        assert page.locator("#series .grid line.rule").count() == 1
        chart = page.locator("#series svg[role=img]")
        chart.focus()
        page.keyboard.press("End")
        note = page.locator("#series .note").inner_text()
        assert note.split("\n")[:4] == ["step", "341", "time", "15 Mar 2026, 05:00"]
        said = path[-1].forecast[0]
        assert f"{said:.2f}" in note
        assert f"{path[-1].bounds[-1].lower[0]:.2f} to {path[-1].bounds[-1].upper[0]:.2f}" in note
        labels = page.locator("#series .grid text").all_text_contents()
        dates = [text for text in labels if "Mar" in text]
        assert len(dates) >= 3
        assert page.locator("#forecast-step").inner_text() == "for 15 Mar 2026, 00:00"
        assert page.locator("#forecast").inner_text().endswith(" MW")
        # As observations come in, the path moves on.
        client.observe(101.0, 101.0, step=336, time=BEGIN + timedelta(hours=336))
        at_step(page, 337)
        chart.focus()
        page.keyboard.press("End")
        assert page.locator("#series .note").inner_text().split("\n")[3] == "15 Mar 2026, 06:00"


def test_whom_to_trust_is_said_in_words_by_rank(browser, hourly):
    with open_page(browser, hourly) as page, hourly.client() as client:
        live(page)
        until(page, f"{text_of('trusted')} !== '–'", True)
        agents = client.agents()
        worth = [agent["loss_without"] for agent in agents]
        assert sorted(agent["rank"] for agent in agents) == list(range(1, len(agents) + 1))
        assert [agent["rank"] for agent in agents] == [1 + sum(other > mine for other in worth) for mine in worth]
        ranked = sorted(agents, key=lambda agent: agent["rank"])
        assert page.locator("#agents tbody th").all_inner_texts() == [agent["name"] for agent in ranked]
        assert page.locator("#trusted").inner_text() == ranked[0]["name"]
        assert client.status()["coverage"][-1]["nominal"] == 0.9
        assert page.locator("#coverage").inner_text().endswith(" of 90 %")
        assert page.locator("#coverage-words").inner_text().endswith(" of 50 %")


def test_games_have_a_tab_of_their_own(browser, hourly):
    with open_page(browser, hourly) as page:
        live(page)
        assert not page.locator("#game").is_visible()
        page.get_by_role("tab", name="Games and certificates").click()
        assert page.url.endswith("#game")
        assert not page.locator("#overview").is_visible()
        until(page, f"{text_of('joint-in')} !== '–'", True)
        assert "seasonal" in page.locator("#game .of-joint").inner_text()
        assert not page.locator("#game .of-lookback").is_visible()
        page.reload()
        live(page)
        assert page.locator("#game").is_visible()


WORDS = "import('../page/words.js').then(words => words.{}({}))"


@pytest.mark.parametrize(
    ("call", "given", "said"),
    [
        ("against", "0.86", "14 % better"),
        ("against", "0.9951", "about equal"),
        ("against", "1.004", "about equal"),
        ("against", "1.08", "8 % worse"),
        ("against", "2.57", "2.6 × worse"),
        ("against", "null", "–"),
        ("good", "1.08", "false"),
        ("good", "0.9", "true"),
        ("covered", "{nominal: 0.9, achieved: 0.874}", "87 of 90 %"),
        ("covered", "{nominal: 0.99, achieved: 0.981}", "98.1 of 99 %"),
        ("covered", "{nominal: 0.9, achieved: null}", "– of 90 %"),
        # Squared error 21 % larger without it: root mean squared error 10 %.
        ("trust", "{state: 'in', loss_without: 0.21}", ["relied on", "error 10 % larger without it"]),
        ("trust", "{state: 'in', loss_without: 0.03}", ["helps", "error 1 % larger without it"]),
        ("trust", "{state: 'in', loss_without: -0.001}", ["makes no difference", ""]),
        ("trust", "{state: 'in', loss_without: -0.19}", ["does harm", "error 10 % smaller without it"]),
        ("trust", "{state: 'in', loss_without: null}", ["not known yet", ""]),
        ("trust", "{state: 'gone', loss_without: 0.2}", ["not there", ""]),
    ],
)
def test_the_words(words_page, call, given, said):
    assert words_page.evaluate(WORDS.format(call, given)) == said


@pytest.fixture(scope="module")
def words_page(browser, hourly):
    with open_page(browser, hourly) as page:
        live(page)
        yield page


TICKS = """([start, seconds, steps]) => import('../page/times.js').then(times => {
    const pairs = Array.from({ length: steps }, (_, i) => [i, new Date(1000 * (start + i * seconds)).toISOString()]);
    const line = times.timeline(pairs);
    return times.dateTicks(line, 0, steps - 1, 8).map(tick => [tick.at, tick.text, times.timeAt(line, tick.at) / 1000]);
})"""


@pytest.mark.parametrize(
    ("seconds", "steps", "apart", "texts"),
    [
        (1, 100, 10, ["1 Mar", "00:00:10"]),
        (60, 100, 600, ["1 Mar", "00:10"]),
        (3600, 100, 43_200, ["1 Mar", "12:00", "2 Mar"]),
        (86_400, 100, 864_000, ["1 Mar", "11 Mar"]),
    ],
)
def test_dates_fall_on_round_times_and_in_their_places(words_page, seconds, steps, apart, texts):
    begin = BEGIN.timestamp()
    found = words_page.evaluate(TICKS, [begin, seconds, steps])
    assert [text for _, text, _ in found][: len(texts)] == texts
    at, times = np.array([tick[0] for tick in found]), np.array([tick[2] for tick in found])
    np.testing.assert_allclose(times, begin + apart * np.arange(len(found)), atol=1e-3)
    np.testing.assert_allclose(at, (times - begin) / seconds, atol=1e-6)
    assert at[-1] <= steps - 1 < at[-1] + apart / seconds


def test_years_of_days_have_months_and_years(words_page):
    found = words_page.evaluate(TICKS, [BEGIN.timestamp(), 86_400, 1000])
    assert [text for _, text, _ in found][:2] == ["Jul 2026", "Jan 2027"]
    found = words_page.evaluate(TICKS, [BEGIN.timestamp(), 86_400, 4000])
    assert [text for _, text, _ in found][:2] == ["2028", "2030"]
