"""The normal numbers that PyTorch's CPU generator gives for a seed, without PyTorch.

The published code draws everything from that generator in double precision. Its engine is the Mersenne Twister; it
differs from other libraries in how 32-bit words become normals, and in a separate method for blocks of 16 or more.
"""

from __future__ import annotations

import numpy as np

_BLOCK = 16


class TorchNormals:
    """The numbers of `torch.manual_seed(seed)` followed by calls of `torch.randn(…, dtype=torch.float64)`."""

    def __init__(self, seed: int):
        self._engine = np.random.MT19937()
        self._engine._legacy_seeding(seed)
        self._kept: float | None = None  # the second normal of a pair, for the next small draw

    def draw(self, *shape: int) -> np.ndarray:
        size = int(np.prod(shape))
        flat = self._large(size) if size >= _BLOCK else np.array([self._one() for _ in range(size)])
        return flat.reshape(shape)

    def draw_rows(self, rows: int, size: int) -> np.ndarray:
        """`rows` consecutive draws of the same small size in one call: (rows, size)."""
        if size >= _BLOCK:
            return np.stack([self._large(size) for _ in range(rows)])
        head = np.array([] if self._kept is None or not rows * size else [self._one()])
        rest = rows * size - len(head)
        u = self._uniforms(2 * ((rest + 1) // 2)).reshape(-1, 2)
        r, angle = np.sqrt(-2.0 * np.log1p(-u[:, 1])), 2.0 * np.pi * u[:, 0]
        pairs = np.stack([r * np.cos(angle), r * np.sin(angle)], axis=1).ravel()
        if rest % 2:
            self._kept = float(pairs[-1])
        return np.concatenate([head, pairs[:rest]]).reshape(rows, size)

    def _uniforms(self, size: int) -> np.ndarray:
        words = self._engine.random_raw(2 * size).astype(np.uint64).reshape(size, 2)
        bits = (words[:, 0] << np.uint64(32)) | words[:, 1]
        return (bits & np.uint64(2**53 - 1)).astype(np.float64) * 2.0**-53

    def _one(self) -> float:
        if self._kept is not None:
            second, self._kept = self._kept, None
            return second
        u1, u2 = self._uniforms(2)
        r, angle = np.sqrt(-2.0 * np.log1p(-u2)), 2.0 * np.pi * u1
        self._kept = float(r * np.sin(angle))
        return float(r * np.cos(angle))

    def _large(self, size: int) -> np.ndarray:
        values = self._uniforms(size)
        whole = size - size % _BLOCK
        values[:whole] = _pairs(values[:whole])
        if size % _BLOCK:  # the last sixteen once more, from new uniforms
            values[-_BLOCK:] = _pairs(self._uniforms(_BLOCK))
        return values


def _pairs(uniforms: np.ndarray) -> np.ndarray:
    """Box and Muller within each block of sixteen: its first half the radii, its second the angles."""
    blocks = uniforms.reshape(-1, 2, _BLOCK // 2)
    r, angle = np.sqrt(-2.0 * np.log(1.0 - blocks[:, 0])), 2.0 * np.pi * blocks[:, 1]
    return np.stack([r * np.cos(angle), r * np.sin(angle)], axis=1).ravel()
