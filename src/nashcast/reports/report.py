"""The whole report of a record: a page, figures and Markdown, each written atomically."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from nashcast.reports.figures import rendered
from nashcast.reports.files import write_whole
from nashcast.reports.markdown import markdown_page
from nashcast.reports.page.write import PAGE, html_page
from nashcast.reports.record_study import study_of

FORMATS = ("html", "png", "pdf", "md")
FIGURES, MARKDOWN = "figures", "report.md"


def write_report(record: str | Path, out: str | Path | None = None, formats: Sequence[str] = FORMATS) -> list[Path]:
    """Write the report of the record in a folder, there or in `out`. Returns the files in the order of FORMATS."""
    study, folder = study_of(record), Path(record if out is None else out)
    # Everything is made before anything is written: a missing package leaves no partial report.
    content: dict[Path, str | bytes] = {}
    if "html" in formats:
        content[folder / PAGE] = html_page(study)
    pictures = [kind for kind in ("png", "pdf") if kind in formats]
    for figure in study.figures if pictures else ():
        drawn = rendered(figure, study.arrays, pictures, study.figures)
        content |= {folder / FIGURES / f"{figure.name}.{kind}": file for kind, file in drawn.items()}
    if "md" in formats:
        content[folder / MARKDOWN] = markdown_page(study, FIGURES if "png" in formats else None)
    return [write_whole(path, file) for path, file in content.items()]
