"""What a test needs that is not installed with nashcast itself."""

import os

import pytest


def skip_if(missing: str) -> None:
    """Skip and say what is missing, if anything is; continuous integration installs everything, so there it fails."""
    if missing:
        (pytest.fail if os.environ.get("CI") else pytest.skip)(missing)
