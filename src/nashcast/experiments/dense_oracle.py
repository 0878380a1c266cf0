"""The paper's dense matrices, for comparison: they live with the tests, as the oracle, and nowhere else."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path

ORACLE = Path(__file__).parents[3] / "tests" / "reference" / "dense_game.py"


def dense_solver() -> Callable | None:
    """`solve` of the dense theorem, or None outside a source checkout."""
    spec = importlib.util.spec_from_file_location("nashcast_dense_oracle", ORACLE) if ORACLE.is_file() else None
    if spec is None or spec.loader is None:
        return None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.solve
