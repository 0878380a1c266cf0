"""`make reproduction`: every study of the paper, then docs/reproduction.md and what measured.md says of it.

    python benchmarks/reproduction.py [FOLDER]

FOLDER is where `nashcast reproduce` has put its records. What stands there is read, nothing is computed.
"""

from __future__ import annotations

import json
import shutil
import sys
from dataclasses import asdict
from pathlib import Path

from nashcast.errors import InvalidInput
from nashcast.paper.studies.catalogue import STUDIES
from nashcast.records import study as records
from nashcast.records.study import Study
from nashcast.reports.formats import moment
from nashcast.reports.markdown import markdown_table

ROOT = Path(__file__).parents[1]
KEPT, PAGE, IMAGES = (
    ROOT / "benchmarks" / "results" / "reproduction.json",
    ROOT / "docs" / "reproduction.md",
    "images/reproduction",
)
INTRODUCTION = """# The paper, reproduced

Written by `make reproduction` from the records of `nashcast reproduce`; only this paragraph is typed by hand.
*Printed* is the paper's number. *Ours* is the exact game on the published encoders and random draws, three seeds as in
the paper. *As published* repeats the published code with its departures from the theorem
([errata](explanation/errata.md)), on its own draws. *Anchored* agents start each step from the last observation and
play no game. *Best baseline* is the best of ten [simple ones](reference/baselines.md), none of them tuned to a series.
Settings are the paper's bold ones, which it chose after the fact, on the series they are scored on.
"""


def collect(folder: Path) -> dict:
    """What the pages show of each study: all but arrays and pictures."""
    studies = {}
    for name in STUDIES:
        try:
            study = records.read(folder / name)
        except InvalidInput as error:
            print(f"left out: {error}", file=sys.stderr)
            continue
        studies[name] = {
            "title": study.title, "command": study.command, "seconds": study.seconds, "notes": list(study.notes),
            "created": study.created, "versions": dict(study.versions), "seeds": list(study.seeds),
            "tables": [asdict(table) for table in study.tables],
            "figures": [{"name": f.name, "title": f.title, "caption": f.caption} for f in study.figures],
        }  # fmt: skip
        copy_pictures(folder / name, study)
    return studies


def copy_pictures(folder: Path, study: Study) -> None:
    target = PAGE.parent / IMAGES
    target.mkdir(parents=True, exist_ok=True)
    for figure in study.figures:
        shutil.copyfile(folder / "figures" / f"{figure.name}.png", target / f"{figure.name}.png")


def page(studies: dict) -> str:
    parts = [INTRODUCTION]
    for study in studies.values():
        parts.append(f"## {study['title']}\n")
        parts.append(f"`{study['command']}` ({moment(study['created'])})\n")
        parts += [f"- {note}" for note in study["notes"]]
        for table in study["tables"]:
            parts.append(f"\n### {table['title']}\n\n{markdown_table(table)}")
        parts += [f"\n![{f['title']}]({IMAGES}/{f['name']}.png)\n\n{f['caption']}" for f in study["figures"]]
        parts.append("")
    versions = next(iter(studies.values()))["versions"]
    parts.append("With " + ", ".join(f"{name} {text}" for name, text in versions.items()) + ".")
    return "\n".join(parts) + "\n"


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "reproduction"
    found = collect(folder)
    # Studies that were not run again stay as they were, with the command and the date they have.
    before = json.loads(KEPT.read_text()) if KEPT.is_file() else {}
    studies = {name: found.get(name, before.get(name)) for name in STUDIES if name in found or name in before}
    if not found:
        sys.exit(f"no records in {folder}: run `nashcast reproduce all --as-published --output {folder}` first")
    KEPT.write_text(json.dumps(studies, indent=1) + "\n")
    PAGE.write_text(page(studies))
    print(f"wrote {KEPT.name}, {PAGE.name} and its pictures")


if __name__ == "__main__":
    main()
