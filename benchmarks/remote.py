"""`make remote`: measure agents in other processes, and write benchmarks/results/remote.md and the table in
docs/reference/measured.md from it.

    python benchmarks/remote.py [--write]

With --write nothing is measured: the pages are written again from the last benchmarks/results/remote.json.
"""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import sys
from pathlib import Path

from speed.remote_command import PARTS, line, table_head
from speed.remote_steps import rows

from nashcast import __version__
from nashcast.remote.broker.running.server import server_program

ROOT = Path(__file__).parents[1]
KEPT, PAGE = ROOT / "benchmarks" / "results" / "remote.json", ROOT / "benchmarks" / "results" / "remote.md"
MEASURED = ROOT / "docs" / "reference" / "measured.md"
BEGIN, END = "<!-- remote: begin (written by `make remote`) -->", "<!-- remote: end -->"
SIZES, STEPS, EQUAL_STEPS = (2, 5, 20, 50), 300, 2000
WORDS = {
    "equality": "## The same numbers\n\nFive agents of different families, state files on: the greatest difference of "
    "any forecast from the same run in one process. Beyond 1e-12 the benchmark fails.",
    "speed": """## Time per step

Agents with 3 random features, a game of look-back 3 at every step. A step is `predict_one` and `learn_one` at the hub.

- bare: one round of `request` and `respond` of nats-py, to all agents at once, over the very connections of hub and
  agents, answered by the callback in each agent's process with zeros, requests and replies as long as those of the
  steps on average;
- ten steps and ten bare rounds by turns, so that what else the machine does falls on both; the first bare round after
  a step is not counted, as it may have to wait for what the step left to be done;
- ratio: of the step's p50 and p99 to the bare round's; aim: the most that we want of it, 2 for one turn a step
  (central), 7 for a spread game, whose rows are from before its turns fell from 2T + 1 to T + 1;
- hub, broker and all agents share the cores named above: the arithmetic of all of them is in the ratio;
- priority: real-time if the processes went before all others on the machine, else usual.""",
    "traffic": "## Messages and bytes per step\n\nFive agents, counted at the hub's connection; one message out and "
    "one in are the input on its way into the durable stream. A spread game's do not depend on the features.",
}


def machine() -> dict:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.is_file() else []
    names = [row.split(":")[1].strip() for row in lines if row.startswith("model name")]
    server = subprocess.run([server_program(), "--version"], capture_output=True, text=True, check=True).stdout
    return {
        "processor": names[0] if names else platform.processor(),
        "cores": len(names) or 1,
        "priority": "usual" if os.sched_getscheduler(0) == os.SCHED_OTHER else "real-time",
        "python": platform.python_version(),
        "nats-server": server.split()[-1].lstrip("v"),
        "nashcast": __version__,
    }


def page(record: dict) -> str:
    about = ", ".join(f"{key} {value}" for key, value in record["machine"].items())
    parts = ["# Agents in other processes", f"Written by `make remote`; do not edit. {about}."]
    for part in PARTS:
        parts += [WORDS[part], "\n".join([*table_head(part), *(line(part, row) for row in record[part])])]
    return "\n\n".join(parts) + "\n"


def block(record: dict) -> str:
    """The table of docs/reference/measured.md: without state files, and beside it the spread game's bytes."""
    machine = record["machine"]
    cores, priority = f"{machine['cores']} cores of an {machine['processor']}", machine["priority"]
    lines = [
        "Time for a step with agents in processes of their own, TLS on both sides, look-back 3; *bare* is the round",
        f"trip of nats-py alone, over the same connections in the same run. All on {cores}, priority {priority}.",
        "",
        "| agents | bare round | central game | | spread game | |",
        "|---:|---:|---:|---:|---:|---:|",
    ]
    found = {(row["agents"], row["game"]): row for row in record["speed"] if not row["states"]}
    for agents in sorted({agents for agents, _ in found}):
        central, spread = found[agents, "central"], found[agents, "spread"]
        cells = [f"{agents}", f"{central['bare_ms'][0]:.2f} ms"]
        for row in (central, spread):
            cells += [f"{row['step_ms'][0]:.1f} ms", f"{row['ratio'][0]:.1f} × (aim {row['aim']})"]
        lines.append("| " + " | ".join(cells) + " |")
    worst = max(row["difference"] for row in record["equality"])
    steps, told = record["equality"][0]["steps"], f"at most {worst:.0e}" if worst else "nothing, to the bit"
    sent = {row["features"]: sum(row["bytes"]) for row in record["traffic"] if row["game"] == "spread"}
    same = len(set(sent.values())) == 1
    lines += [
        "",
        f"Over {steps} steps of both games five agents' forecasts differ from one process's by {told}. "
        f"A spread game takes {next(iter(sent.values())):,.0f} bytes a step for five agents, "
        + (f"be it {' or '.join(map(str, sent))} features that each has." if same else f"by features: {sent}."),
    ]
    return "\n".join(lines)


def measured_with(record: dict, text: str) -> str:
    pattern = re.escape(BEGIN) + ".*?" + re.escape(END)
    return re.sub(pattern, lambda _: f"{BEGIN}\n{block(record)}\n{END}", text, flags=re.S)


def main() -> None:
    if "--write" not in sys.argv[1:]:
        record: dict = {"machine": machine()}
        for part, row in rows(PARTS, SIZES, STEPS, EQUAL_STEPS):
            record.setdefault(part, []).append(row)
            print(line(part, row), flush=True)
        KEPT.write_text(json.dumps(record, indent=1) + "\n")
    record = json.loads(KEPT.read_text())
    PAGE.write_text(page(record))
    MEASURED.write_text(measured_with(record, MEASURED.read_text()))
    print(f"wrote {PAGE.name} and the table in {MEASURED.name}")


if __name__ == "__main__":
    main()
