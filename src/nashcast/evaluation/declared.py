"""The streams of an evaluation: those declared in streams.toml, or any by name or file."""

from __future__ import annotations

import csv
import tomllib
from collections.abc import Mapping
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

from nashcast.datasets import Stream, open_stream
from nashcast.datasets.catalog import entry
from nashcast.datasets.recorded.fresh_series import FRESH
from nashcast.errors import InvalidInput, NashcastError

LAGS = 3  # of a file, unless given


class Declared(NamedTuple):
    """A stream to run on. options: pairs, so that it is hashable.   shift: step of the distribution shift, if known.

    held_out: declared after the default federation was final.   title: used instead of the name, if given.
    group, beside: for streams whose inputs belong to several owners, see streams.toml.
    """

    name: str
    paper: bool = False
    shift: int | None = None
    options: tuple[tuple[str, Any], ...] = ()
    held_out: bool = False
    title: str = ""
    group: str = ""
    beside: str = ""

    @property
    def label(self) -> str:
        if self.title:
            return self.title
        path = dict(self.options).get("path")
        return self.name if self.name != "file" or path is None else Path(path).stem

    def open(self) -> Stream:
        return _opened(self)

    def why_not(self) -> str:
        """The reason why it cannot be opened here, or an empty text."""
        known = entry(self.name)
        return "" if known.available else f"needs {known.needs}: {known.get}"


@lru_cache(maxsize=32)
def _opened(declared: Declared) -> Stream:
    return open_stream(declared.name, **dict(declared.options))


@lru_cache(maxsize=1)
def declarations() -> Mapping[str, Any]:
    """The contents of streams.toml."""
    return tomllib.loads((resources.files("nashcast.evaluation") / "streams.toml").read_text(encoding="utf-8"))


def warmup_share() -> float:
    """The first share of every stream, on which settings may be chosen; the rest is scored."""
    return float(declarations()["warmup"])


def every_declared() -> list[Declared]:
    return [
        Declared(each["name"], each.get("paper", False), each.get("shift"), held_out=each.get("held_out", False))
        for each in declarations()["stream"]
    ]


def declared_streams(*, paper_only: bool = False, held_out: bool = False) -> list[Declared]:
    """The held-out streams, or all others, or only the paper's of those."""
    found = [each for each in every_declared() if each.held_out == held_out]
    return [each for each in found if each.paper or not paper_only]


def fresh_streams() -> list[Declared]:
    """Those of datasets/recorded/fresh.toml, declared by a rule before any method ran on them."""
    return [Declared("fresh", options=(("which", name),), title=name) for name in FRESH]


def stream_named(text: str, target: str | None = None, lags: int | None = None) -> Declared:
    """A declared stream or one of the catalogue by name, or a CSV or Parquet file by path.

    target, lags: for a file; by default the last column and 3.
    """
    for each in (*every_declared(), *fresh_streams()):
        if text in (each.name, each.label) and text != "fresh":
            return each
    path = Path(text)
    if path.suffix.lower() in (".csv", ".parquet", ".txt") or path.is_file():
        chosen = target or _last_column(path)
        return Declared("file", options=(("path", str(path)), ("target", chosen), ("lags", lags or LAGS)))
    entry(text)  # raises with the known names if it is unknown
    if text == "file":
        raise InvalidInput("--stream", "'file'", "Pass the path of the file itself.")
    if text == "fresh":
        raise InvalidInput("--stream", "'fresh'", f"Pass --fresh for all, or one of {', '.join(FRESH)}.")
    return Declared(text)


def _last_column(path: Path) -> str:
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            header = next(csv.reader(file), [])
    except (OSError, UnicodeDecodeError):
        header = []
    if not header or not header[-1].strip():
        raise InvalidInput("--target", f"none for {path}", "Pass the name of the column to forecast.")
    return header[-1].strip()


def check_streams(streams: list[Declared]) -> tuple[list[Declared], dict[str, str]]:
    """The streams that can be opened here, and the reasons for the others."""
    missing = {each.label: each.why_not() for each in streams if each.why_not()}
    here = [each for each in streams if each.label not in missing]
    if not here:
        raise NashcastError("none of the streams can be opened: " + "; ".join(together(missing)))
    for each in here:
        each.open()  # reports an unreadable file now, not after an hour
    return here, missing


def together(missing: Mapping[str, str]) -> list[str]:
    """Streams with the same reason in one line.

    >>> together({"a": "needs x", "b": "needs y", "c": "needs x"})
    ['a, c: needs x', 'b: needs y']
    """
    names: dict[str, list[str]] = {}
    for name, why in missing.items():
        names.setdefault(why, []).append(name)
    return [f"{', '.join(some)}: {why}" for why, some in names.items()]
