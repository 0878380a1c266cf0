"""`nashcast demo`: owners with private inputs forecast together, on a simulated stream and on exchange rates.

With --federated: five owners with one private input each, in separate processes. With --live: twenty streams in one
service, and its page. Both are in `examples/demos` of a source checkout.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from nashcast.cli.shared.checkout import from_checkout
from nashcast.cli.shared.colours import title
from nashcast.cli.shared.printed import print_json
from nashcast.cli.shared.progress import Progress
from nashcast.errors import InvalidInput

STEPS = 400


def add_to(commands) -> None:
    demo = commands.add_parser(
        "demo",
        help="owners with private inputs forecast together",
        description="Owners with one private input each forecast one target: each alone, their mixture, together by "
        "the joint game, and one regression over all inputs pooled; on a simulated stream and on exchange rates of "
        "the European Central Bank. Then the rates ahead with bounds, and each owner's contribution.",
    )
    demo.add_argument(
        "--federated", action="store_true",
        help="five owners with private sensors instead, in separate processes with hub and broker: their gain, and "
        "what each party sees of the others (source checkout only)",
    )  # fmt: skip
    demo.add_argument(
        "--live", action="store_true",
        help="twenty streams in one service instead, its page in the browser; one drifts, one loses an agent "
        "(source checkout only)",
    )  # fmt: skip
    demo.add_argument(
        "--seconds", type=float, default=60.0, metavar="N", help="seconds of the live run (default: %(default)g)"
    )
    demo.add_argument(
        "--port", type=int, default=0, metavar="N", help="port of the live run's page (default: any free port)"
    )
    demo.add_argument("--no-browser", action="store_true", help="only print the address of the live run's page")
    demo.add_argument(
        "--output", metavar="FOLDER",
        help="folder for a page and figures of the run, with matplotlib and plotly: nashcast[report] (default: none)",
    )  # fmt: skip
    demo.add_argument("--json", action="store_true", help="print one JSON object")
    demo.add_argument("--seed", type=int, default=2024, metavar="N", help="random seed (default: %(default)s)")
    demo.add_argument(
        "--steps",
        type=int,
        metavar="N",
        help="steps of each stream (default: 400; with --federated: 300)",
    )
    demo.add_argument("--horizon", type=int, default=24, metavar="N", help="days ahead (default: %(default)s)")
    demo.set_defaults(run=run)


def run(chosen: argparse.Namespace) -> None:
    from nashcast import validation as check

    check.integer("--seed", chosen.seed, min=0)
    if chosen.federated and chosen.live:
        raise InvalidInput("demo", "--federated with --live", "Pass one of them.")
    if chosen.federated or chosen.live:
        from_checkout("examples", "demos.federated" if chosen.federated else "demos.live").run(chosen)
    else:
        run_owners(chosen)


def run_owners(chosen: argparse.Namespace) -> None:
    from nashcast import validation as check
    from nashcast.datasets import ecb_desks, four_owners
    from nashcast.evaluation.showcase import ahead, show
    from nashcast.evaluation.showcase_study import summary

    steps = check.integer("--steps", STEPS if chosen.steps is None else chosen.steps, min=100)
    horizon = check.integer("--horizon", chosen.horizon, min=1, max=100)
    progress = Progress(shown=not chosen.json and sys.stderr.isatty())
    simulated, rates = four_owners(steps, seed=chosen.seed), ecb_desks(steps=steps)
    results = []
    for stream, names in ((simulated, [f"owner {k}" for k in range(1, 5)]), (rates, rates.input_names)):
        results.append(show(stream, names, lambda done, total, name=stream.name: progress(name, done, total)))
        if not chosen.json:
            progress.clear()
            print(title(page(results[-1], _ABOUT[len(results) - 1])), flush=True)
    following = ahead(rates, rates.input_names, horizon, lambda done, total: progress("days ahead", done, total))
    progress.clear()
    written = [] if chosen.output is None else write_page(results, following, chosen)
    if chosen.json:
        plain = [
            {
                **{name: value for name, value in result._asdict().items() if name != "squares"},
                "trust": [each._asdict() for each in result.trust],
            }
            for result in results
        ]
        print_json({"streams": plain, "ahead": following._asdict(), "files": [str(path) for path in written]})
    else:
        print(title(ahead_page(following)))
        print(title(trust_page(results[-1])))
        print("\n" + "\n".join(summary(result) for result in results))
        for path in written:
            print(f"wrote {path}")


def write_page(results, following, chosen: argparse.Namespace) -> list[Path]:
    """The record of the run, and its page and figures."""
    from nashcast.evaluation.showcase_study import study_of_showcase
    from nashcast.records import study
    from nashcast.reports.report import write_report

    made = study_of_showcase(results, following, f"nashcast demo --seed {chosen.seed}", chosen.seed)
    return write_report(study.write(chosen.output, made), formats=("html", "png"))


_ABOUT = (
    "Simulated. The target is the sum of four inputs with signs + - + -, and noise; each owner sees one input.",
    "Recorded. US dollars for a euro, from the same day's change of five other currencies; each desk sees one.",
)


def page(result, about: str) -> str:
    base = result.errors["persistence"]
    lines = [f"\n{result.stream}, {result.steps} steps", f"  {about}", f"  {'':28}{'MSE':>11}{'÷ persistence':>16}"]
    lines += [f"  {name:28}{error:11.3e}{error / base:16.3f}" for name, error in result.errors.items()]
    return "\n".join(lines)


def ahead_page(ahead) -> str:
    """A selection of the steps ahead; --json prints all of them."""
    count = len(ahead.forecast)
    shown = [h for h in (1, 2, 3, 6, 12, 18) if h < count] + [count]
    lines = [f"\n{ahead.stream}, last {ahead.last:.4f}; days ahead with 80 % bounds"]
    for h in shown:
        low, middle, high = (part[h - 1] for part in (ahead.low, ahead.forecast, ahead.high))
        lines.append(f"  {h:4}{low:12.4f}{middle:12.4f}{high:12.4f}")
    return "\n".join(lines)


def trust_page(result) -> str:
    base = result.errors["persistence"]
    lines = ["\nWhom to trust", f"  {'':20}{'own ÷ persistence':>18}{'weight':>9}{'error without it':>18}"]
    for each in result.trust:
        lines.append(f"  {each.name:20}{each.error / base:18.3f}{each.weight:9.3f}{each.loss_without:+18.1%}")
    return "\n".join(lines)
