"""Tables for the terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping

from nashcast.records.study import Table, table_from
from nashcast.reports.formats import cells, legend, one_line, right_aligned

WIDTH = 120
# Text is wrapped into columns no narrower than this.
_NARROW = 12
# Words longer than this are broken.
_LONG = 16
_GAP = "  "


def text_table(table: Table | Mapping, width: int = WIDTH) -> str:
    """Aligned columns under a title; headings and texts are wrapped where the lines would be longer than `width`."""
    table = table_from(table)
    heads, body = [one_line(column.label) for column in table.columns], cells(table)
    rights = [right_aligned(column) for column in table.columns]
    columns = list(zip(heads, *body, strict=True))
    widest = [max(map(len, column)) for column in columns]
    # A number is never broken, nor a word that is not very long.
    least = [
        max(
            [_longest_word(head), *map(len, column[1:])]
            if right
            else [min(_NARROW, most), *(min(_longest_word(text), _LONG) for text in column)]
        )
        for head, column, right, most in zip(heads, columns, rights, widest, strict=True)
    ]
    widths = _fit(widest, least, width - len(_GAP) * (len(heads) - 1))
    lines = [one_line(table.title)] if table.title else []
    lines += _row(heads, widths, rights)
    lines.append(_GAP.join("─" * w for w in widths))
    for row in body:
        lines += _row(row, widths, rights)
    explained = "; ".join(f"{mark}: {meaning}" for mark, meaning in legend(table).items())
    lines += textwrap.wrap(explained, width)
    return "\n".join(lines)


def _longest_word(text: str) -> int:
    return max((len(word) for word in text.split()), default=0)


def _fit(widths: list[int], least: list[int], room: int) -> list[int]:
    """Shrink the column with the most spare width until all fit or no column has any."""
    widths = list(widths)
    while sum(widths) > room:
        spare = [wide - narrow for wide, narrow in zip(widths, least, strict=True)]
        if max(spare) <= 0:
            break
        widths[spare.index(max(spare))] -= 1
    return widths


def _row(texts, widths: list[int], rights: list[bool]) -> list[str]:
    """One row as lines of text; wrapped cells start at the top."""
    wrapped = [textwrap.wrap(text, width) or [""] for text, width in zip(texts, widths, strict=True)]
    lines = []
    for i in range(max(map(len, wrapped))):
        parts = [part[i] if i < len(part) else "" for part in wrapped]
        shown = [
            part.rjust(width) if right else part.ljust(width)
            for part, width, right in zip(parts, widths, rights, strict=True)
        ]
        lines.append(_GAP.join(shown).rstrip())
    return lines
