"""`root_form`, compiled unchanged except for its linear algebra, which is written out in loops."""

from __future__ import annotations

from types import FunctionType

import numpy as np
from numba import njit

from nashcast.games.lookback import root_form


@njit(cache=True, nogil=True)
def product(a, b):
    rows, inner = a.shape
    columns = b.shape[1]
    result = np.zeros((rows, columns))
    for r in range(rows):
        for m in range(inner):
            factor = a[r, m]
            for c in range(columns):
                result[r, c] += factor * b[m, c]
    return result


@njit(cache=True, nogil=True)
def _scale(matrix, right, columns):
    """Scale rows and columns; False if an entry is not finite."""
    n = len(matrix)
    for r in range(n):
        most = 0.0
        for c in range(n):
            most = most if most > abs(matrix[r, c]) else abs(matrix[r, c])  # propagates NaN
        if not most < np.inf:
            return False
        if most > 0.0:
            for c in range(n):
                matrix[r, c] /= most
            for c in range(right.shape[1]):
                right[r, c] /= most
    for c in range(n):
        most = 0.0
        for r in range(n):
            most = max(most, abs(matrix[r, c]))
        columns[c] = 1.0 / most if most > 0.0 else 1.0
        for r in range(n):
            matrix[r, c] *= columns[c]
    return True


@njit(cache=True, nogil=True)
def _swap(array, one, other):
    for c in range(array.shape[1]):
        array[one, c], array[other, c] = array[other, c], array[one, c]


@njit(cache=True, nogil=True, error_model="numpy")
def eliminate(matrix, right):
    n, width = right.shape
    columns = np.ones(n)
    if not _scale(matrix, right, columns):
        return np.nan
    largest, smallest = 0.0, np.inf
    for c in range(n):
        best = c
        for r in range(c + 1, n):
            if abs(matrix[r, c]) > abs(matrix[best, c]):
                best = r
        if best != c:
            _swap(matrix, c, best)
            _swap(right, c, best)
        pivot = matrix[c, c]
        largest, smallest = max(largest, abs(pivot)), min(smallest, abs(pivot))
        if not abs(pivot) > 0.0:
            return np.inf if pivot == 0.0 else np.nan
        for r in range(c + 1, n):
            ratio = matrix[r, c] / pivot
            if ratio != 0.0:
                for k in range(c, n):
                    matrix[r, k] -= ratio * matrix[c, k]
                for k in range(width):
                    right[r, k] -= ratio * right[c, k]
    for r in range(n - 1, -1, -1):
        for k in range(width):
            total = right[r, k]
            for c in range(r + 1, n):
                total -= matrix[r, c] * right[c, k]
            right[r, k] = total / matrix[r, r]
    for r in range(n):
        for k in range(width):
            right[r, k] *= columns[r]
    return largest / smallest


@njit(cache=True, nogil=True)
def triangular(rows):
    m, n = rows.shape
    for c in range(n):
        norm = 0.0
        for r in range(c, m):
            norm += rows[r, c] ** 2
        norm = np.sqrt(norm)
        if norm > 0.0:
            v = rows[c:, c].copy()
            v[0] += norm if v[0] > 0.0 else -norm
            size = 0.0
            for r in range(m - c):
                size += v[r] ** 2
            for k in range(c, n):
                along = 0.0
                for r in range(m - c):
                    along += v[r] * rows[c + r, k]
                along *= 2.0 / size
                for r in range(m - c):
                    rows[c + r, k] -= along * v[r]
        for r in range(c + 1, m):
            rows[r, c] = 0.0
    return rows[:n].copy()


def _compiled() -> dict:
    """The functions of `root_form`, each compiled with the others' compiled forms in its globals."""
    space = dict(vars(root_form))
    written_out = {"product": product, "eliminate": eliminate, "triangular": triangular}
    for name, function in vars(root_form).items():
        if isinstance(function, FunctionType) and function.__module__ == root_form.__name__:
            same = FunctionType(function.__code__, space, name)
            space[name] = written_out.get(name) or njit(cache=True, nogil=True, error_model="numpy")(same)
    return space


solve_twice = _compiled()["solve_twice"]
