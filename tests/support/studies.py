"""Records to report on: an ordinary study, one of every difficulty, and a run."""

from __future__ import annotations

import numpy as np

from nashcast.records.study import Column, Figure, Line, Panel, Study, Table

COLUMNS = [
    Column("method", "method"),
    Column("agents", "agents", "int"),
    Column("mse", "MSE", "error"),
    Column("ratio", "÷ persistence", "ratio"),
    Column("seconds", "time", "seconds"),
    Column("better", "better", "mark"),
]
ROWS = [
    {"method": "with game", "agents": 5, "mse": 4.49e-5, "ratio": 0.98, "seconds": 1.25, "better": "✓"},
    {
        "method": "without game",
        "agents": 5,
        "mse": float("inf"),
        "ratio": float("inf"),
        "seconds": 0.002,
        "better": None,
    },
    {"method": "persistence", "agents": None, "mse": 4.58e-5, "ratio": 1.0, "seconds": None, "better": None},
    {"method": "anchored, no game", "agents": 20, "mse": 7.9e-3, "ratio": 172.0, "seconds": 754, "better": None},
]
TABLE = Table("Errors of five agents", COLUMNS, ROWS, {"✓": "better than persistence"})


def example(**change) -> Study:
    """Three figures: lines of which one diverges, ratios as points, an ablation with few values of x."""
    rng = np.random.default_rng(7)
    t = np.arange(300)
    target = np.sin(t / 20)
    arrays = {
        "target": target,
        "game": target + 0.1 * rng.standard_normal(300),
        "no game": target + np.exp(t / 10) * np.sin(t),
        "ratio": np.exp(3 * rng.standard_normal(300)),
        "lookback": np.array([1.0, 2.0, 3.0, 5.0]),
        "mse": np.array([3e-3, 2e-3, 2.5e-3, 4e-3]),
        "flat": np.full(4, 2.2e-3),
    }
    forecasts = [Line("with game", "game"), Line("without game", "no game"), Line("target", "target")]
    ablation = [Line("random features", "mse", "lookback", "line+points"), Line("persistence", "flat", "lookback")]
    figures = [
        Figure(
            "forecasts",
            "Forecasts",
            "What came.",
            [Panel("a", "step", "y", forecasts[::2]), Panel("b", "step", "y", forecasts)],
            2,
        ),
        Figure(
            "ratios",
            "Ratios",
            "Above 1.",
            [Panel("", "step", "ratio", [Line("each step", "ratio", style="points")], log_y=True, reference=1.0)],
        ),
        Figure("lookback", "Look-back", "By T.", [Panel("", "look-back", "MSE", ablation, log_x=True, log_y=True)]),
    ]
    given = {
        "name": "example",
        "title": "Five agents on one stream",
        "command": "nashcast reproduce example --seeds 1,2",
        "seeds": [1, 2],
        "settings": {"agents": 5, "game": {"lookback": 3, "every": 1}},
        "seconds": 12.5,
        "notes": ["The game wins.", "By little."],
        "tables": [TABLE],
        "figures": figures,
        "arrays": arrays,
        "created": "2025-11-15T20:14:09+00:00",
        "versions": {"nashcast": "0.1", "numpy": "2.4"},
    }
    return Study(**{**given, **change})


EVIL = "</script><script>window.hacked = 1</script><img src=x onerror='window.hacked = 2'>"


def hostile() -> Study:
    """Every text of it tries to be markup."""
    line = [Line(EVIL, "y"), Line("b" + EVIL, "y")]
    return Study(
        name=EVIL,
        title=EVIL,
        command=EVIL,
        seeds=[EVIL],
        settings={EVIL: {EVIL: [EVIL]}},
        notes=[EVIL],
        tables=[Table(EVIL, [Column("a", EVIL), Column("b", EVIL, "mark")], [{"a": EVIL, "b": EVIL}], {EVIL: EVIL})],
        figures=[Figure("f", EVIL, EVIL, [Panel(EVIL, EVIL, EVIL, line)])],
        arrays={"y": np.arange(5.0)},
        created=EVIL,
        versions={EVIL: EVIL},
    )


def many_panels() -> Study:
    """30 panels of 3 lines of 2,000 points that no two lines share, in ten figures."""
    rng = np.random.default_rng(1)
    arrays = {f"{i} {j}": rng.standard_normal(2000).cumsum() for i in range(30) for j in range(3)}
    panels = [
        Panel(f"panel {i}", "step", "value", [Line(f"line {j}", f"{i} {j}") for j in range(3)]) for i in range(30)
    ]
    figures = [Figure(f"figure-{k}", f"Figure {k}", "", panels[3 * k : 3 * k + 3], 3) for k in range(10)]
    return example(figures=figures, arrays=arrays)


def run(steps=60, agents=3, y_dim=1, wild=False) -> tuple[dict, dict]:
    """The about and the arrays of a run record."""
    rng = np.random.default_rng(3)
    targets = rng.standard_normal((steps, y_dim)).cumsum(axis=0)
    own = targets[:, None] + rng.standard_normal((steps, agents, y_dim))
    weights = rng.uniform(0, 1, (steps, agents))
    weights /= weights.sum(axis=1, keepdims=True)
    forecasts = np.einsum("ti,tij->tj", weights, own)
    if wild:
        forecasts = forecasts * 10.0 ** np.arange(0, 6 * steps, 6)[:, None].clip(max=300)
    about = {
        "name": "a run",
        "command": "nashcast run a.toml",
        "seed": 7,
        "settings": {"game": None},
        "agents": [f"agent-{i}" for i in range(agents)],
        "summary": {"mse": 1.0, "persistence_mse": 1.0, "skill": 0.0, "steps": steps, "seconds": 0.5},
    }
    arrays = {"start": np.zeros(y_dim), "targets": targets, "forecasts": forecasts, "weights": weights, "agents": own}
    return about, arrays
