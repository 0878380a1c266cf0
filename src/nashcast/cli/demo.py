"""`nashcast demo`: one look-back game on a drifting series, its equilibrium, its certificate and its speed."""

from __future__ import annotations

import argparse
import json


def add_to(commands) -> None:
    demo = commands.add_parser(
        "demo",
        help="a five-agent game on a drifting series",
        description="Solve a five-agent look-back game on a drifting series; print the equilibrium, its certificate "
        "and the time it takes beside the paper's dense matrices.",
    )
    demo.add_argument("--json", action="store_true", help="print one JSON object")
    demo.add_argument("--seed", type=int, default=2024, metavar="N", help="seed of the random agents (2024)")
    demo.add_argument("--lookback", type=int, default=4, metavar="T", help="steps the game looks back (4)")
    demo.set_defaults(run=run)


def run(chosen: argparse.Namespace) -> None:
    from nashcast.maths import check

    check.whole("--seed", chosen.seed, least=0)
    if not 1 <= chosen.lookback <= 40:
        raise check.InvalidInput("--lookback", f"{chosen.lookback}", "Pass a whole number from 1 to 40.")
    if not chosen.json:
        print("Compiling and solving (compiled once, then kept) …", flush=True)
    result = _solve(chosen.seed, chosen.lookback)
    print(json.dumps(result) if chosen.json else _page(result))


def _solve(seed: int, lookback: int) -> dict:
    import numpy as np

    from nashcast.experiments.dense_oracle import dense_solver
    from nashcast.experiments.drifting_game import drifting_game
    from nashcast.experiments.game_speed import best_time
    from nashcast.maths.certificate import certify
    from nashcast.maths.game import solve_game

    game = drifting_game(seed, lookback)
    solved = solve_game(*game.arguments(), **game.settings())
    certificate = certify(solved)
    costs, gains = certificate.costs(), certificate.gains()
    mixture = np.einsum("tn,tnp->tp", game.weights, solved.forecasts[1:])[:, 0]
    ours = best_time(lambda: solve_game(*game.arguments(), **game.settings()), 0.2)
    dense, difference = dense_solver(), None
    dense_seconds = None
    if dense is not None:
        arguments = game.for_dense_theorem()
        dense_seconds = best_time(lambda: dense(*arguments), 0.2)
        reference = np.concatenate(dense(*arguments).decoders)
        played = np.concatenate([np.concatenate(step) for step in zip(*solved.decoders, strict=True)])
        difference = float(np.abs(played - reference).max() / np.abs(reference).max())
    return {
        "targets": game.targets[:, 0].tolist(),
        "forecast": game.greedy.tolist(),
        "replayed": mixture.tolist(),
        "agents": [
            {
                "name": name,
                "features": game.features[i].shape[2],
                "weight": float(game.weights[-1, i]),
                "forecast": float(solved.forecasts[-1, i, 0]),
                "decoder_norm": float(np.linalg.norm(solved.decoders[i][-1])),
                "cost": float(costs[i]),
                "gain_from_deviating": float(gains[i]),
            }
            for i, name in enumerate(game.names)
        ],
        "worst_relative_gain": certificate.worst,
        "conditions": solved.conditions.tolist(),
        "seconds": ours,
        "dense_seconds": dense_seconds,
        "difference_to_dense": difference,
    }


def _page(result: dict) -> str:
    from nashcast.cli.bench import duration

    lines = ["", "The mixture over the game's window, as forecast at the time and as the game re-plays it in hindsight"]
    lines += ["  step   target   forecast   re-played"]
    rows = zip(result["targets"], result["forecast"], result["replayed"], strict=True)
    lines += [f"  {t + 1:4}{y:9.3f}{f:11.3f}{m:12.3f}" for t, (y, f, m) in enumerate(rows)]
    lines += ["", "The equilibrium at its last step"]
    lines += ["  agent             features   weight   forecast       ‖β‖       cost   gain from deviating"]
    lines += [
        f"  {a['name']:18}{a['features']:8}{a['weight']:9.3f}{a['forecast']:11.3f}{a['decoder_norm']:10.3f}"
        f"{a['cost']:11.4f}{a['gain_from_deviating']:22.1e}"
        for a in result["agents"]
    ]
    worst = result["worst_relative_gain"]
    lines += ["", f"Certificate: no agent can save more than {worst:.1e} of its cost by playing anything else."]
    conditions = ", ".join(f"{condition:.3g}" for condition in result["conditions"])
    lines += [f"Condition of the coupling matrix at each step: {conditions}."]
    speed = f"Speed: {duration(result['seconds'])} a game from Python"
    if result["dense_seconds"] is None:
        speed += "; the dense matrices to compare with come with the source checkout."
    else:
        ratio = result["dense_seconds"] / result["seconds"]
        speed += f"; the paper's dense matrices take {duration(result['dense_seconds'])}, {ratio:,.0f} times as long"
        speed += f" (largest relative difference {result['difference_to_dense']:.1e})."
    return "\n".join([*lines, speed])
