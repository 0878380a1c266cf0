"""Causal attention with dropout and its gradient, one row of weights at a time: most of the time of pre-training.

The matrices of weights (sequences × heads × length²) are never formed; the gradient computes each row again. The
dropped weights are a function of a key, so both passes drop the same. Every loop over a row is simple enough for the
compiler to vectorise.
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import njit, types, uint32, uint64
from numba.extending import intrinsic

# Sums may be reordered, so that they are vectorised; non-finite values are preserved.
_SUMS = {"reassoc", "contract", "nsz"}
_LOG2_E = 1.4426950408889634
# Weights below 2^-1000 of a row's largest are replaced by that.
_LOWEST = -1000.0
# Adding it rounds to an integer, which is then in the last bits.
_ROUNDING = 1.5 * 2.0**52
# 2^f on [-1/2, 1/2] to float64's precision: (ln 2)^k / k!.
_C1, _C2, _C3, _C4, _C5, _C6, _C7, _C8, _C9, _C10, _C11, _C12 = (
    float(np.log(2.0) ** k / np.prod(np.arange(1.0, k + 1))) for k in range(1, 13)
)


@intrinsic
def _bits_of(typing_context, number):
    """The bits of a float64."""

    def generate(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], ir.IntType(64))

    return types.int64(types.float64), generate


@intrinsic
def _number_of(typing_context, bits):
    """The float64 of these bits."""

    def generate(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], ir.DoubleType())

    return types.float64(types.int64), generate


@njit(cache=True, fastmath=False)  # explicit, since the caller's flag would apply: no sum here may be reordered
def _power_of_two(exponent):
    """2^exponent of at most 1, written out because the library's is not vectorised."""
    held = exponent if exponent > _LOWEST else _LOWEST
    rounded = held + _ROUNDING
    f = held - (rounded - _ROUNDING)
    power = _C6 + f * (_C7 + f * (_C8 + f * (_C9 + f * (_C10 + f * (_C11 + f * _C12)))))
    power = 1.0 + f * (_C1 + f * (_C2 + f * (_C3 + f * (_C4 + f * (_C5 + f * power)))))
    # numba fills in the first parameter
    return _number_of(_bits_of(power) + (_bits_of(rounded) << 52))  # pyright: ignore[reportCallIssue]


@njit(cache=True)
def _row_key(key, head, row):
    """32 bits for one row, by SplitMix64's scrambling."""
    bits = uint64(key) + uint64(0x9E3779B97F4A7C15) * (uint64(head) << uint64(32) | uint64(row))
    bits = (bits ^ (bits >> uint64(30))) * uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> uint64(27))) * uint64(0x94D049BB133111EB)
    return uint32((bits ^ (bits >> uint64(31))) >> uint64(32))


@njit(cache=True)
def _draw_kept(row_key, count, dropped, scale, kept):
    """kept: 0 for a share of dropped / 2³² of the entries, scale for the others. Wellons' 32-bit hash `lowbias32`."""
    for j in range(count):
        bits = uint32(row_key + uint32(j) * uint32(0x9E3779B9))
        bits = uint32((bits ^ (bits >> uint32(16))) * uint32(0x7FEB352D))
        bits = uint32((bits ^ (bits >> uint32(15))) * uint32(0x846CA68B))
        bits = uint32(bits ^ (bits >> uint32(16)))
        kept[j] = scale if bits >= dropped else 0.0


@njit(cache=True, fastmath=_SUMS)
def _combine(a, i, rows, out):
    """out[j] = Σ_c a[c, i] rows[c, j], for j up to i."""
    count, factor = i + 1, a[0, i]
    for j in range(count):
        out[j] = factor * rows[0, j]
    for c in range(1, len(a)):
        factor = a[c, i]
        for j in range(count):
            out[j] += factor * rows[c, j]


@njit(cache=True)
def _largest(a, count):
    """The largest entry, by four independent comparisons at a time."""
    first = second = third = fourth = a[0]
    for j in range(0, count - 3, 4):
        first = a[j] if a[j] > first else first
        second = a[j + 1] if a[j + 1] > second else second
        third = a[j + 2] if a[j + 2] > third else third
        fourth = a[j + 3] if a[j + 3] > fourth else fourth
    for j in range(count - count % 4, count):
        first = a[j] if a[j] > first else first
    return max(max(first, second), max(third, fourth))


@njit(cache=True, error_model="numpy")
def _exponentiate(weights, count, largest):
    for j in range(count):
        weights[j] = _power_of_two(_LOG2_E * (weights[j] - largest))


@njit(cache=True, fastmath=_SUMS)
def _softmax(weights, count):
    """Softmax of the first `count` entries, in place."""
    largest, total = _largest(weights, count), 0.0
    _exponentiate(weights, count, largest)
    for j in range(count):
        total += weights[j]
    share = 1.0 / total
    for j in range(count):
        weights[j] *= share


@njit(cache=True, fastmath=_SUMS)
def _dot(a, b, count):
    total = 0.0
    for j in range(count):
        total += a[j] * b[j]
    return total


@njit(cache=True)
def _multiply(a, b, count):
    for j in range(count):
        a[j] *= b[j]


@njit(cache=True, fastmath=_SUMS)
def _add(a, factor, b, count):
    for j in range(count):
        a[j] += factor * b[j]


