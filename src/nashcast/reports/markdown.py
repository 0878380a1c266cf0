"""Tables and whole reports in Markdown."""

from __future__ import annotations

import re
from collections.abc import Mapping

from nashcast.records.study import Study, Table, table_from
from nashcast.reports.formats import cells, duration, flat, legend, moment, one_line, right_aligned

_SPECIAL = re.compile(r"([\\`*_\[\]|#~$])")


def escaped(text) -> str:
    r"""Text with Markdown and HTML escaped.

    >>> escaped("a|b <script> x_1")
    'a\\|b &lt;script&gt; x\\_1'
    """
    plain = one_line(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _SPECIAL.sub(r"\\\1", plain)


def markdown_table(table: Table | Mapping) -> str:
    """The table alone, with its marks explained below."""
    table = table_from(table)
    heads = [escaped(column.label) for column in table.columns]
    rules = ["---:" if right_aligned(column) else "---" for column in table.columns]
    rows = [heads, rules, *([escaped(text) for text in row] for row in cells(table))]
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    if explained := legend(table):
        lines += ["", "; ".join(f"{escaped(mark)}: {escaped(meaning)}" for mark, meaning in explained.items()) + "."]
    return "\n".join(lines)


def markdown_page(study: Study, image_folder: str | None) -> str:
    """The whole report. image_folder: where the PNG figures are, relative to the page; None to leave them out."""
    parts = [f"# {escaped(study.title)}"]
    if study.notes:
        parts.append("\n".join(f"- {escaped(note)}" for note in study.notes))
    for table in study.tables:
        parts += [f"## {escaped(table.title)}", markdown_table(table)]
    for figure in study.figures:
        parts.append(f"## {escaped(figure.title)}")
        if image_folder is not None:
            parts.append(f"![{escaped(figure.title)}]({image_folder}/{figure.name}.png)")
        if figure.caption:
            parts.append(escaped(figure.caption))
    parts += ["## How to repeat it", *_repeat(study)]
    return "\n\n".join(parts) + "\n"


def _repeat(study: Study) -> list[str]:
    parts = [_fenced(study.command)] if study.command else []
    facts = []
    if study.seeds:
        facts.append(f"- Seeds: {escaped(', '.join(map(str, study.seeds)))}")
    if study.created:
        facts.append(f"- Made: {escaped(moment(study.created))}")
    if study.seconds is not None:
        facts.append(f"- Took: {duration(study.seconds)}")
    if study.versions:
        facts.append("- Versions: " + ", ".join(f"{escaped(k)} {escaped(v)}" for k, v in study.versions.items()))
    parts += ["\n".join(facts)] if facts else []
    if study.settings:
        rows = [f"| {escaped(key)} | {escaped(value)} |" for key, value in flat(study.settings)]
        parts.append("\n".join(["| setting | value |", "|---|---|", *rows]))
    return parts


def _fenced(text: str) -> str:
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{text}\n{fence}"
