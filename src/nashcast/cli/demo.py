"""`nashcast demo`: five agents of different families, federated on a drifting series and on a real one.

With --federated: three organisations with an agent each, in processes of their own.
With --live: four of them behind the service, and its page.
"""

from __future__ import annotations

import argparse
import logging
import sys

from nashcast.cli.printed import print_json
from nashcast.cli.progress import Progress
from nashcast.errors import InvalidInput


def add_to(commands) -> None:
    demo = commands.add_parser(
        "demo",
        help="five agents federated on a drifting and on a real stream",
        description="Federate five agents of different families on the concept-shift series and on euro exchange "
        "rates: errors with and without the game, of each agent alone and of persistence; weights; certificate.",
    )
    demo.add_argument(
        "--federated", action="store_true",
        help="three organisations instead, with a hub, a broker and agents in processes of their own; one is killed",
    )  # fmt: skip
    demo.add_argument(
        "--live", action="store_true",
        help="four organisations behind the service instead, its page in the browser; one agent dies and comes back",
    )  # fmt: skip
    demo.add_argument("--seconds", type=float, default=60.0, metavar="N", help="of the live run (60)")
    demo.add_argument("--port", type=int, default=0, metavar="N", help="of the live run's page (any that is free)")
    demo.add_argument("--no-browser", action="store_true", help="only print the address of the live run's page")
    demo.add_argument("--json", action="store_true", help="print one JSON object")
    demo.add_argument("--seed", type=int, default=2024, metavar="N", help="seed of everything random (2024)")
    demo.add_argument(
        "--steps", type=int, metavar="N", help="days of the exchange rates (2000); of the federated run (200)"
    )
    demo.set_defaults(run=run)


def run(chosen: argparse.Namespace) -> None:
    from nashcast import validation as check
    from nashcast.experiments.showcase import show
    from nashcast.streams import concept_shift, ecb_rates

    check.integer("--seed", chosen.seed, min=0)
    if chosen.federated and chosen.live:
        raise InvalidInput("demo", "--federated with --live", "Pass one of them.")
    if chosen.federated:
        run_federated(chosen)
        return
    if chosen.live:
        run_live(chosen)
        return
    steps = check.integer("--steps", 2000 if chosen.steps is None else chosen.steps, min=100)
    if not chosen.json:
        print("The first run compiles for up to a minute; later ones take seconds.", file=sys.stderr, flush=True)
    results, progress = [], Progress(shown=not chosen.json and sys.stderr.isatty())
    for stream in (concept_shift(target=1), ecb_rates(steps=steps)):
        results.append(show(stream, chosen.seed, lambda done, total, name=stream.name: progress(name, done, total)))
        if not chosen.json:
            print(page(results[-1]), flush=True)
    if chosen.json:
        print_json({"streams": [result._asdict() for result in results]})


def page(result) -> str:
    base = result.errors["persistence"]
    lines = [f"\n{result.stream}, {result.steps} steps", f"  {'':32}{'MSE':>12}{'÷ persistence':>16}"]
    for name, error in result.errors.items():
        ratio = error / base
        shown = f"{'diverges':>12}{'–':>16}" if ratio > 1e3 else f"{error:12.3e}{ratio:16.2f}"
        lines.append(f"  {name:32}{shown}")
    weights = ", ".join(f"{name} {weight:.3f}" for name, weight in result.weights.items())
    lines.append(f"  last weights: {weights}")
    lines.append(
        f"  certificate of the last game: nobody gains more than {result.certificate:.0e} of its cost by deviating"
    )
    return "\n".join(lines)


def run_federated(chosen: argparse.Namespace) -> None:
    from nashcast import validation as check
    from nashcast.experiments.federated_show import show
    from nashcast.streams import concept_shift

    steps = check.integer("--steps", 200 if chosen.steps is None else chosen.steps, min=20)
    logging.getLogger("nashcast.remote").setLevel(logging.ERROR)  # what happens is told below
    progress = Progress(shown=not chosen.json and sys.stderr.isatty())

    def say(line: str) -> None:
        if not chosen.json:
            progress.clear()
            print(line, file=sys.stderr, flush=True)

    say("The first run compiles for up to a minute; later ones take about ten seconds.")
    try:
        shown = show(
            concept_shift(steps, target=1), chosen.seed, say, lambda done, total: progress("steps", done, total)
        )
    finally:
        progress.clear()
    if chosen.json:
        print_json(shown._asdict())
    else:
        print(federated_page(shown))


