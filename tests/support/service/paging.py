"""The page of a real service in a real browser, and what tests look for in it."""

import time
from contextlib import contextmanager
from pathlib import Path

from support.service.served import Served

EVIL = "</script><img src=x onerror=window.hacked=1>"
AGENTS = """
name = "{name}"
seed = 7
[serve]
x_dim = 1
y_dim = 1
snapshot_every = 100
compare = true
[paper]
budget = 0.98
lookback = 2
[[agents]]
encoder = "persistence"
[[agents]]
encoder = "linear"
window = 20
[[agents]]
encoder = "random_features"
features = 6
ridge = 3.0
[[agents]]
encoder = "echo_state"
features = 6
ridge = 3.0
[[agents]]
name = "{vendor}"
encoder = "forecaster"
function = "vendor:ahead"
"""
VENDOR = """
from pathlib import Path

def ahead(x):
    if Path(__file__).with_name("broken").exists():
        raise ValueError("the vendor does not answer")
    return 0.9 * x
"""
SIZES = {390: 844, 1024: 768, 1280: 800, 1920: 1080}
# What the browser reports when a service dies: refused, reset, empty or cut off, by what was under way just then.
BROKEN_LINE = "net::ERR_"


@contextmanager
def opened(browser, url, allowed=(), width=1024, **options):
    """A page; while it was open nothing may have been reported, asked of another host, or run.

    allowed: words of what may have been reported all the same.
    """
    troubles, requests = [], []
    size = {"width": width, "height": SIZES[width]}
    context = browser.new_context(viewport=size, service_workers="block", **options)
    page = context.new_page()
    page.set_default_timeout(20_000)
    page.on("console", lambda message: message.type in ("error", "warning") and troubles.append(message.text))
    page.on("pageerror", lambda error: troubles.append(str(error)))
    page.on("request", lambda request: requests.append(request.url))
    page.goto(url)
    yield page
    assert page.evaluate("window.hacked") is None
    context.close()
    unexpected = [each for each in troubles if not any(words in each for words in allowed)]
    assert unexpected == []
    assert {asked.split("/")[2] for asked in requests} == {url.split("/")[2]}


def staged(folder: Path, *options: str, name="five agents", vendor="vendor", agents=AGENTS, **more) -> Served:
    """A service with an agent that fails for as long as there is a file `broken`."""
    (folder / "vendor.py").write_text(VENDOR)
    return Served(folder, *options, text=agents.format(name=name, vendor=vendor), **more)


def live(page) -> None:
    page.wait_for_selector('html[data-line="live"]')


def until(page, expression: str, wanted, seconds: float = 20.0) -> None:
    """Asked again and again from outside: the page's policy lets nobody inside do so with a text."""
    end = time.monotonic() + seconds
    while (found := page.evaluate(expression)) != wanted:
        assert time.monotonic() < end, f"{expression}: {found!r}, not {wanted!r}"
        time.sleep(0.01)


def text_of(name: str) -> str:
    return f"document.getElementById('{name}').textContent"


def at_step(page, step: int, seconds: float = 20.0) -> None:
    until(page, "document.getElementById('forecast').dataset.step", str(step), seconds)


def states(page) -> list[str]:
    return page.locator("#agents tbody td.state").all_inner_texts()


def agents_are(page, wanted: list[str]) -> None:
    until(page, "[...document.querySelectorAll('#agents td.state')].map(cell => cell.textContent)", wanted)


def shown_are(page, words: str) -> None:
    until(page, f"{text_of('shown')}.startsWith('{words}')", True)


# How many steps the line of forecasts goes through.
STEPS_DRAWN = "document.querySelector('#series .lines path:last-child').getAttribute('d').split(/[ML]/).length - 1"
