"""Write the figures of docs/reference/measured.md from the last `make bench` and `make reproduction`, and from 0.1."""

from __future__ import annotations

import json
import re
from pathlib import Path

from nashcast.reports.formats import duration
from nashcast.reports.markdown import markdown_table

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "reference" / "measured.md"
BEGIN, END = "<!-- figures: begin (written by `make figures`) -->", "<!-- figures: end -->"
PEERS_BEGIN, PEERS_END = "<!-- peers: begin (written by `make figures`) -->", "<!-- peers: end -->"
PAPER_BEGIN, PAPER_END = "<!-- paper: begin (written by `make reproduction`) -->", "<!-- paper: end -->"


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


def paper_block(studies: dict) -> str:
    """What came of reproducing the paper, counted from its tables."""

    def table(study, number=0):
        return studies[study]["tables"][number]["rows"]

    def back(row, kind, digits=4):
        printed, ours = row[f"printed_{kind}"], row[f"published_{kind}"]
        return f"{printed:.{digits - 1}e}" == f"{ours:.{digits - 1}e}"

    lines = [row for row in table("table1") if row["ours_game"] is not None]
    drawn = [row for row in lines if row["model"] != "Transformer"]
    random = [row for row in drawn if row["model"] == "RFN"]
    missed = [row for row in table("table1", 1) if f"{row['printed']:.3e}" != f"{row['bold']:.3e}"]
    searched = [row for row in missed if not row["found"].startswith("none")]
    none = sum(back(row, "none") for row in drawn)
    better = sum(row["ours_game"] < row["ours_none"] for row in lines)
    anchored = sum(row["anchored"] < row["ours_game"] for row in lines)
    naive = sum(row["persistence"] <= row["ours_game"] for row in lines)
    beaten = sum("▲" in row["mark"] for row in lines)
    times = {(row["model"], row["dataset"], row["game"]): row for row in table("runtime")}
    shown = [
        ("errors of random features with the game, as published: the printed four digits come back",
         f"{sum(back(row, 'game') for row in random)} of {len(random)}", "reproduce table1 --as-published"),
        ("errors without game, as published: with the bold setting, and with another one that the search found",
         f"{none} of {len(drawn)}, {len(searched)} more", "reproduce table1 --as-published"),
        ("the exact game is better than greedy agents without one", f"{better} of {len(lines)}", "reproduce table1"),
        ("anchoring at the last observation, without a game, is better than the game", f"{anchored} of {len(lines)}",
         "reproduce table1"),
        ("persistence is at least as good as the game", f"{naive} of {len(lines)}", "reproduce table1"),
        ("a simple baseline or anchoring beats both", f"{beaten} of {len(lines)}", "reproduce table1"),
    ]  # fmt: skip
    for model, dataset in (("RFN", "boc"), ("ESN", "periodic")):
        row = times[model, dataset, "yes"]
        words = f"{duration(row['printed'])} printed, {duration(row['ours'])} here"
        shown.append((f"a whole run with the game, five agents, {model} on {dataset}", words, "reproduce runtime"))
    result = ["| of the paper's lines | | `nashcast …` |", "|---|---:|---|"]
    return "\n".join(result + [f"| {what} | {found} | `{command}` |" for what, found, command in shown])


# Of the overview's columns; the page has all.
SHOWN = ("stream", "federation", "peer", "peer_mse", "ratio", "p", "near", "persistence_ratio")


def peers_block(declared: dict, held_out: dict) -> str:
    """The federation beside its best peer on every stream, and what that comes to."""

    def part(words: str, found: dict) -> str:
        overview = found["tables"][0]
        columns = [column for column in overview["columns"] if column["key"] in SHOWN]
        table = markdown_table({**overview, "columns": columns})
        notes = [f"- {note}" for note in found["notes"] if note.startswith("By the ")]
        seeds = f"mean over {len(found['seeds'])} seeds"
        return "\n".join([f"{words} (`{found['command']}`, {seeds}):", "", *notes, "", table])

    streams = len(held_out["tables"][0]["rows"])
    return "\n\n".join(
        [
            part(f"**{streams} streams it had never seen**", held_out),
            part("**The paper's streams and eight recorded ones**", declared),
        ]
    )


def page_with(record: dict, studies: dict | None, page: str, evaluations: tuple[dict, dict] | None = None) -> str:
    page = _between(BEGIN, END, block(record), page)
    if evaluations is not None:
        page = _between(PEERS_BEGIN, PEERS_END, peers_block(*evaluations), page)
    return page if studies is None else _between(PAPER_BEGIN, PAPER_END, paper_block(studies), page)


def _between(begin: str, end: str, text: str, page: str) -> str:
    return re.sub(re.escape(begin) + ".*?" + re.escape(end), lambda _: f"{begin}\n{text}\n{end}", page, flags=re.S)


def records() -> tuple[dict, dict | None]:
    """Of the last `make bench` and the last `make reproduction`."""
    paper = ROOT / "benchmarks" / "results" / "reproduction.json"
    game = json.loads((ROOT / "benchmarks" / "results" / "game.json").read_text())
    return game, json.loads(paper.read_text()) if paper.is_file() else None


def evaluations() -> tuple[dict, dict] | None:
    """Of 0.1: on the declared streams, and on those held out."""
    declared, held_out = (ROOT / "benchmarks" / "results" / f"{name}.json" for name in ("evaluation", "held-out"))
    if not declared.is_file() or not held_out.is_file():
        return None
    return json.loads(declared.read_text()), json.loads(held_out.read_text())


def main() -> None:
    PAGE.write_text(page_with(*records(), PAGE.read_text(), evaluations()))
    print(f"wrote the figures in {PAGE.name}")


if __name__ == "__main__":
    main()
