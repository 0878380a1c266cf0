"""One self-contained page for a record: sortable tables and zoomable figures, without any request."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable
from html import escape
from importlib.resources import files
from math import isnan
from pathlib import Path

from nashcast.extras import needed
from nashcast.records.study import Column, Figure, Study, Table
from nashcast.reports.files import write_whole
from nashcast.reports.formats import (
    DIVERGES,
    MISSING,
    cell,
    duration,
    flat,
    legend,
    moment,
    one_line,
    right_aligned,
)
from nashcast.reports.page.page_plots import plots
from nashcast.reports.record_study import study_of

PAGE = "report.html"
# A longer list of seeds is collapsed.
_MANY = 24
# Longer texts in a table are wrapped.
_LONG = 32


def write_page(folder: str | Path, out: str | Path | None = None) -> Path:
    """Write the page of the record in a folder, to that folder or to `out`."""
    page = html_page(study_of(folder))
    return write_whole(Path(folder if out is None else out) / PAGE, page)


def html_page(study: Study) -> str:
    """The whole page. Its content security policy allows only its own scripts and no requests."""
    scripts = [_plotly()] if study.figures else []
    scripts.append(_ours("page.js"))
    sections = [_tables(study.tables), _figures(study.figures), _repeat(study)]
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en">',
            "<head>",
            '<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{_policy(scripts)}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="referrer" content="no-referrer">',
            f"<title>{_text(study.title)}</title>",
            '<link rel="icon" href="data:,">',
            f"<style>\n{_ours('page.css')}</style>",
            "</head>",
            "<body>",
            '<a class="skip" href="#main">Skip to the results</a>',
            _head(study),
            '<main id="main">',
            *(section for section in sections if section),
            "</main>",
            '<footer class="quiet">This page is one file. It fetches nothing and sends nothing.</footer>',
            *([_data(plots(study))] if study.figures else []),
            *(f"<script>{script}</script>" for script in scripts),
            "</body>",
            "</html>",
            "",
        ]
    )


def _text(text) -> str:
    return escape(one_line(text))


def _ours(name: str) -> str:
    return files("nashcast.reports.page").joinpath(name).read_text(encoding="utf-8")


def _plotly() -> str:
    script = needed("plotly.offline", "plotly", "report", "page").get_plotlyjs()
    # A browser reads \r\n as \n before it checks the policy's hash.
    return script.replace("\r\n", "\n").replace("\r", "\n")


def _policy(scripts: Iterable[str]) -> str:
    hashes = (base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts)
    allowed = " ".join(f"'sha256-{each}'" for each in hashes)
    # Plotly writes styles when it draws, and saves images from the drawing.
    rest = "style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; form-action 'none'"
    return f"default-src 'none'; script-src {allowed}; {rest}"


def _data(drawn: dict) -> str:
    """JSON inside the page, escaped so that it cannot end the element."""
    text = json.dumps(drawn, separators=(",", ":"), allow_nan=False)
    text = text.replace("&", r"\u0026").replace("<", r"\u003c").replace(">", r"\u003e")
    return f'<script type="application/json" id="plots">{text}</script>'


def _made(study: Study) -> str:
    made = f"Made {moment(study.created)}" if study.created else "Made by nashcast"
    version = study.versions.get("nashcast")
    made += f" with nashcast {version}" if version else ""
    return made + (f" in {duration(study.seconds)}" if study.seconds is not None else "")


def _head(study: Study) -> str:
    links = [("tables", "Tables", study.tables), ("figures", "Figures", study.figures), ("repeat", "Repeat it", True)]
    notes = "".join(f"<li>{_text(note)}</li>" for note in study.notes)
    return "\n".join(
        [
            "<header>",
            f"<h1>{_text(study.title)}</h1>",
            f'<p class="quiet">{_text(_made(study))}</p>',
            '<nav aria-label="On this page"><ul>',
            *(f'<li><a href="#{name}">{label}</a></li>' for name, label, there in links if there),
            "</ul></nav>",
            f'<section aria-label="What it says"><ul>{notes}</ul></section>' if notes else "",
            "</header>",
        ]
    )


def _tables(tables: Iterable[Table]) -> str:
    parts = [_table(table, i) for i, table in enumerate(tables)]
    return "\n".join(['<section id="tables">', "<h2>Tables</h2>", *parts, "</section>"]) if parts else ""


def _table(table: Table, number: int) -> str:
    name = f"table-{number + 1}"
    heads = "".join(map(_heading, table.columns))
    rows = [
        "<tr>" + "".join(_cell(row.get(column.key), column) for column in table.columns) + "</tr>" for row in table.rows
    ]
    explained = "".join(
        f"<div><dt>{_text(mark)}</dt><dd>{_text(meaning)}</dd></div>" for mark, meaning in legend(table).items()
    )
    return "\n".join(
        [
            f'<h3 id="{name}">{_text(table.title)}</h3>',
            f'<div class="wide" role="region" tabindex="0" aria-labelledby="{name}"><table>',
            f"<thead><tr>{heads}</tr></thead>",
            "<tbody>",
            *rows,
            "</tbody></table></div>",
            f'<dl class="marks quiet">{explained}</dl>' if explained else "",
        ]
    )


def _heading(column: Column) -> str:
    name = "" if column.label.strip() else f' aria-label="{_text(column.key)}"'
    button = f'<button type="button"{name}>{_text(column.label)}</button>'
    return f'<th scope="col"{_class(column)} aria-sort="none">{button}</th>'


def _class(column: Column, shown: str = "") -> str:
    names = ["number"] if right_aligned(column) else ["mark"] if column.kind == "mark" else []
    names += ["faint"] if shown in (MISSING, DIVERGES) else ["long"] if len(shown) > _LONG else []
    return f' class="{" ".join(names)}"' if names else ""


def _cell(value, column: Column) -> str:
    """`data-value` is the sort key; diverged values count as infinite."""
    shown = cell(value, column.kind)
    order = ""
    if shown not in (MISSING, ""):
        key = shown
        if right_aligned(column) and isinstance(value, int | float):
            key = "Infinity" if isnan(value) else repr(float(value)).replace("inf", "Infinity")
        order = f' data-value="{escape(key)}"'
    return f"<td{_class(column, shown)}{order}>{escape(shown)}</td>"


def _figures(figures: Iterable[Figure]) -> str:
    parts = [
        "\n".join(
            [
                f'<figure class="plot" id="figure-{escape(figure.name)}">',
                f"<h3>{_text(figure.title)}</h3>",
                '<ul class="keys" aria-label="Lines; press to hide or show"></ul>',
                f'<div class="canvas" role="group" aria-label="{_text(figure.title)}"></div>',
                f"<figcaption>{_text(figure.caption)}</figcaption>",
                "</figure>",
            ]
        )
        for figure in figures
    ]
    hint = (
        "<noscript><p>The figures are drawn by a script in this page, which this browser does not run.</p></noscript>"
    )
    return "\n".join(['<section id="figures">', "<h2>Figures</h2>", hint, *parts, "</section>"]) if parts else ""


def _repeat(study: Study) -> str:
    parts = ['<section id="repeat">', "<h2>Repeat it</h2>"]
    if study.command:
        command = f'<pre><code id="command">{escape(study.command)}</code></pre>'
        parts.append(f'<div class="command">{command}<button type="button" data-copies="command">Copy</button></div>')
    parts.append('<div class="facts">')
    if study.settings:
        parts.append(_pairs("Settings", flat(study.settings)))
    if study.seeds:
        parts.append(f"<section><h3>Seeds</h3>{_seeds([one_line(seed) for seed in study.seeds])}</section>")
    if study.versions:
        parts.append(_pairs("Versions", flat(study.versions)))
    return "\n".join([*parts, "</div>", "</section>"])


def _seeds(seeds: list[str]) -> str:
    everything = f"<p>{escape(', '.join(seeds))}</p>"
    if len(seeds) <= _MANY:
        return everything
    return f"<details><summary>{len(seeds)} seeds</summary>{everything}</details>"


def _pairs(title: str, pairs: list[tuple[str, str]]) -> str:
    rows = "".join(f'<tr><th scope="row">{escape(key)}</th><td>{escape(value)}</td></tr>' for key, value in pairs)
    return f'<section><h3>{title}</h3><div class="wide"><table><tbody>{rows}</tbody></table></div></section>'
