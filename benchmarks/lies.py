"""One of five agents lies: the federation's error, divided by that of the same federation without the liar.

    python benchmarks/lies.py [--streams "TMY3 temperature,…"] [--rows 2000] [--liars 0,1,2,3,4] [--masked]

Prints a line for each stream, lie and liar. Results go to benchmarks/results/lies.json as they come, by the number of
rows, so that the command can be stopped and resumed; docs/lying-agents.md is written from all of them.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy: the matrices of a step are small

import lying_agents as lying

ROOT = Path(__file__).parents[1]
KEPT, PAGE = ROOT / "benchmarks" / "results" / "lies.json", ROOT / "docs" / "lying-agents.md"
OPEN, MASKED = "open", "masked"
LIMIT = 1.1  # a lie may cost so much of the error without the liar
INTRODUCTION = """# One of five agents lies

Written by `python benchmarks/lies.py`; only the paragraphs are typed by hand. Five owners with private inputs forecast
together. A liar learns as the others do and changes what it says, in the joint game and in its own forecasts. The
tables show the federation's squared error divided by that of the same federation without the liar (without both, where
two lie): 1 means that the liar costs as much as leaving it out would, below 1 that it is still of use. Each number is
the largest over the agents named as liars; the first tenth of the rows is not scored. It takes some rows to find a
liar, so short runs cost more. Empty cells were not measured; the table of 2000 rows has cells that were chosen because
they were above the limit in the shorter one, and one more.
"""
GROUPS = """
## Under masks

Agents that share `joint` are judged as one group, because only sums over all of them are seen: while a lie does harm,
the federation goes on without the joint game and without forecasts of their own. The limit is then what the baselines
are worth, and one liar can cost more than leaving it out would. An owner that shares `forecasts` is judged by itself.
"""


def measured(name: str, rows: int, liars: list[int], masked: bool, lies: list[lying.Lie]) -> list[dict[str, Any]]:
    """One row for each lie and liar on one stream."""
    stream = lying.first_rows(lying.STREAMS[name](), rows)
    agents, without, found = lying.owners_agents(stream), {}, []
    for lie in lies:
        for liar in liars:
            who = tuple((liar + k) % lying.OWNERS for k in range(lie.liars))
            if who not in without:
                others = [agent for i, agent in enumerate(agents) if i not in who]
                without[who] = lying.error(stream, lying.forecasts(stream, others, masked=masked))
            error = lying.error(stream, lying.forecasts(stream, agents, lie, who, masked))
            found.append({
                "stream": name, "rows": rows, "sharing": MASKED if masked else OPEN, "lie": lie.name, "liar": liar,
                "error": error, "without": without[who], "ratio": error / without[who],
            })  # fmt: skip
            print(f"{name}: {lie.name}, liar {liar}: {found[-1]['ratio']:.3f}", flush=True)
    return found


def table(rows: list[dict[str, Any]]) -> str:
    """The largest ratio by lie and stream."""
    streams = [name for name in lying.STREAMS if any(row["stream"] == name for row in rows)]
    lines = ["| lie | " + " | ".join(streams) + " |", "|---|" + "---|" * len(streams)]
    for lie in lying.LIES:
        cells = []
        for name in streams:
            own = [row["ratio"] for row in rows if row["stream"] == name and row["lie"] == lie.name]
            cells.append(f"{max(own):.3f}" if own else "")
        if any(cells):
            lines.append(f"| {lie.name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def page(rows: list[dict[str, Any]]) -> str:
    """One table for each level of sharing and number of rows: they are not mixed."""
    parts = [INTRODUCTION]
    for sharing, words in ((OPEN, "\n## Agents that share forecasts"), (MASKED, GROUPS)):
        own = [row for row in rows if row["sharing"] == sharing]
        parts += [words] if own else []
        for count in sorted({row["rows"] for row in own}):
            same = [row for row in own if row["rows"] == count]
            liars = ", ".join(str(i) for i in sorted({row["liar"] for row in same}))
            above = sum(row["ratio"] > LIMIT for row in same)
            parts.append(f"\n### {count} rows, liars {liars}\n\n{table(same)}\n")
            parts.append(f"Largest: {max(row['ratio'] for row in same):.3f}. Above {LIMIT}: {above} of {len(same)}.")
    return "\n".join(parts) + "\n"


def kept(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """All rows so far, with these in place of earlier ones of the same length, stream, lie and liar."""
    key = lambda row: (row["sharing"], row["rows"], row["stream"], row["lie"], row["liar"])  # noqa: E731
    before = json.loads(KEPT.read_text()) if KEPT.is_file() else []
    merged = {key(row): row for row in [*before, *rows]}
    return [merged[each] for each in sorted(merged)]


def main() -> None:
    parser = argparse.ArgumentParser(description="One of five agents lies: what it costs.", allow_abbrev=False)
    parser.add_argument("--streams", default="; ".join(lying.STREAMS), metavar="LIST", help="separated by ; (all)")
    parser.add_argument("--rows", type=int, default=2000, metavar="N", help="of each stream (2000)")
    parser.add_argument("--liars", default="0,1,2,3,4", metavar="LIST", help="agents that lie, in turn (all)")
    parser.add_argument("--lies", default="; ".join(lie.name for lie in lying.LIES), help="separated by ; (all)")
    parser.add_argument("--masked", action="store_true", help="agents share joint")
    given = parser.parse_args()
    lies = [lie for lie in lying.LIES if lie.name in given.lies.split("; ")]
    for name in given.streams.split("; "):
        rows = kept(measured(name, given.rows, [int(i) for i in given.liars.split(",")], given.masked, lies))
        KEPT.write_text(json.dumps(rows, indent=1) + "\n")
        PAGE.write_text(page(rows))
    print(f"wrote {KEPT.name} and {PAGE.name}")


if __name__ == "__main__":
    main()
