"""Traces of the authors' published code, kept outside the project, beside its checkout."""

from pathlib import Path

import numpy as np
import pytest

FOLDER = Path(__file__).parents[3] / "shared" / "golden"


def trace(name):
    path = FOLDER / f"{name}.npz"
    if not path.is_file():
        pytest.skip(f"the recorded traces are not here: no {path.name} in a folder shared/golden beside the checkout")
    return np.load(path, allow_pickle=False)
