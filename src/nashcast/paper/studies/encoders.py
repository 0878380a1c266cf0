"""The paper's two remarks on echo states: features grow with ReLU, and are zero on unscaled data."""

from __future__ import annotations

import numpy as np

from nashcast.datasets import open_stream
from nashcast.evaluation.peers.baselines import mse
from nashcast.games.moments.features import ACTIVATIONS
from nashcast.paper.parallel_runs import Options
from nashcast.paper.published.draws import draw, echo_states
from nashcast.paper.published.torch_normals import TorchNormals
from nashcast.paper.runs import ANCHORED, federate
from nashcast.paper.settings import Setting, expected
from nashcast.records.study import Column, Figure, Line, Panel, Study, Table

FEATURES = 6
SETTING = Setting("esn", "brownian", 2, decay=0.1, ridge=10.0, window=2, noise=0.1, features=FEATURES, lookback=2)


def relu_growth(options: Options) -> Study:
    """Trajectories of Z_t = h(A x_t + B Z_{t-1} + b + σW_t) from standard normal A, B, b and inputs in [0, 1]."""
    printed = expected()["relu_growth"]
    steps, count = printed["steps"], printed["trajectories"]
    rows, arrays, lines = [], {"step": np.arange(1.0, steps + 1)}, []
    for y_dim in (1, 2, 5, 10):
        for activation in ("relu", "hard_sigmoid", "tanh"):
            largest = _largest(y_dim, activation, steps, count, options.seeds[0])
            rows.append(
                {"y_dim": y_dim, "activation": activation.replace("_", " "), "largest": float(largest[:, -1].max()),
                 "mean": float(largest[:, -1].mean())}
            )  # fmt: skip
            if activation == "relu":
                arrays[f"relu.{y_dim}"] = largest.mean(axis=0)
                lines.append(Line(f"y_dim {y_dim}", f"relu.{y_dim}", "step", "line+points"))
    columns = [
        Column("y_dim", "targets (size of B)", "int"), Column("activation", "activation"),
        Column("largest", "largest entry", "ratio"), Column("mean", "mean of the largest", "ratio"),
    ]  # fmt: skip
    notes = [
        f"Printed, for a size left open: largest {printed['largest']:.0f}, mean {printed['mean_largest']:.0f}.",
        "Growth depends on the size n of B, which is that of the target: its spectral radius is about √n.",
    ]
    panel = Panel("ReLU", "step", "mean largest entry of Z so far", lines, log_y=True)
    return Study(
        "relu-growth", "Growth of echo-state features with ReLU", "", seeds=list(options.seeds)[:1], notes=notes,
        settings={"features": FEATURES, "noise": 1.0, "inputs": "uniform in [0, 1], 3 of them"},
        tables=[Table(f"Largest entry of Z over {count} trajectories of {steps} steps", columns, rows)],
        figures=[Figure("relu-growth", "Growth with ReLU", "Means over trajectories; B has y_dim rows.", [panel])],
        arrays=arrays,
    )  # fmt: skip


def _largest(y_dim: int, activation: str, steps: int, count: int, seed: int) -> np.ndarray:
    """The largest entry so far, by trajectory and step."""
    normals, rng = TorchNormals(seed), np.random.default_rng(seed)
    act = ACTIVATIONS[activation].apply
    largest = np.empty((count, steps))
    for s in range(count):
        A, B, b = normals.draw(y_dim, 3), normals.draw(y_dim, y_dim), normals.draw(y_dim, FEATURES)
        Z, most = np.zeros((y_dim, FEATURES)), 0.0
        for t in range(steps):
            Z = act((A @ rng.random(3))[:, None] + B @ Z + b + normals.draw(1, FEATURES))
            most = max(most, float(np.abs(Z).max()))
            largest[s, t] = most
    return largest


def normalisation(options: Options) -> Study:
    """Echo states on Brownian motions with drift: raw and divided by their maxima, hard sigmoid and tanh."""
    rows, arrays, panels = [], {}, []
    cases = [
        (name, activation) for name in ("brownian", "brownian-normalised") for activation in ("hard_sigmoid", "tanh")
    ]
    for done, (name, activation) in enumerate(cases):
        options.tell("normalisation", done, len(cases))
        stream = open_stream(name)
        last = stream.persistence
        silent, errors, anchored, first = [], [], [], None
        for seed in options.seeds:
            draws = draw("esn", seed, 2, stream.inputs.shape[1], stream.targets.shape[1], FEATURES, len(stream.inputs))
            encoders = echo_states(draws, stream.inputs, SETTING.noise, activation)
            silent.append(np.mean([np.all(each.series == 0.0, axis=2).mean() for each in encoders]))
            found = federate(stream, encoders, SETTING.without_game(), seed)
            first = found if first is None else first
            played = federate(stream, encoders, SETTING, seed)
            errors.append([mse(each.forecasts, stream.targets) for each in (found, played)])
            anchored.append(federate(stream, encoders, SETTING, seed, ANCHORED).mse)
        naive = mse(last, stream.targets)
        none, game = np.mean(errors, axis=0) / naive
        rows.append(
            {"data": "divided by maxima" if name.endswith("normalised") else "raw",
             "activation": activation.replace("_", " "), "silent": float(np.mean(silent)),
             "none": float(none), "game": float(game), "anchored": float(np.mean(anchored)) / naive, "naive": naive}
        )  # fmt: skip
        assert first is not None
        for k in range(stream.targets.shape[1]):
            stem = f"{name}.{activation}.{k}"
            arrays |= {f"{stem}.y": stream.targets[:, k], f"{stem}.server": first.forecasts[:, k]}
            arrays |= {f"{stem}.{i}": first.agents[:, i, k] for i in range(2)}
            lines = [Line("target", f"{stem}.y"), Line("server", f"{stem}.server")]
            lines += [Line(f"agent {i + 1}", f"{stem}.{i}") for i in range(2)]
            shown = f"{rows[-1]['data']}, {rows[-1]['activation']}, y{k + 1}"
            panels.append(Panel(shown, "step", "value", lines))
    columns = [
        Column("data", "data"), Column("activation", "activation"), Column("silent", "rows of Z that are 0", "ratio"),
        Column("none", "no game ÷ persistence", "ratio"), Column("game", "game ÷ persistence", "ratio"),
        Column("anchored", "anchored ÷ persistence", "ratio"), Column("naive", "persistence", "error"),
    ]  # fmt: skip
    notes = [
        "Two echo-state agents, three targets. Where a row of Z is zero, the agent cannot move that target at all.",
        "Dividing by the maxima looks ahead; it is what the paper does.",
    ]
    return Study(
        "normalisation", "Echo states on unscaled data", "", seeds=list(options.seeds), notes=notes,
        settings=SETTING.described(),
        tables=[Table("Brownian motions with drift", columns, rows)],
        figures=[Figure("normalisation", "Server and agents without game",
                        "Forecasts of the first seed, without game.", panels, 3)],
        arrays=arrays,
    )  # fmt: skip
