"""The tables [sweep] and [grid] of a sweep's file, and the settings they generate."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from nashcast import seeds
from nashcast.config.run_schema import Place, options_of, read, read_options, refuse_unknown, table

KINDS = ("grid", "random")
# Consecutive draws without a new setting after which a random sweep is exhausted.
_PATIENCE = 1000


@dataclass(frozen=True)
class Range:
    """A range to draw from, low to high. log: uniform in the logarithm.   whole: integers, both ends included."""

    low: float
    high: float
    log: bool = False
    whole: bool = False


RANGE = options_of(Range)


@dataclass(frozen=True)
class SweepConfig:
    """kind: grid or random.   tune_until: a share of the stream or a number of steps, None for post-hoc ranking."""

    kind: str
    samples: int | None
    seeds: tuple[int, ...]
    tune_until: float | None
    varied: Mapping[str, tuple | Range]

    def settings(self) -> dict[str, Any]:
        """The settings in plain values, to identify the sweep."""
        varied = {path: vars(v) if isinstance(v, Range) else list(v) for path, v in self.varied.items()}
        own = {"kind": self.kind, "samples": self.samples, "seeds": list(self.seeds), "tune_until": self.tune_until}
        return {**own, "grid": varied}


SWEEP = options_of(SweepConfig, ("varied",))


def parse_sweep(document: Mapping[str, Any], source: str, seed: int) -> SweepConfig:
    """seed: the run's seed, used if [sweep] names none."""
    place, grid = Place(source, "sweep"), Place(source, "grid")
    given = table(place, document.get("sweep", {}))
    refuse_unknown(place, given, SWEEP, "A sweep")
    kind = read(place.at("kind"), given.get("kind", "grid"), "str")
    if kind not in KINDS:
        raise place.at("kind").refused(repr(kind), f"Pass one of {', '.join(KINDS)}.")
    samples = given.get("samples")
    if kind == "random" and samples is None:
        raise place.at("samples").refused("nothing", "Say how many settings to draw: samples = 200.")
    if kind == "grid" and samples is not None:
        raise place.at("samples").refused(f"{samples!r} in a grid", 'Leave it out, or set kind = "random".')
    if samples is not None and read(place.at("samples"), samples, "int") < 1:
        raise place.at("samples").refused(f"{samples}", "Pass a whole number ≥ 1.")
    if "grid" not in document or not table(grid, document["grid"]):
        raise grid.refused("nothing", 'Add a table [grid] with what to vary: "agents.ridge" = [0.1, 1, 10].')
    varied = dict(_varied(grid, document["grid"], kind, ""))
    return SweepConfig(
        kind, samples, _seeds(place.at("seeds"), given.get("seeds", [seed])), _tune_until(place, given), varied
    )  # fmt: skip


def choices(sweep: SweepConfig, seed: int) -> Iterator[dict[str, Any]]:
    """Settings by dotted name, one dict each. Draw k is the same in a sweep of 10 and of 1000."""
    if sweep.kind == "grid":
        lists = [v for v in sweep.varied.values() if not isinstance(v, Range)]
        for values in itertools.product(*lists):
            yield dict(zip(sweep.varied, values, strict=True))
        return
    seen, draw, misses = set(), 0, 0
    while len(seen) < (sweep.samples or 0) and misses < _PATIENCE:
        rng = seeds.generator(seed, "sweep", draw)
        choice = {path: _drawn(rng, values) for path, values in sweep.varied.items()}
        draw, misses = draw + 1, misses + 1
        if repr(choice) not in seen:
            seen.add(repr(choice))
            misses = 0
            yield choice


def split_at(tune_until: float | None, steps: int, source: str) -> int | None:
    """Number of first steps used for tuning; None if all steps are both ranked and reported."""
    if tune_until is None:
        return None
    split = round(tune_until * steps) if tune_until < 1 else int(tune_until)
    if not 1 <= split < steps:
        remedy = f"The stream has {steps} steps: leave at least one on each side."
        raise Place(source, "sweep.tune_until").refused(f"{tune_until:g}", remedy)
    return split


def _seeds(place: Place, value: Any) -> tuple[int, ...]:
    found = read(place, value, "Sequence[int]")
    if not found or min(found) < 0 or len(set(found)) < len(found):
        raise place.refused(f"{value!r:.60}", "Pass a list of different whole numbers ≥ 0.")
    return found


def _tune_until(place: Place, given: Mapping) -> float | None:
    if given.get("tune_until", False) is False:
        return None
    at, value = place.at("tune_until"), given["tune_until"]
    number = read(at, value, "float")
    if number <= 0 or (number >= 1 and not isinstance(value, int)):
        remedy = "Pass a share of the stream between 0 and 1, or a whole number of steps."
        raise at.refused(f"{value!r}", remedy)
    return number


def _varied(place: Place, value: Mapping, kind: str, prefix: str) -> Iterator[tuple[str, tuple | Range]]:
    """Names may be quoted, or written as TOML's dotted keys, which are nested tables."""
    for name, values in value.items():
        path, here = f"{prefix}{name}", place.at(name)
        if path == "seed" or path.split(".")[0] in ("name", "sweep", "grid"):
            raise here.refused("a key that cannot be varied", "Vary seeds by sweep.seeds.")
        if isinstance(values, Mapping) and "low" not in values and "high" not in values:
            yield from _varied(here, values, kind, f"{path}.")
        elif isinstance(values, Mapping):
            if kind == "grid":
                raise here.refused("a range in a grid", 'Pass a list of values, or set sweep.kind = "random".')
            yield path, _range(here, values)
        elif not isinstance(values, list) or not values:
            raise here.refused(f"{values!r:.60}", "Pass a list of at least one value.")
        else:
            yield path, tuple(values)


def _range(place: Place, value: Mapping) -> Range:
    refuse_unknown(place, value, RANGE, "A range")
    found = Range(**read_options(place, value, RANGE))
    if not found.low < found.high:
        raise place.refused(f"low = {found.low:g}, high = {found.high:g}", "Pass low < high.")
    if found.log and found.low <= 0:
        raise place.at("low").refused(f"{found.low:g} with log = true", "Pass a number > 0.")
    if found.whole and not (found.low.is_integer() and found.high.is_integer()):
        raise place.refused(f"low = {found.low:g}, high = {found.high:g} with whole = true", "Pass whole numbers.")
    return found


def _drawn(rng, values: tuple | Range) -> Any:
    if not isinstance(values, Range):
        return values[int(rng.integers(len(values)))]
    low, high = (values.low - 0.5, values.high + 0.5) if values.whole else (values.low, values.high)
    if values.log:
        low, high = math.log(low), math.log(high)
    drawn = float(rng.uniform(low, high))
    drawn = math.exp(drawn) if values.log else drawn
    if values.whole:
        return int(min(max(round(drawn), values.low), values.high))
    # Rounded to six digits, so that the printed value is the one used.
    return float(f"{drawn:.6g}")
