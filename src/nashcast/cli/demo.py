"""`nashcast demo`: five agents of different families, federated on a drifting series and on a real one."""

from __future__ import annotations

import argparse
import sys

from nashcast.cli.printed import print_json
from nashcast.cli.progress import Progress


def add_to(commands) -> None:
    demo = commands.add_parser(
        "demo",
        help="five agents federated on a drifting and on a real stream",
        description="Federate five agents of different families on the concept-shift series and on euro exchange "
        "rates: errors with and without the game, of each agent alone and of persistence; weights; certificate.",
    )
    demo.add_argument("--json", action="store_true", help="print one JSON object")
    demo.add_argument("--seed", type=int, default=2024, metavar="N", help="seed of everything random (2024)")
    demo.add_argument("--steps", type=int, default=2000, metavar="N", help="days of the exchange rates (2000)")
    demo.set_defaults(run=run)


def run(chosen: argparse.Namespace) -> None:
    from nashcast.experiments.showcase import show
    from nashcast.maths import check
    from nashcast.streams import concept_shift, ecb_rates

    check.whole("--seed", chosen.seed, least=0)
    check.whole("--steps", chosen.steps, least=100)
    if not chosen.json:
        print("The first run compiles for up to a minute; later ones take seconds.", file=sys.stderr, flush=True)
    results, progress = [], Progress(shown=not chosen.json and sys.stderr.isatty())
    for stream in (concept_shift(target=1), ecb_rates(steps=chosen.steps)):
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
