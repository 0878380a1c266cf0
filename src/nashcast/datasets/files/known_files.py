"""The recorded files that streams are cut from; nashcast contains none of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from nashcast.datasets.files.sheet import Sheet
from nashcast.datasets.recorded import air_quality_file
from nashcast.errors import InvalidInput
from nashcast.suggest import near


class KnownFile(NamedTuple):
    """name: the stream's.   columns: those with numbers, besides the date.   streams: all that are cut from it.

    url: the file's; without one it must be downloaded from `page` and added.   reader: for a file in another format.
    """

    name: str
    file: str
    url: str
    sha256: str
    size: int
    date: str
    columns: tuple[str, ...]
    source: str
    licence: str
    streams: tuple[str, ...] = ()
    page: str = ""
    reader: Callable[[Path], Sheet] | None = None

    @property
    def get(self) -> str:
        """The command that provides it."""
        return f"nashcast data add {self.file}" if self.page else f"nashcast data fetch {self.name}"


ETT = KnownFile(
    name="ett",
    file="ETTh1.csv",
    url="https://raw.githubusercontent.com/zhouhaoyi/ETDataset/main/ETT-small/ETTh1.csv",
    sha256="f18de3ad269cef59bb07b5438d79bb3042d3be49bdeecf01c1cd6d29695ee066",
    size=2_589_657,
    date="date",
    columns=("HUFL", "HULL", "MUFL", "MULL", "LUFL", "LULL", "OT"),
    source="Zhou et al., ETDataset, ETT-small-h1",
    licence="CC BY-ND 4.0",
    streams=("ett", "ett-validation"),
)

BANK_OF_CANADA = KnownFile(
    name="boc",
    file="bank_of_canada_exchange_rates.csv",
    url="https://raw.githubusercontent.com/fatemetkl/FedMOE/708ae187ab5a2d048ef81fb60923d736e707d3a5/"
    "fedmoe/datasets/assets/bank_of_canada_exchange_rates.csv",
    sha256="147c2330e17c247e172561604f50ce1c07a68ad3e435367ec07ab3279f81f585",
    size=353_383,
    date="date",
    columns=("AUD_CLOSE", "EUR_CLOSE", "GBP_CLOSE", "JPY_CLOSE", "USD_CLOSE"),
    source="Bank of Canada, as prepared by the paper's authors",
    licence="the Bank of Canada's terms of use",
    streams=("boc", "boc-validation"),
)

AIR_QUALITY = KnownFile(
    name="air-quality",
    file="AirQualityUCI.csv",
    url="",
    sha256="15738785f98477d7c9673ec4074ee9ac8150216b367887a129abf5a0e942ea18",
    size=783_015,
    date="Date",
    columns=air_quality_file.COLUMNS,
    source="De Vito et al., UCI Machine Learning Repository, Air Quality",
    licence="CC BY 4.0",
    streams=tuple(f"air-{gas}-{hour}" for gas in ("co", "nox", "no2") for hour in ("next", "same")),
    page="https://archive.ics.uci.edu/dataset/360/air+quality",
    reader=air_quality_file.read_air_quality,
)

KNOWN = (BANK_OF_CANADA, ETT, AIR_QUALITY)


def known_file(name: str) -> KnownFile:
    """The file, by its own name or that of a stream cut from it."""
    for known in KNOWN:
        if name in (known.file, known.name) or name in known.streams:
            return known
    names = [each for known in KNOWN for each in (*known.streams, known.file)]
    listed = ", ".join(f"{known.name} ({known.file})" for known in KNOWN)
    raise InvalidInput("name", repr(name), f"{near(name, names)}The recorded files are {listed}.")
