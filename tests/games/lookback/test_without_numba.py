"""Everything but large games and sweeps works where numba is not installed, and gives the compiled code's numbers."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import nashcast as nc
from nashcast import seeds
from nashcast.agents.lookback.paper_agent import PaperAgent
from nashcast.games.moments.features import clipped_moments, relu_moments
from support.games import random_game, stacked

TESTS = Path(__file__).parents[2]
SEEDS = range(12)
CHILD = """
import sys
sys.modules["numba"] = None  # importing it now raises ImportError
sys.path[:0] = [sys.argv[2], sys.argv[2] + "/games/lookback"]
import numpy as np
import test_without_numba as parent
np.savez(sys.argv[1], **parent.numbers(compiled=None))
assert not any(name.split(".")[0] in ("numba", "llvmlite") for name in sys.modules if sys.modules[name] is not None)
try:
    parent.games(compiled=True)
except parent.nc.InvalidInput as error:
    assert "pip install 'nashcast[fast]'" in str(error), error
else:
    raise AssertionError("a compiled game was solved without numba")
"""


def games(compiled):
    """Decoders, forecasts and certificates of random games."""
    found = {}
    for seed in SEEDS:
        game = random_game(seed)
        solved = nc.solve_game(*game.arguments(), **game.settings(), compiled=compiled)
        certificate = nc.certify(solved)
        assert certificate.worst <= 1e-9
        found |= {f"decoders {seed}": stacked(solved.decoders), f"forecasts {seed}": solved.forecasts}
        found[f"costs {seed}"] = certificate.costs()
    return found


def federation(placement):
    agents = [
        PaperAgent(nc.encoders.RandomFeatures(features=3, seed=1, noise=0.3), window=4),
        PaperAgent(nc.encoders.EchoState(features=2, seed=2, noise=0.3, samples=30), decay=0.2),
        PaperAgent(nc.encoders.EchoState(features=3, seed=3, noise=0.2, samples=30, activation="tanh", leak=0.5)),
        PaperAgent(nc.encoders.RandomFeatures(features=3, seed=4, noise=0.1), forgetting=0.95, ridge=0.5),
        PaperAgent(nc.encoders.Linear(lags=2)),
    ]
    return nc.paper_federation(
        agents, game=nc.LookbackGame(lookback=3, placement=placement), y_dim=2, start=np.zeros(2), seed=5
    )


def series():
    rng = seeds.generator(1, "without numba")
    return rng.standard_normal((40, 2)), np.cumsum(0.3 * rng.standard_normal((40, 2)), axis=0)


def moments():
    rng = seeds.generator(2, "without numba")
    a, sigma = 3 * rng.standard_normal((4, 2, 5)), np.array([0.3, 4.0])
    found = {}
    for name, function in (("relu", relu_moments), ("clipped", clipped_moments)):
        found[f"{name} mean"], found[f"{name} covariance"] = function(a, sigma)
    return a, sigma, found


def numbers(compiled):
    found = games(compiled) | moments()[2]
    for placement in ("central", "spread"):
        forecasts, weights, own, *_ = federation(placement).replay(*series())
        found |= {f"{placement} forecasts": forecasts, f"{placement} weights": weights, f"{placement} agents": own}
    return found


def test_without_numba_the_numbers_are_those_of_the_compiled_code(tmp_path):
    pytest.importorskip("numba")
    from nashcast.federation.compiled import moments as twins
    from nashcast.federation.compiled.replay import replay

    path = tmp_path / "numbers.npz"
    child = subprocess.run(
        [sys.executable, "-W", "error", "-c", CHILD, str(path), str(TESTS)], capture_output=True, text=True, check=False
    )
    assert child.returncode == 0, child.stderr
    plain = dict(np.load(path))

    expected = games(compiled=True)
    run = replay(federation("central"), *series())
    for placement in ("central", "spread"):
        for name in ("forecasts", "weights", "agents"):
            expected[f"{placement} {name}"] = getattr(run, name)
    a, sigma, _ = moments()
    for name, code in (("relu", twins.RELU), ("clipped", twins.HARD_SIGMOID)):
        expected[f"{name} mean"] = np.vectorize(lambda v, s, c=code: twins._mean(c, v, s))(a, sigma[:, None])
        shared = np.vectorize(lambda v, s, w, r, c=code: twins._covariance(c, v, s, w, r))
        rows = shared(a[:, :, None], sigma[:, None, None], a[:, None], sigma[None, :, None])
        expected[f"{name} covariance"] = rows[..., None] * np.eye(a.shape[2])
    assert plain.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_allclose(plain[name], value, rtol=1e-10, atol=1e-10, err_msg=name)


def test_numba_is_not_imported_before_a_large_game_asks_for_it():
    code = "import sys, nashcast; nashcast.Federation; assert not {'numba', 'llvmlite'} & sys.modules.keys()"
    subprocess.run([sys.executable, "-c", code], check=True)