def members_table(shown) -> list[str]:
    base = shown.errors["persistence"]
    lines = [f"  {'':14}{'model':18}{'shares':11}{'MSE':>11}{'÷ persistence':>15}{'weight':>9}{'sat out':>9}"]
    for member in shown.members:
        name, error = member["name"], shown.errors[member["name"]]
        numbers = f"{error:11.3e}{error / base:15.2f}{shown.weights[name]:9.3f}{len(shown.sat_out[name]):9}"
        lines.append(f"  {name:14}{member['encoder']:18}{member['share']:11}{numbers}")
    for name in ("federation", "persistence"):
        lines.append(f"  {name:43}{shown.errors[name]:11.3e}{shown.errors[name] / base:15.2f}")
    return lines


def federated_page(shown) -> str:
    killed = shown.killed
    lines = [
        f"\n{shown.stream}, {shown.steps} steps, a spread game at each; everybody in a process of its own",
        *members_table(shown),
    ]
    for name, steps in shown.sat_out.items():
        if steps:
            lines.append(f"  {name} sat out: {spans(steps)}")
    back = "did not come back" if killed["seconds"] is None else f"was back after {killed['seconds']:.1f} s"
    lines.append(f"  {killed['agent']} was killed at step {killed['killed_at_step']} and {back}")
    lines.append(f"  greatest difference from one process with the same absences: {shown.difference:.0e}")
    lines.append("\nWhat each has seen of the others, in bytes of numbers")
    for row in shown.seen:
        kinds = ", ".join(f"{kind} {count:,}" for kind, count in row["kinds"].items()) or "nothing"
        lines.append(f"  {row['party']:14}of {row['of']:14}{row['bytes']:9,}  {kinds}")
    lines.append("\nWhat has left each agent, by its owner's log")
    for name, left in shown.left.items():
        lines.append(f"  {name:14}{left['bytes']:9,} bytes in all: {', '.join(left['named'])}")
    lines.append(f"  nobody's: {', '.join(shown.stayed)}")
    return "\n".join(lines)


def run_live(chosen: argparse.Namespace) -> None:
    from nashcast import validation as check
    from nashcast.service.extras import need_server

    need_server()
    from nashcast.service.live_show import show

    seconds = check.number("--seconds", chosen.seconds, min=1.0)
    logging.getLogger("nashcast.remote").setLevel(logging.ERROR)  # what happens is told below
    progress = Progress(shown=not chosen.json and sys.stderr.isatty())

    def say(line: str) -> None:
        progress.clear()
        print(line, file=sys.stderr, flush=True)

    def visit(page: str) -> None:
        import webbrowser

        if not chosen.no_browser and not webbrowser.open(page):
            say("no browser could be opened: open that address in one")

    say("Starting six processes; the first run compiles for up to a minute. Ctrl-C ends it.")
    try:
        shown = show(
            seconds, check.integer("--port", chosen.port, min=0), chosen.seed, say, visit,
            lambda done, total: progress("steps", done, total),
        )  # fmt: skip
    finally:
        progress.clear()
    if chosen.json:
        print_json(shown._asdict())
    else:
        print(live_page(shown))


def live_page(shown) -> str:
    killed = shown.killed
    lines = [
        f"\n{shown.steps} steps through broker, hub, service and journal{', stopped early' if shown.stopped else ''}",
        *members_table(shown),
    ]
    lines.append(f"  {shown.covered:.0%} of the targets lay inside their 90 % interval")
    if killed["killed_at_step"] is not None:
        back = "did not come back" if killed["seconds"] is None else f"was back after {killed['seconds']:.1f} s"
        lines.append(f"  {killed['agent']} was killed at step {killed['killed_at_step']} and {back}")
    return "\n".join(lines)


def spans(steps: list[int]) -> str:
    """Whole numbers in order, neighbours together.

    >>> spans([3, 4, 5, 9])
    '3–5, 9'
    """
    found: list[list[int]] = []
    for step in steps:
        if found and step == found[-1][1] + 1:
            found[-1][1] = step
        else:
            found.append([step, step])
    return ", ".join(f"{first}" if first == last else f"{first}–{last}" for first, last in found)