@njit(cache=True, fastmath=_SUMS)
def _through_softmax(weights, gradient, level, count):
    for j in range(count):
        gradient[j] = weights[j] * (gradient[j] - level)


@njit(cache=True)
def _is_kept(row_key, j, dropped):
    """The hash of `_draw_kept`."""
    bits = uint32(row_key + uint32(j) * uint32(0x9E3779B9))
    bits = uint32((bits ^ (bits >> uint32(16))) * uint32(0x7FEB352D))
    bits = uint32((bits ^ (bits >> uint32(15))) * uint32(0x846CA68B))
    return uint32(bits ^ (bits >> uint32(16))) >= dropped


@njit(cache=True, fastmath=_SUMS)
def _row_of_one(q, level, k, v, count, row_key, dropped):
    """A head of size 1, all in one loop: Σ 2^(q k_j - level), and the same times v_j where it is kept."""
    total, kept = 0.0, 0.0
    for j in range(count):
        power = _power_of_two(q * k[j] - level)
        total += power
        kept += power * v[j] if _is_kept(row_key, j, dropped) else 0.0
    return total, kept


@njit(cache=True, fastmath=_SUMS)
def _gradient_of_one(row, level, share, arrays, count, row_key, dropped):
    """Adds to d_k and d_v of the arrays k, v, d_k and d_v; returns Σ through_j k_j.

    row: q, d_o, the level of the gradient, and the scale.
    """
    (q, d_o, middle, scale), (k, v, d_k, d_v) = row, arrays
    total = 0.0
    for j in range(count):
        weight = _power_of_two(_LOG2_E * q * k[j] - level) * share
        kept = scale if _is_kept(row_key, j, dropped) else 0.0
        through = weight * (d_o * v[j] * kept - middle)
        total += through * k[j]
        d_k[j] += q * through
        d_v[j] += d_o * weight * kept
    return total


@njit(cache=True)
def _level(q, low, high):
    """log2 of the largest exp(q k) for k from low to high; divided by it, all are at most 1."""
    return _LOG2_E * (q * high if q > 0.0 else q * low)


@njit(cache=True, nogil=True)
def attend(dropout, Q, K, V, out):
    """Fill out = dropout(softmax(QᵀK)) V, causally. All (heads, size, length); scores are not scaled."""
    key, dropped, scale = dropout
    heads, size, length = Q.shape
    weights, kept = np.empty(length), np.empty(length)
    for m in range(heads):
        q, k, v, o = Q[m], K[m], V[m], out[m]
        low = high = k[0, 0]
        for i in range(length):
            if size == 1:
                low, high = min(low, k[0, i]), max(high, k[0, i])
                level, factor = _level(q[0, i], low, high), _LOG2_E * q[0, i]
                total, kept_sum = _row_of_one(factor, level, k[0], v[0], i + 1, _row_key(key, m, i), dropped)
                o[0, i] = scale * kept_sum / total
                continue
            _combine(q, i, k, weights)
            _softmax(weights, i + 1)
            _draw_kept(_row_key(key, m, i), i + 1, dropped, scale, kept)
            _multiply(weights, kept, i + 1)
            for c in range(size):
                o[c, i] = _dot(weights, v[c], i + 1)


@njit(cache=True, nogil=True)
def attend_backward(dropout, inputs, out, d_out, gradients):
    """Fill the gradients of a loss by the inputs Q, K and V, from its gradient d_out by the result of `attend`, out."""
    (key, dropped, scale), (Q, K, V), (d_Q, d_K, d_V) = dropout, inputs, gradients
    heads, size, length = Q.shape
    weights, gradient, kept = np.empty(length), np.empty(length), np.empty(length)
    d_K[:] = 0.0
    d_V[:] = 0.0
    for m in range(heads):
        q, k, v, d_q, d_k, d_v, o, d_o = Q[m], K[m], V[m], d_Q[m], d_K[m], d_V[m], out[m], d_out[m]
        low = high = k[0, 0]
        for i in range(length):
            if size == 1:
                low, high = min(low, k[0, i]), max(high, k[0, i])
                level, row_key = _level(q[0, i], low, high), _row_key(key, m, i)
                total, _ = _row_of_one(_LOG2_E * q[0, i], level, k[0], v[0], i + 1, row_key, np.uint32(0))
                row = (q[0, i], d_o[0, i], d_o[0, i] * o[0, i], scale)
                arrays = (k[0], v[0], d_k[0], d_v[0])
                d_q[0, i] = _gradient_of_one(row, level, 1.0 / total, arrays, i + 1, row_key, dropped)
                continue
            _combine(q, i, k, weights)
            _softmax(weights, i + 1)
            _draw_kept(_row_key(key, m, i), i + 1, dropped, scale, kept)
            _combine(d_o, i, v, gradient)
            _multiply(gradient, kept, i + 1)
            _multiply(kept, weights, i + 1)
            # Σ_j weight_j gradient_j, without a sum over the row.
            level = 0.0
            for c in range(size):
                level += d_o[c, i] * o[c, i]
            _through_softmax(weights, gradient, level, i + 1)
            for c in range(size):
                d_q[c, i] = _dot(gradient, k[c], i + 1)
                _add(d_k[c], q[c, i], gradient, i + 1)
                _add(d_v[c], d_o[c, i], kept, i + 1)
