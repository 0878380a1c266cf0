"""`make evaluation`: what `nashcast evaluate` found, as docs/evaluation.md, and kept for the README's table.

    python benchmarks/evaluation.py [FOLDER [SEEDS_FOLDER]]

FOLDER is where `nashcast evaluate` has put its record, SEEDS_FOLDER where it has put that of the quick methods on many
seeds. What stands there is read, nothing is computed.
"""

from __future__ import annotations

import json
import shutil
import sys
from dataclasses import asdict
from pathlib import Path

from nashcast.errors import InvalidInput
from nashcast.records import study as records
from nashcast.reports.formats import moment
from nashcast.reports.markdown import markdown_table

ROOT = Path(__file__).parents[1]
KEPT, PAGE, IMAGES = ROOT / "benchmarks" / "evaluation.json", ROOT / "docs" / "evaluation.md", "images/evaluation"
INTRODUCTION = """# The federation beside its peers

Written by `make evaluation` from the record of `nashcast evaluate`; only this paragraph is typed by hand. One default
configuration, the same for every stream. How it is done, and what the columns mean:
[the evaluation](reference/evaluation.md). The default federation was changed in two places after a first evaluation, in
which it was first or near on 11 of the 16 streams, and with the recorded streams in view:
[what was seen before it was final](decisions/0011-the-default-federation.md). This is not an untouched test.
"""


def collect(folder: Path, many_seeds: Path) -> dict:
    study, wide = records.read(folder), records.read(many_seeds)
    pictures = PAGE.parent / IMAGES
    pictures.mkdir(parents=True, exist_ok=True)
    for figure in study.figures:
        shutil.copyfile(folder / "figures" / f"{figure.name}.png", pictures / f"{figure.name}.png")
    return {
        "command": study.command, "created": study.created, "versions": dict(study.versions),
        "notes": list(study.notes), "tables": [asdict(table) for table in study.tables],
        "figures": [{"name": f.name, "title": f.title, "caption": f.caption} for f in study.figures],
        "wide": {"command": wide.command, "seeds": len(wide.seeds), "tables": [asdict(t) for t in wide.tables[:2]]},
    }  # fmt: skip


def page(found: dict) -> str:
    parts = [INTRODUCTION, f"`{found['command']}` ({moment(found['created'])})\n"]
    parts += [f"- {note}" for note in found["notes"]]
    for table in found["tables"]:
        parts.append(f"\n## {table['title']}\n\n{markdown_table(table)}")
    parts += [f"\n![{f['title']}]({IMAGES}/{f['name']}.png)\n\n{f['caption']}" for f in found["figures"]]
    wide = found["wide"]
    parts.append(
        f"\n## The federation, its game and the quick random methods on {wide['seeds']} seeds\n\n`{wide['command']}`"
    )
    parts += [f"\n{table['title']}:\n\n{markdown_table(table)}" for table in wide["tables"]]
    parts.append("\nWith " + ", ".join(f"{name} {text}" for name, text in found["versions"].items()) + ".")
    return "\n".join(parts) + "\n"


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "evaluation"
    many_seeds = Path(sys.argv[2]) if len(sys.argv) > 2 else ROOT / "evaluation-seeds"
    try:
        found = collect(folder, many_seeds)
    except InvalidInput as error:
        sys.exit(f"{error}\nRun `make evaluation`, or its commands one by one.")
    KEPT.write_text(json.dumps(found, indent=1) + "\n")
    PAGE.write_text(page(found))
    print(f"wrote {KEPT.name}, {PAGE.name} and its pictures")


if __name__ == "__main__":
    main()
