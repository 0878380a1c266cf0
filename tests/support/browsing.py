"""A real browser, for tests of pages."""

import os
import shutil
from contextlib import contextmanager

import pytest


@contextmanager
def launched():
    """Chromium; without it tests are skipped, except in continuous integration, which installs one."""
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if found is None:
        missing = "no Chromium on this machine, which the pages' tests drive. Install it: apt-get install chromium"
        pytest.fail(missing) if os.environ.get("CI") else pytest.skip(missing)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield browser
        browser.close()


def overflow(page) -> int:
    """How many pixels wider than the window the page is."""
    return page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
