"""Theorem 2, the server's side: the sums over agents, one k×k inverse, and the quantities sent to all agents."""

from __future__ import annotations

from math import frexp, inf, ldexp, nan, sqrt

from numba import njit

from nashcast.games.lookback.compiled.lanes.lanes import lane_sum, load, number, set_number
from nashcast.games.lookback.coupling import ILL_CONDITIONED


@njit(cache=True)
def add_parts(work, row, part_rows, parts, count, common, place):
    """common[place + i] = the sum of work row `row + i` over lanes and parts, in that order."""
    for i in range(count):
        total = 0.0
        for part in range(parts):
            total += lane_sum(load(work, row + i + part * part_rows))
        set_number(common, place + i, total)


@njit(cache=True)
def _norm(common, matrix, n):
    """The Frobenius norm."""
    total = 0.0
    for place in range(matrix, matrix + n * n):
        total += number(common, place) ** 2
    return sqrt(total)


@njit(cache=True)
def _scale_and_swap(common, matrix, n, row, other, scale):
    for j in range(n):
        moved = number(common, matrix + row * n + j)
        set_number(common, matrix + row * n + j, number(common, matrix + other * n + j) * scale)
        if other != row:
            set_number(common, matrix + other * n + j, moved)


@njit(cache=True)
def _subtract_row(common, matrix, n, first, row, other, ratio):
    for j in range(first, n):
        entry = number(common, matrix + row * n + j) - ratio * number(common, matrix + other * n + j)
        set_number(common, matrix + row * n + j, entry)


@njit(cache=True)
def _entry_size(common, matrix, n, r, c):
    """The size of an entry of F before its I and its sum over agents are added, to which its rounding is relative."""
    return abs(number(common, matrix + r * n + c)) + (1.0 if r == c else 0.0)


@njit(cache=True)
def _scale_of(size):
    """A power of two that brings a number into [1/2, 1)."""
    return ldexp(1.0, -frexp(size)[1]) if size < inf else 1.0


@njit(cache=True)
def _form_scaled(common, matrix, rows, columns, n):
    """From F - I the matrix F with scaled rows and columns, in place, as in `coupling.invert`. Returns F's norm."""
    squares = 0.0
    for r in range(n):
        for c in range(n):
            squares += (number(common, matrix + r * n + c) + (1.0 if r == c else 0.0)) ** 2
    for r in range(n):
        size = 0.0
        for c in range(n):
            size = max(size, _entry_size(common, matrix, n, r, c))
        set_number(common, rows + r, _scale_of(size))
    for c in range(n):
        size = 0.0
        for r in range(n):
            size = max(size, number(common, rows + r) * _entry_size(common, matrix, n, r, c))
        set_number(common, columns + c, _scale_of(size))
    for r in range(n):
        for c in range(n):
            place = matrix + r * n + c
            entry = number(common, place) + (1.0 if r == c else 0.0)
            set_number(common, place, number(common, rows + r) * entry * number(common, columns + c))
    return sqrt(squares)


@njit(cache=True)
def invert(common, matrix, inverse, n):
    """Gauss-Jordan with row pivoting of the n×n matrix at `matrix`, which is overwritten; fills `inverse`.

    Returns the condition number (`coupling.Condition`): infinity if a pivot vanishes, NaN if one is NaN.
    Written out because n is small and a library call would allocate.
    """
    size = _norm(common, matrix, n)
    for r in range(n):
        for c in range(n):
            set_number(common, inverse + r * n + c, 1.0 if r == c else 0.0)
    for c in range(n):
        best = c
        for r in range(c + 1, n):
            if abs(number(common, matrix + r * n + c)) > abs(number(common, matrix + best * n + c)):
                best = r
        pivot = number(common, matrix + best * n + c)
        if not 0.0 < abs(pivot) < inf:
            return inf if pivot == 0.0 else nan
        _scale_and_swap(common, matrix, n, c, best, 1.0 / pivot)
        _scale_and_swap(common, inverse, n, c, best, 1.0 / pivot)
        for r in range(n):
            ratio = number(common, matrix + r * n + c)
            if r != c and ratio != 0.0:
                _subtract_row(common, matrix, n, c, r, c, ratio)
                _subtract_row(common, inverse, n, 0, r, c, ratio)
    return size * _norm(common, inverse, n) / n


@njit(cache=True)
def solve_sums(common, at, back, steps, p):
    """From F - I and f: g = -F⁻¹f and the functionals carried one step further. Returns whether digits suffice."""
    k_old, k, stride = back * p, (back + 1) * p, steps * p
    norm = _form_scaled(common, at.coupling, at.row_scales, at.column_scales, k)
    condition = invert(common, at.coupling, at.inverse, k)
    for r in range(k):
        for c in range(k):
            scale = number(common, at.column_scales + r) * number(common, at.row_scales + c)
            place = at.inverse + r * k + c
            set_number(common, place, number(common, place) * scale)
    plain = norm * _norm(common, at.inverse, k) / k
    set_number(common, at.conditions + back, condition)
    set_number(common, at.plain_conditions + back, plain)
    here, before = at.bases + back * stride * stride, at.bases + (back - 1) * stride * stride
    for r in range(k):
        total = 0.0
        for c in range(k):
            total -= number(common, at.inverse + r * k + c) * number(common, at.sum_f + c)
        set_number(common, at.shifts + back * stride + r, total)
        for c in range(k_old):
            total = 0.0
            for m in range(k_old):
                total += number(common, at.inverse + r * k + m) * number(common, before + m * stride + c)
            set_number(common, here + r * stride + c, total)
        for c in range(k_old, k):
            set_number(common, here + r * stride + c, number(common, at.inverse + r * k + c))
    return condition < ILL_CONDITIONED and plain < ILL_CONDITIONED * ILL_CONDITIONED


@njit(cache=True)
def point_from_forecasts(common, at, back, steps, p):
    """ζ: the carried functionals of the agents' weighted forecasts, moved by g."""
    k, stride = (back + 1) * p, steps * p
    for r in range(k):
        total = number(common, at.shifts + back * stride + r)
        for c in range(k):
            basis = number(common, at.bases + (back * stride + r) * stride + c)
            total += basis * number(common, at.forecasts + c)
        set_number(common, at.points + back * stride + r, total)


@njit(cache=True)
def point_from_last(common, at, back, steps, p):
    """The same where features equal their means: the functionals land on the last ζ, and move by the new g."""
    stride = steps * p
    for r in range((back + 1) * p):
        last = number(common, at.points + (back + 1) * stride + r)
        set_number(common, at.points + back * stride + r, last + number(common, at.shifts + back * stride + r))
