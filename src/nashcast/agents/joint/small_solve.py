"""Solves very many very small systems at once: square-root-free Cholesky, with NumPy calls over all systems.

`np.linalg.solve` calls LAPACK for each system, which takes at least about half a microsecond. For systems of a few
numbers, arithmetic on arrays over all systems is ten times faster.
"""

from __future__ import annotations

import numpy as np

# Systems of up to this size, and at least this many of them, are solved here.
SMALL, MANY = 4, 512


def pays(size: int, systems: int) -> bool:
    """Whether `solve` is faster than LAPACK."""
    return size <= SMALL and systems >= MANY


def solve(A: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The x with A x = b. A: symmetric and positive definite, (…, size, size).   b: (…, size).

    Only the lower triangle of A is read.

    >>> solve(np.array([[[4.0, 2.0], [2.0, 3.0]]]), np.array([[2.0, 5.0]]))
    array([[-0.5,  2. ]])
    """
    size = A.shape[-1]
    # A = L D Lᵀ with ones on L's diagonal; `scaled` is L D.
    L: list[list[np.ndarray]] = [[] for _ in range(size)]
    scaled: list[list[np.ndarray]] = [[] for _ in range(size)]
    inverse = []  # the inverse of D
    for j in range(size):
        for i in range(j, size):
            entry = _less(A[..., i, j], scaled[i][:j], L[j][:j])
            if i == j:
                inverse.append(1.0 / entry)
            else:
                scaled[i].append(entry)
                L[i].append(entry * inverse[j])
    w: list[np.ndarray] = []
    for i in range(size):
        w.append(_less(b[..., i], L[i], w))
    found = np.empty((size, *np.broadcast_shapes(A.shape[:-2], b.shape[:-1])))
    for i in reversed(range(size)):
        found[i] = _less(w[i] * inverse[i], [L[k][i] for k in range(i + 1, size)], list(found[i + 1 :]))
    return np.moveaxis(found, 0, -1)


def faded(A: np.ndarray, share: np.ndarray, refill: np.ndarray, out: np.ndarray) -> np.ndarray:
    """The lower triangle of share · A + refill · I. share, refill: (…), as the systems."""
    for i in range(A.shape[-1]):
        for j in range(i + 1):
            np.multiply(A[..., i, j], share, out=out[..., i, j])
        out[..., i, i] += refill
    return out


def add_outer(A: np.ndarray, z: np.ndarray) -> None:
    """Add z zᵀ to the lower triangle of A, in place. z: (…, size)."""
    for i in range(A.shape[-1]):
        for j in range(i + 1):
            A[..., i, j] += z[..., i] * z[..., j]


def dot(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Sums of a · b over the last axis, which is short."""
    total = a[..., 0] * b[..., 0]
    for i in range(1, a.shape[-1]):
        total += a[..., i] * b[..., i]
    return total


def _less(value: np.ndarray, a: list[np.ndarray], b: list[np.ndarray]) -> np.ndarray:
    """The difference value - Σ a · b."""
    for left, right in zip(a, b, strict=True):
        value = value - left * right
    return value
