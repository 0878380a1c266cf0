"""The closed form of the prior-centred game with look-back 1, against the solver and against deviations."""

import numpy as np
import pytest

import nashcast as nc
from nashcast.adaptive.one_step_game import mixture_pull


def random_players(seed):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 7, int(rng.integers(1, 7)))
    z = [rng.standard_normal(d) for d in sizes]
    memories = [rng.standard_normal(d) for d in sizes]
    return z, memories, rng.dirichlet(np.ones(len(sizes))), rng.standard_normal(), rng.uniform(0.05, 10.0)


def closed_form(z, memories, weights, change, ridge):
    recalled = np.array([a @ b for a, b in zip(z, memories, strict=True)])
    pull = mixture_pull(weights, recalled, np.array([a @ a for a in z]), change, ridge)
    return [b + w * a / ridge * pull for a, b, w in zip(z, memories, weights, strict=True)]


@pytest.mark.parametrize("seed", range(20))
def test_it_is_the_solvers_equilibrium_and_nobody_gains_by_deviating(seed):
    z, memories, weights, change, ridge = random_players(seed)
    solved = nc.solve_game(
        [a[None, None, :] for a in z], weights[None], np.array([[change]]), np.zeros(1), ridge=ridge,
        prior=[b[None] for b in memories],
    )  # fmt: skip
    played = closed_form(z, memories, weights, change, ridge)
    for mine, theirs in zip(played, solved.decoders, strict=True):
        np.testing.assert_allclose(mine, theirs[0], atol=1e-10)

    def cost(i, decoders):
        mixed = sum(w * (a @ b) for w, a, b in zip(weights, z, decoders, strict=True))
        return (change - mixed) ** 2 + ridge * ((decoders[i] - memories[i]) ** 2).sum()

    rng = np.random.default_rng(seed)
    for i in range(len(z)):
        for size in (1e-3, 0.1, 1.0):
            other = list(played)
            other[i] = played[i] + size * rng.standard_normal(len(z[i]))
            assert cost(i, other) > cost(i, played)


def test_limits_and_symmetries():
    z, memories, weights, change, _ = random_players(7)
    stiff = closed_form(z, memories, weights, change, 1e12)
    for mine, memory in zip(stiff, memories, strict=True):
        np.testing.assert_allclose(mine, memory, atol=1e-9)
    # With next to no ridge the mixture of the corrected decoders says what came.
    loose = closed_form(z, memories, weights, change, 1e-9)
    assert sum(w * (a @ b) for w, a, b in zip(weights, z, loose, strict=True)) == pytest.approx(change, abs=1e-6)
    # Features in other units, ridge and memory with them, change nothing that is forecast.
    plain = closed_form(z, memories, weights, change, 2.0)
    scaled = closed_form([3.0 * a for a in z], [b / 3.0 for b in memories], weights, change, 18.0)
    for a, mine, other in zip(z, plain, scaled, strict=True):
        assert 3.0 * a @ other == pytest.approx(a @ mine)
