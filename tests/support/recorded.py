"""The recorded datasets, kept outside the project, beside its checkout."""

import os
from pathlib import Path

import pytest

_FOLDER = Path(__file__).parents[3] / "shared" / "data"
_FILES = {"boc": "bank_of_canada_exchange_rates.csv", "ett": "ETTh1.csv", "air": "AirQualityUCI.csv"}


def recorded_folder() -> Path:
    """The folder with the recorded files, or the test is skipped, saying why."""
    for file in _FILES.values():
        if not (_FOLDER / file).is_file():
            pytest.skip(f"the recorded data are not here: no {file} in a folder shared/data beside the checkout")
    return _FOLDER


def recorded_data(dataset: str) -> None:
    """Let this process find the file a dataset needs, if it needs one."""
    if dataset.removesuffix("-validation") in _FILES and "NASHCAST_DATA" not in os.environ:
        os.environ["NASHCAST_DATA"] = str(recorded_folder())
