"""What the paper leaves to future work, measured; writes docs/explanation/future-work.md."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import numpy as np

import nashcast as nc
from nashcast.agents.lookback.paper_agent import PaperAgent
from nashcast.games.joint import joint_equilibrium
from nashcast.paper.runs import ETA, KAPPA, encoders_of, stream_of
from nashcast.paper.settings import DATASETS, SEEDS
from nashcast.paper.studies.table import bold

PAGE = Path(__file__).parents[1] / "docs" / "explanation" / "future-work.md"


def static_setting(rows: int = 4000) -> list[tuple]:
    """Four owners of one input each, independent rows: their standing decoders against one pooled regression."""
    found = []
    for correlation in (0.0, 0.5, 0.9):
        rng = np.random.default_rng(1)
        shared = rng.standard_normal((rows, 1))
        X = np.sqrt(correlation) * shared + np.sqrt(1 - correlation) * rng.standard_normal((rows, 4))
        y = X @ np.array([1.0, -1.0, 1.0, -1.0]) + 0.1 * rng.standard_normal(rows)
        betas, information = [np.zeros(1)] * 4, [np.eye(1)] * 4
        errors = np.empty(rows)
        for t in range(rows):
            Z = [X[t, i].reshape(1, 1) for i in range(4)]
            errors[t] = y[t] - sum(float(z[0, 0] * beta[0]) for z, beta in zip(Z, betas, strict=True))
            moves = joint_equilibrium(Z, information, errors[t : t + 1]).moves
            betas = [beta + move for beta, move in zip(betas, moves, strict=True)]
            information = [G + z.T @ z for G, z in zip(information, Z, strict=True)]
        late = slice(rows // 2, rows)
        alone = min(np.mean((y - X[:, i] * (X[:, i] @ y) / (X[:, i] @ X[:, i]))[late] ** 2) for i in range(4))
        pooled = np.mean((y - X @ np.linalg.lstsq(X, y, rcond=None)[0])[late] ** 2)
        found.append((correlation, np.mean(errors[late] ** 2), pooled, alone))
    return found


def population(sizes=(10, 100, 1_000, 10_000, 100_000, 1_000_000)) -> list[tuple]:
    """Agents drawn from one population, weights 1/N, effort γ/N: the exact mixture against that of the largest N."""
    found, T, d = [], 3, 2
    rng = np.random.default_rng(2)
    Z, y = rng.standard_normal((T, sizes[-1], 1, d)) + 0.5, np.array([[1.0], [0.5], [-0.5]])

    def mixture(agents: np.ndarray) -> tuple[np.ndarray, float]:
        N, begun = len(agents), time.thread_time()
        w = np.full((T, N), 1.0 / N)
        solved = nc.solve_game(np.ascontiguousarray(Z[:, agents]), w, y, np.zeros(1), ridge=2.0 / N, compiled=False)
        return np.einsum("tn,tnp->tp", w, solved.forecasts[1:]).ravel(), time.thread_time() - begun

    limit, _ = mixture(np.arange(sizes[-1]))
    for N in sizes:
        apart, seconds = [], 0.0
        for _ in range(1 if sizes[-1] == N else 5):
            agents = rng.choice(sizes[-1], N, replace=False) if sizes[-1] > N else np.arange(N)
            found_mixture, seconds = mixture(agents)
            apart.append(np.abs(found_mixture - limit).max())
        found.append((N, float(np.mean(apart)), seconds))
    return found


def rewriting_the_past() -> list[tuple]:
    """Random features, five agents, the paper's streams: agents also replace their past forecasts by the game's."""
    found = []
    for dataset in DATASETS:
        for every in (1, 5):
            setting = replace(
                bold("rfn", dataset, 5, True), every=every, rounds=500 if dataset in ("boc", "ett") else None
            )
            stream, errors = stream_of(setting), {}
            for rewrite in (False, True):
                game = nc.LookbackGame(lookback=setting.lookback, every=every, rewrite_past=rewrite)
                runs = []
                for seed in SEEDS[:1]:
                    agents = [
                        PaperAgent(each, ridge=setting.ridge, decay=setting.decay, window=setting.window)
                        for each in encoders_of(setting, seed)
                    ]
                    federation = nc.paper_federation(
                        agents, game=game, ridge=KAPPA, budget=ETA, y_dim=stream.targets.shape[1], start=stream.start,
                        seed=seed, coverages=(),
                    )  # fmt: skip
                    with np.errstate(all="ignore"):
                        runs.append(federation.replay(stream.inputs, stream.targets).mse)
                errors[rewrite] = float(np.mean(runs))
            found.append((dataset, every, errors[False], errors[True]))
    return found


def beyond_linear(rows: int = 3000, hidden: int = 8) -> list[tuple]:
    """Four owners with a hidden layer each; the game moves decoders alone, or decoders and layers together.

    h = tanh(Vx + v), forecast Σ hβ. Around the present (V, v, β) the forecast is linear in all of them, so their joint
    step is the same game on the features [h, ∂(hβ)/∂v, ∂(hβ)/∂V].
    """
    found = []
    for moves_layers in (False, True):
        rng = np.random.default_rng(3)
        X = rng.uniform(-2, 2, (rows, 4))
        y = np.sin(2 * X).sum(axis=1) + 0.05 * rng.standard_normal(rows)
        V, v = rng.standard_normal((4, hidden)), rng.standard_normal((4, hidden))
        size = hidden * (3 if moves_layers else 1)
        beta, information = np.zeros((4, hidden)), [5.0 * np.eye(size) for _ in range(4)]
        errors = np.empty(rows)
        for t in range(rows):
            h = np.tanh(V * X[t][:, None] + v)
            slope = (1 - h**2) * beta
            parts = [h, slope, slope * X[t][:, None]] if moves_layers else [h]
            Z = [np.concatenate([part[i] for part in parts])[None] for i in range(4)]
            errors[t] = y[t] - (h * beta).sum()
            steps = joint_equilibrium(Z, information, errors[t : t + 1]).moves
            information = [0.999 * G + z.T @ z for G, z in zip(information, Z, strict=True)]
            for i, step in enumerate(steps):
                beta[i] += step[:hidden]
                if moves_layers:
                    v[i] += step[hidden : 2 * hidden]
                    V[i] += step[2 * hidden :]
        found.append(
            ("decoders and last hidden layers" if moves_layers else "decoders", np.mean(errors[rows // 2 :] ** 2))
        )
    return found


def table(columns, rows) -> str:
    def cell(value):
        return f"{value:.3g}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)

    lines = [columns, ["---"] * len(columns), *[[cell(value) for value in row] for row in rows]]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


TEXT = """# What the paper leaves to future work

