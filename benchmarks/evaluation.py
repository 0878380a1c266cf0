"""`make evaluation`: what `nashcast evaluate` found, as pages, and kept for the README's tables.

    python benchmarks/evaluation.py [FOLDER [HELD_OUT_FOLDER]]

The folders are where `nashcast evaluate` and `nashcast evaluate --held-out` have put their records. What stands there
is read, nothing is computed.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import NamedTuple

from PIL import Image

from nashcast.errors import InvalidInput
from nashcast.records import study as records
from nashcast.reports.formats import moment
from nashcast.reports.markdown import markdown_table

ROOT = Path(__file__).parents[1]


class Evaluation(NamedTuple):
    """folder: of the record, unless another is given.   name: of the page, its pictures' folder and what is kept."""

    folder: str
    name: str
    introduction: str

    @property
    def kept(self) -> Path:
        return ROOT / "benchmarks" / f"{self.name}.json"

    @property
    def page(self) -> Path:
        return ROOT / "docs" / f"{self.name}.md"


DECLARED = Evaluation(
    "evaluation",
    "evaluation",
    """# The federation beside its peers

Written by `make evaluation` from the record of `nashcast evaluate`; only this paragraph is typed by hand. One default
configuration, the same for every stream. How it is done, and what the columns mean:
[the evaluation](reference/evaluation.md). The default federation was changed in two places after a first evaluation, in
which it was first or near on 11 of the 16 streams, and with the recorded streams in view:
[what was seen before it was final](decisions/0011-the-default-federation.md). This is not an untouched test; that is
[the one on the streams held out](held-out.md).
""",
)
HELD_OUT = Evaluation(
    "evaluation-held-out",
    "held-out",
    """# The federation on streams it had never seen

Written by `make evaluation` from the record of `nashcast evaluate --held-out`; only this paragraph is typed by hand.
The streams were declared by a rule, [written down](../src/nashcast/experiments/evaluation/streams.toml) with its date,
when the default federation was final; nothing of ours or of the peers had been run on them, and nothing in either was
changed after. How it is done, and what the columns mean: [the evaluation](reference/evaluation.md); what the streams
are: [their list](reference/streams.md).
""",
)


def keep_picture(source: Path, target: Path) -> None:
    """In as many colours as lines on white need: a fraction of the bytes."""
    Image.open(source).convert("RGB").quantize(64).save(target, optimize=True)


def collect(evaluation: Evaluation, folder: Path) -> dict:
    study = records.read(folder)
    pictures = ROOT / "docs" / "images" / evaluation.name
    pictures.mkdir(parents=True, exist_ok=True)
    for figure in study.figures:
        keep_picture(folder / "figures" / f"{figure.name}.png", pictures / f"{figure.name}.png")
    return {
        "command": study.command, "created": study.created, "versions": dict(study.versions),
        "seeds": list(study.seeds), "notes": list(study.notes), "tables": [asdict(table) for table in study.tables],
        "figures": [{"name": f.name, "title": f.title, "caption": f.caption} for f in study.figures],
    }  # fmt: skip


def page(evaluation: Evaluation, found: dict) -> str:
    parts = [evaluation.introduction, f"`{found['command']}` ({moment(found['created'])})\n"]
    parts += [f"- {note}" for note in found["notes"]]
    for table in found["tables"]:
        parts.append(f"\n## {table['title']}\n\n{markdown_table(table)}")
    for figure in found["figures"]:
        parts.append(f"\n![{figure['title']}](images/{evaluation.name}/{figure['name']}.png)\n\n{figure['caption']}")
    parts.append("\nWith " + ", ".join(f"{name} {text}" for name, text in found["versions"].items()) + ".")
    return "\n".join(parts) + "\n"


def main() -> None:
    for evaluation, given in zip((DECLARED, HELD_OUT), [*sys.argv[1:], None, None], strict=False):
        try:
            found = collect(evaluation, Path(given) if given else ROOT / evaluation.folder)
        except InvalidInput as error:
            sys.exit(f"{error}\nRun `make evaluation`, or its commands one by one.")
        evaluation.kept.write_text(json.dumps(found, indent=1) + "\n")
        evaluation.page.write_text(page(evaluation, found))
        print(f"wrote {evaluation.kept.name}, {evaluation.page.name} and its pictures")


if __name__ == "__main__":
    main()
