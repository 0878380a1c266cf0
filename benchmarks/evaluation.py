"""Write the pages on the peers of 0.1's federation again, from the records of their runs.

    python benchmarks/evaluation.py

Computes nothing: evaluation.json and held-out.json in benchmarks/results are the records of 0.1.
benchmarks/federation.py measures the present federation, `nashcast evaluate` all methods.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

from nashcast.reports.formats import moment
from nashcast.reports.markdown import markdown_table

ROOT = Path(__file__).parents[1]


class Evaluation(NamedTuple):
    """name: of the page, its pictures' folder and what is kept."""

    name: str
    introduction: str

    @property
    def kept(self) -> Path:
        return ROOT / "benchmarks" / "results" / f"{self.name}.json"

    @property
    def page(self) -> Path:
        return ROOT / "docs" / f"{self.name}.md"


DECLARED = Evaluation(
    "evaluation",
    """# Results of 0.1: the federation beside its peers

Written from the record of 0.1's `nashcast evaluate`; only this paragraph is typed by hand. The federation of 0.2 has
another mixture and another game, and is measured by `benchmarks/federation.py`. One default configuration, the same for
every stream. How it is done, and what the columns mean: [the evaluation](reference/evaluation.md). The federation was
changed in two places after a first evaluation, in which it was first or near on 11 of the 16 streams, and with the
recorded streams in view: [what was seen before it was final](decisions/0011-the-default-federation.md). This is not an
untouched test; that is [the one on the streams held out](held-out.md).
""",
)
HELD_OUT = Evaluation(
    "held-out",
    """# Results of 0.1: the federation on streams it had never seen

Written from the record of 0.1's `nashcast evaluate --held-out`; only this paragraph is typed by hand. The federation of
0.2 has another mixture and another game, and is measured by `benchmarks/federation.py`. The streams were declared by a
rule, [written down](../src/nashcast/evaluation/streams.toml) with its date, when the default federation of
0.1 was final; nothing of it or of the peers had been run on them, and nothing in either was changed after. How it is
done, and what the columns mean: [the evaluation](reference/evaluation.md); what the streams are:
[their list](reference/datasets.md).
""",
)


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
    for evaluation in (DECLARED, HELD_OUT):
        evaluation.page.write_text(page(evaluation, json.loads(evaluation.kept.read_text())))
        print(f"wrote {evaluation.page.name}")


if __name__ == "__main__":
    main()
