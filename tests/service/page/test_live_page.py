"""The page in a real browser: it follows the stream, loses and finds the line, and keeps its token to itself."""

import re
import time

import numpy as np
import pytest

from nashcast.service.http.access.tokens import TokenFile
from support.service.paging import (
    BROKEN_LINE,
    EVIL,
    STEPS_DRAWN,
    agents_are,
    at_step,
    live,
    opened,
    shown_are,
    staged,
    states,
    text_of,
    until,
)
from support.service.served import FILE, Served, series

pytestmark = pytest.mark.slow


def test_it_shows_each_forecast_within_a_second_and_an_agent_that_fails_as_gone_and_back(browser, tmp_path):
    values = series(540)
    with staged(tmp_path) as served, served.client() as client, opened(browser, served.stream_page) as page:
        live(page)
        assert page.locator("#forecast-bounds").inner_text() == "no observation yet"
        for step in range(500):
            answer = client.observe(values[step], values[step], step=step)
        at_step(page, 500, seconds=1.0)
        assert float(page.locator("#forecast").get_attribute("data-value")) == answer.forecast[0]
        until(page, text_of("games"), "497")
        cells = page.locator("#agents td:nth-child(4)[data-value]")
        names = page.locator("#agents tbody th").all_inner_texts()
        shown = {n: float(cell.get_attribute("data-value")) for n, cell in zip(names, cells.all(), strict=True)}
        assert shown == pytest.approx(answer.weights, rel=1e-12)
        assert sum(shown.values()) == pytest.approx(0.98)
        assert page.locator("#weight-sum").inner_text() == "0.980"
        scores = client.status()["scores"]
        until(page, text_of("rmse"), f"{scores['recent']['mse'] ** 0.5:.4f}")
        until(page, text_of("rmse-persistence"), f"{scores['recent']['persistence_mse'] ** 0.5:.4f}")
        until(page, text_of("no-game-total"), f"{scores['total']['against_no_game']:.3f}")
        assert states(page) == ["in"] * 5
        assert page.locator("#shown").inner_text().startswith("steps 1 to 500;")

        (tmp_path / "broken").touch()
        for step in range(500, 510):
            answer = client.observe(values[step], values[step], step=step)
        agents_are(page, ["in"] * 4 + ["gone"])
        at_step(page, 510)
        assert np.isfinite(answer.forecast).all()
        assert float(page.locator("#forecast").get_attribute("data-value")) == answer.forecast[0]
        assert cells.last.inner_text() == "0.000"
        assert page.locator("#weight-sum").inner_text() == "0.980"
        out = page.locator("#log li").first
        assert "agent gone" in out.inner_text()
        assert "the vendor does not answer" in out.inner_text()
        assert " s ago" in page.locator("#agents tbody tr").last.inner_text()

        (tmp_path / "broken").unlink()
        for step in range(510, 520):
            client.observe(values[step], values[step], step=step)
        agents_are(page, ["in"] * 5)
        assert "agent back" in page.locator("#log li").first.inner_text()
        for kind in ("series", "weights", "ratios"):
            assert all(len(path.get_attribute("d")) > 1000 for path in page.locator(f"#{kind} .lines path").all())


def test_a_line_that_breaks_is_taken_up_again_with_all_that_was_missed(browser, tmp_path):
    values, served = series(900), staged(tmp_path)
    port = str(served.port)
    with opened(browser, served.stream_page, allowed=[BROKEN_LINE]) as page:
        live(page)
        with served.client() as client:
            client.observe_many([(v, v) for v in values[:100]], first_step=0)
        at_step(page, 100)
        served.kill()
        page.wait_for_selector('html[data-line="reconnecting"]')
        assert page.locator("#line").inner_text() == "reconnecting"
        with staged(tmp_path, "--port", port) as served, served.client() as client:
            client.observe_many([(v, v) for v in values[100:200]], first_step=100)
            live(page)
            at_step(page, 200)
            # A message holds at most 200 steps: the rest is asked for.
            client.observe_many([(v, v) for v in values[200:850]], first_step=200)
            at_step(page, 850)
            shown_are(page, "steps 351 to 850;")
            until(page, STEPS_DRAWN, 500)
            client.save_point("here")
            client.observe_many([(v, v) for v in values[850:870]], first_step=850)
            at_step(page, 870)
            client.restore("here")
            at_step(page, 850)
            served.stop()
            until(page, text_of("line"), "ended: the service stops")


