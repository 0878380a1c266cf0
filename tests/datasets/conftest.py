"""The recorded datasets, which live outside the project, beside its checkout; and no proxy between us and ourselves."""

import pytest

from support.recorded import recorded_folder


@pytest.fixture
def recorded():
    """The folder with the recorded files."""
    return recorded_folder()


@pytest.fixture(autouse=True)
def nothing_from_outside(monkeypatch, tmp_path):
    """The user's own data folder and proxies must not reach the tests, nor the tests them."""
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.delenv("NASHCAST_DATA", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home"))
