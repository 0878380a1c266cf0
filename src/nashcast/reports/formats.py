"""Text formats of errors, ratios, durations and marks, for the terminal, Markdown and the page."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite, isnan

from nashcast.records.study import Column, Table

MISSING, DIVERGES = "–", "diverges"
# An error above this means only that the forecasts diverge.
DIVERGED = 1e6
LEGEND = {MISSING: "no value", DIVERGES: "not finite, or a million and more"}
NUMBERS = ("int", "error", "ratio", "seconds")


def cell(value, kind: str) -> str:
    """A value of a column of this kind as one line of text.

    >>> cell(4.49e-5, "error"), cell(float("inf"), "error"), cell(None, "ratio"), cell(0.0123, "seconds")
    ('4.49e-5', 'diverges', '–', '12.3 ms')
    """
    if value is None:
        return MISSING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if kind not in NUMBERS or not isinstance(value, int | float):
        return one_line(value)
    return {"int": _whole, "error": error, "ratio": ratio, "seconds": duration}[kind](value)


def cells(table: Table) -> list[list[str]]:
    """All rows of a table as text, in the order of its columns."""
    return [[cell(row.get(column.key), column.kind) for column in table.columns] for row in table.rows]


def error(value: float) -> str:
    """A squared error with three digits."""
    if not isfinite(value) or abs(value) >= DIVERGED:
        return DIVERGES
    if value == 0:
        return "0"
    digits, exponent = f"{value:.2e}".split("e")
    return f"{digits}e{int(exponent)}"


def ratio(value: float) -> str:
    """A number of any size with three digits; slightly above 1 with four, to show differences below a per cent.

    >>> [ratio(value) for value in (0.87, 1.0, 1.0051, -0.0213, 123.4, 45678.0, 0.0000321)]
    ['0.870', '1.00', '1.005', '-0.0213', '123', '45,678', '3.21e-5']
    """
    if isnan(value):
        return MISSING
    size = abs(value)
    if size >= DIVERGED:
        return DIVERGES
    if size >= 999.5:
        return f"{value:,.0f}"
    if 1.0005 <= size < 1.0995:
        return f"{value:.3f}"
    return f"{value:#.3g}".rstrip(".") if size >= 1e-3 or size == 0 else error(value)


def duration(seconds: float) -> str:
    """Seconds in a suitable unit.

    >>> [duration(value) for value in (3e-9, 4.2e-5, 0.25, 12.34, 754, 7300)]
    ['3 ns', '42 µs', '250 ms', '12.3 s', '12 min 34 s', '2 h 2 min']
    """
    if not isfinite(seconds):
        return MISSING
    if seconds == 0:
        return "0 s"
    if seconds >= 3600:
        hours, minutes = divmod(round(seconds / 60), 60)
        return f"{hours} h {minutes} min"
    if seconds >= 120:
        minutes, rest = divmod(round(seconds), 60)
        return f"{minutes} min {rest} s"
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def size(count: int) -> str:
    """Bytes in a suitable unit."""
    for unit, large in (("MB", 1e6), ("kB", 1e3)):
        if count >= large:
            return f"{count / large:.3g} {unit}"
    return f"{count} bytes"


def moment(created: str) -> str:
    """The time at which a record was made.

    >>> moment("2025-11-15T20:14:09+00:00")
    '2025-11-15 20:14 UTC'
    """
    whole = created.replace("T", " ", 1)
    return f"{whole[:16]} UTC" if whole.endswith("+00:00") else whole


def one_line(value) -> str:
    r"""The value as one line of text: names in a record may contain control characters.

    >>> one_line("a\n\x1b[31mb")
    'a [31mb'
    """
    printable = "".join(letter if letter.isprintable() else " " for letter in str(value))
    return " ".join(printable.split())


def legend(table: Table) -> dict[str, str]:
    """The meanings of the marks used in this table."""
    shown = {text for row in cells(table) for text in row}
    return {one_line(mark): one_line(meaning) for mark, meaning in table.marks.items()} | {
        mark: meaning for mark, meaning in LEGEND.items() if mark in shown
    }


def right_aligned(column: Column) -> bool:
    return column.kind in NUMBERS


def flat(settings, prefix: str = "") -> list[tuple[str, str]]:
    """Nested settings as pairs of a dotted key and its value."""
    pairs = []
    for key, value in settings.items():
        name = f"{prefix}{one_line(key)}"
        if isinstance(value, dict) and value:
            pairs += flat(value, f"{name}.")
        elif isinstance(value, list) and any(isinstance(each, dict) for each in value):
            pairs += [(f"{name}[{i}]", _setting(each)) for i, each in enumerate(value)]
        else:
            pairs.append((name, _setting(value)))
    return pairs


def _setting(value) -> str:
    if value is None:
        return MISSING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict) and value:
        return ", ".join(f"{name} {text}" for name, text in flat(value))
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(_setting(each) for each in value) or MISSING
    if isinstance(value, float):
        return f"{value:.6g}"
    return one_line(value)


def _whole(value: float) -> str:
    if not isfinite(value):
        return MISSING
    return f"{round(value):,}" if abs(value) >= 10_000 else f"{round(value)}"