Written by `python benchmarks/future_work.py`; one seed unless said, and every number is what that command measured.

## The static setting
Rows are independent and there is no clock to look back on. The [joint game](joint-game.md) is then a standing decoder:
each agent keeps what it has learnt, and every step is the equilibrium of one row. Four owners of one input each, 4000
rows, mean squared error of the second half; the variance of the noise is 0.01.

{static}

With strongly correlated inputs the plain game is slow; that is what its boldness is for.

## A large population
The exact equilibrium costs O(N). With weights 1/N an agent's influence falls as 1/N, and so does what it does for the
common forecast, unless its effort is as cheap: γ/N. The mixture of N agents drawn from one population then tends to a
limit, the mean-field game, as 1/√N. The limit here is the exact game of the whole population of 10⁶ agents.

{population}

## Rewriting the past
`LookbackGame(rewrite_past=True)`: agents also replace their past forecasts by the game's. Random features, five agents,
the paper's bold settings, seed 2024, 500 steps of the recorded series; mean squared error.

{rewriting}

With a game at every step it changes nothing, since window decoders never reach the output (erratum 9). With rarer games
it helps or changes nothing.

## Beyond linear read-outs
Agents whose last hidden layer takes one game-driven step. Around its present weights an agent's forecast is linear in
its decoder and in its layer, so their joint step is the same game on more features. Four owners, target Σ sin 2x_i,
3000 rows, mean squared error of the second half; the variance of the noise is 0.0025. The code is `beyond_linear` in
that file.

{beyond}
"""


def main() -> None:
    static = ["correlation of the inputs", "joint game", "one pooled regression, in hindsight", "best owner alone"]
    text = TEXT.format(
        static=table(static, [tuple(float(value) for value in row) for row in static_setting()]),
        population=table(["agents", "mixture's distance from the limit", "seconds a game, NumPy"], population()),
        rewriting=table(["dataset", "steps between games", "as in the paper", "past rewritten"], rewriting_the_past()),
        beyond=table(["what the game moves", "error"], [(name, float(error)) for name, error in beyond_linear()]),
    )
    PAGE.write_text(text)
    print(text)


if __name__ == "__main__":
    main()
