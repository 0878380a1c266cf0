"""Write the README's figures from the last `make bench`; nothing in that block is typed by hand."""

from __future__ import annotations

import json
import re
from pathlib import Path

from nashcast.reports.formats import duration

ROOT = Path(__file__).parents[1]
BEGIN, END = "<!-- figures: begin (written by `make figures`) -->", "<!-- figures: end -->"


def block(record: dict) -> str:
    def row(agents, noisy):
        chosen = (agents, 3, 3, noisy)
        rows = record["rows"]
        return next(r for r in rows if (r["agents"], r["lookback"], r["features"], r["noisy"]) == chosen)

    machine = record["machine"]
    cores = f"{machine['threads']} cores of an {machine['processor']}"
    headings = ("agents", "features", "in compiled code", "from Python", "the paper's matrices in NumPy", "floor ×")
    lines = [
        f"Time for one exact equilibrium, look-back 3, 3 features; best of several runs, one `make bench` on {cores}.",
        "",
        "| " + " | ".join(headings) + " |",
        "|---:|---|---:|---:|---:|---:|",
    ]
    for agents in (5, 20, 1_000, 1_000_000):
        for noisy in (False, True):
            found = row(agents, noisy)
            dense = found["dense_seconds"]
            cells = (
                f"{agents:,}",
                "random" if noisy else "deterministic",
                duration(found["seconds_per_game"]),
                duration(found["seconds_from_python"]),
                "–" if dense is None else f"{duration(dense)} ({dense / found['seconds_per_game']:,.0f} ×)",
                f"{found['floor_ratio']:.0f}" if agents >= 1_000 else "–",
            )
            lines.append("| " + " | ".join(cells) + " |")
    growth = record["growth_exponents"]
    peak = max(row(1_000_000, noisy)["peak_mb"] for noisy in (False, True))
    powers = f"{growth['deterministic']:.2f} (deterministic) and {growth['noisy']:.2f} (random)"
    lines += [
        "",
        f"Time grows as agents to the power {powers} between 10³ and 10⁶; a million agents need {peak / 1024:.1f} GB.",
        "Floor: one pass over the game's inputs and outputs at the copy bandwidth measured at the same moment.",
    ]
    return "\n".join(lines)


def readme_with(record: dict, readme: str) -> str:
    pattern = re.escape(BEGIN) + ".*?" + re.escape(END)
    return re.sub(pattern, lambda _: f"{BEGIN}\n{block(record)}\n{END}", readme, flags=re.S)


def main() -> None:
    record = json.loads((ROOT / "benchmarks" / "game.json").read_text())
    path = ROOT / "README.md"
    path.write_text(readme_with(record, path.read_text()))
    print(f"wrote the figures in {path.name}")


if __name__ == "__main__":
    main()
