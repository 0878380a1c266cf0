"""Solving small symmetric positive definite systems in place, without allocating."""

from __future__ import annotations

from math import sqrt

from numba import njit


@njit(cache=True, error_model="numpy")
def factor(matrix, n):
    """Overwrite the lower triangle of the leading n×n block by its Cholesky factor. False if it is not positive."""
    for c in range(n):
        for r in range(c, n):
            total = matrix[r, c]
            for m in range(c):
                total -= matrix[r, m] * matrix[c, m]
            if r == c:
                if not total > 0.0:
                    return False
                matrix[c, c] = sqrt(total)
            else:
                matrix[r, c] = total / matrix[c, c]
    return True


@njit(cache=True, error_model="numpy")
def solve(lower, right, n):
    """Overwrite the first n entries of `right` by the solution of (lower · lowerᵀ) x = right."""
    for r in range(n):
        total = right[r]
        for m in range(r):
            total -= lower[r, m] * right[m]
        right[r] = total / lower[r, r]
    for r in range(n - 1, -1, -1):
        total = right[r]
        for m in range(r + 1, n):
            total -= lower[m, r] * right[m]
        right[r] = total / lower[r, r]