def test_ranges_and_targets(browser, tmp_path):
    values = np.column_stack([series(2600), 100 + series(2600, seed=2)])
    text = FILE.replace("dim = 1", "dim = 2").replace("snapshot_every = 40\n", "")
    with Served(tmp_path, text=text) as served, served.client() as client:
        for start in range(0, 2600, 650):
            client.observe_many([(v, v) for v in values[start : start + 650]], first_step=start)
        with opened(browser, served.stream_page) as page:
            live(page)
            at_step(page, 2600)
            for label, words, count in (
                ("100", "steps 2501 to 2600; errors over 20", 100),
                ("2000", "steps 603 to 2600, one in 3; errors over 402", 668),
                ("all", "steps 0 to 2600, one in 4;", 651),
            ):
                page.locator(f"[name=range][value='{label}']").check()
                shown_are(page, words)
                assert abs(page.evaluate(STEPS_DRAWN) - count) <= 1, label
            client.observe_many([(v, v) for v in values[:7]], first_step=2600)
            at_step(page, 2607)
            assert page.locator("#shown").inner_text().startswith("steps 0 to 2607")
            page.get_by_label("from … to").check()
            page.get_by_label("First step").fill("1000")
            page.get_by_label("Last step").fill("1199")
            page.keyboard.press("Enter")
            shown_are(page, "steps 1000 to 1199;")
            client.observe(values[0], values[0])
            at_step(page, 2608)  # the tiles follow, the charts stay
            assert page.locator("#shown").inner_text().startswith("steps 1000 to 1199;")
            first = page.locator("#forecast").inner_text()
            page.locator("#target").select_option("2")
            until(page, f"{text_of('forecast')} !== '{first}'", True)
            assert 90 < float(page.locator("#forecast").get_attribute("data-value")) < 130
            axis = page.locator("#series .grid text").first.text_content()
            assert 80 < float(axis) < 140
            page.locator("#series svg[role=img]").hover()
            note = page.locator("#series .note").inner_text()
            assert re.search(r"step\s+1,\d{3}", note)
            assert "target" in note


def test_a_token_is_asked_for_and_can_be_forgotten(browser, tmp_path):
    tokens = TokenFile(tmp_path / "journal" / "tokens.json")
    reader, writer = tokens.add("reader", ["read"]), tokens.add("writer", ["write"])
    with staged(tmp_path, tokens=True) as served, opened(browser, served.stream_page, allowed=["401", "403"]) as page:
        form, field = page.locator("#token-form"), page.get_by_label("Token with scope read")
        form.wait_for()
        assert page.locator("#line").inner_text() == "ended: a token is needed"
        assert not page.locator("main").is_visible()
        for wrong, words in (("nashcast_wrong", "the token is unknown"), (writer, "this needs the scope read")):
            field.fill(wrong)
            page.keyboard.press("Enter")
            until(page, f"{text_of('token-trouble')}.startsWith('{words}')", True)
        field.fill(reader)
        page.get_by_role("button", name="Show").click()
        live(page)
        assert not form.is_visible()
        page.get_by_role("button", name="Forget token").click()
        form.wait_for()
        assert page.evaluate("sessionStorage.length") == 0


def test_a_token_handed_over_in_the_address_stays_in_the_tab_and_out_of_sight(browser, tmp_path):
    tokens = TokenFile(tmp_path / "journal" / "tokens.json")
    secret = tokens.add("reader", ["read"])
    served = staged(tmp_path, tokens=True)
    with opened(browser, f"{served.stream_page}#token={secret}", allowed=["401", BROKEN_LINE]) as page:
        live(page)
        assert page.url == served.stream_page
        kept = "[JSON.stringify(localStorage), document.cookie, sessionStorage.getItem('nashcast-token')]"
        assert page.evaluate(kept) == ["{}", "", secret]
        page.reload()
        live(page)
        tokens.revoke("reader")
        time.sleep(1.0)
        served.kill()
        with staged(tmp_path, "--port", str(served.port), tokens=True):
            until(page, f"{text_of('line')}.startsWith('ended: the token is revoked')", True)
            page.locator("#token-form").wait_for()
    for content in (served.log().encode(), (served.journal / "journal.db").read_bytes()):
        assert secret.encode() not in content


def test_names_are_text(browser, tmp_path):
    with staged(tmp_path, name=EVIL, vendor=EVIL) as served, served.client() as client:
        (tmp_path / "broken").touch()
        client.observe_many([(v, v) for v in series(30)], first_step=0)
        with opened(browser, served.stream_page) as page:
            live(page)
            at_step(page, 30)
            until(page, text_of("name"), f"federation: {EVIL}")
            assert page.locator("#agents tbody th").last.inner_text() == EVIL
            assert page.locator("#weights .keys button").last.inner_text() == EVIL
            page.locator("#weights svg[role=img]").hover()
            assert EVIL in page.locator("#weights .note").inner_text()
            assert page.locator("img").count() == 0
