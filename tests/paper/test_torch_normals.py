"""The normal numbers of PyTorch's generator, against PyTorch."""

import numpy as np
import pytest

from nashcast.paper.published.torch_normals import TorchNormals

SHAPES = [(1, 3), (1, 1), (2, 5), (4, 4), (3, 7), (1, 20), (1,), (5,), (2, 3), (1, 33), (6,), (1, 16), (1, 15)]


@pytest.mark.parametrize("seed", [0, 1, 2024, 2026, 2**32 - 1])
def test_draws_of_any_size_are_those_of_torch(seed):
    torch = pytest.importorskip("torch")
    generator = torch.Generator().manual_seed(seed)
    ours = TorchNormals(seed)
    for shape in SHAPES:
        theirs = torch.randn(*shape, dtype=torch.float64, generator=generator).numpy()
        np.testing.assert_allclose(ours.draw(*shape), theirs, rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("size", [1, 2, 3, 6, 12, 16, 19])
def test_rows_at_once_are_rows_one_by_one(size):
    at_once, one_by_one = TorchNormals(7), TorchNormals(7)
    for normals in (at_once, one_by_one):
        normals.draw(3)  # leaves the second of a pair over
    rows = at_once.draw_rows(11, size)
    np.testing.assert_array_equal(rows, [one_by_one.draw(size) for _ in range(11)])
    np.testing.assert_array_equal(at_once.draw(4), one_by_one.draw(4))


def test_they_are_standard_normal():
    values = TorchNormals(1).draw(200_000)
    assert abs(values.mean()) < 4 / np.sqrt(len(values))
    assert abs(values.var() - 1) < 4 * np.sqrt(2 / len(values))
