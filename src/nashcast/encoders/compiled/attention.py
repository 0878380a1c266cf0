"""Causal attention with dropout and its gradient, one row of weights at a time: what pre-training spends its time on.

The matrices of weights (sequences × heads × length²) are never formed; the gradient makes each row again. Which
weights are dropped is looked up from a key, so both passes drop the same. In float32: the noise of a gradient step is
far larger than its rounding.
"""

from __future__ import annotations

import numpy as np
from numba import njit, uint32, uint64

# Sums may be reordered, so that several entries are summed at a time; what is not finite stays so.
_SUMS = {"reassoc", "contract", "nsz"}
_ZERO, _HALF, _LOWEST = np.float32(0.0), np.float32(0.5), np.float32(-60.0)
_LOG2_E = np.float32(1.4426950408889634)
# 2^f on [-1/2, 1/2] to float32's precision: (ln 2)^k / k!.
_C1, _C2, _C3, _C4, _C5, _C6 = (
    np.float32(c) for c in (0.693147181, 0.240226507, 0.0555041087, 0.00961812911, 0.00133335581, 0.000154035304)
)


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
        kept[j] = scale if bits >= dropped else _ZERO


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
    largest = a[0]
    for j in range(count):
        largest = a[j] if a[j] > largest else largest
    return largest


@njit(cache=True, fastmath=_SUMS)
def _softmax(weights, count, bits, powers):
    """In place, of the first `count`. bits and powers: one memory, of both types."""
    largest = _largest(weights, count)
    # exp(s) = 2^n 2^f with n whole: written out because the library's exp does one number at a time.
    for j in range(count):
        exponent = _LOG2_E * max(weights[j] - largest, _LOWEST)
        n = np.int32(exponent - _HALF)
        f = exponent - np.float32(n)
        bits[j] = (n + np.int32(127)) << np.int32(23)
        power = _C1 + f * (_C2 + f * (_C3 + f * (_C4 + f * (_C5 + f * _C6))))
        weights[j] = np.float32(1.0) + f * power
    total = _ZERO
    for j in range(count):
        weights[j] *= powers[j]
        total += weights[j]
    share = np.float32(1.0) / total
    for j in range(count):
        weights[j] *= share


@njit(cache=True, fastmath=_SUMS)
def _dot(a, b, count):
    total = _ZERO
    for j in range(count):
        total += a[j] * b[j]
    return total


@njit(cache=True, fastmath=_SUMS)
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


@njit(cache=True, nogil=True)
def attend(key, dropped, scale, Q, K, V, out):
    """Fill out = dropout(softmax(QᵀK)) V, over what is not later. All (heads, size, length); scores are not scaled."""
    heads, size, length = Q.shape
    weights, kept, powers = np.empty(length, np.float32), np.empty(length, np.float32), np.empty(length, np.float32)
    bits = powers.view(np.int32)
    for m in range(heads):
        q, k, v, o = Q[m], K[m], V[m], out[m]
        for i in range(length):
            _combine(q, i, k, weights)
            _softmax(weights, i + 1, bits, powers)
            _draw_kept(_row_key(key, m, i), i + 1, dropped, scale, kept)
            _multiply(weights, kept, i + 1)
            for c in range(size):
                o[c, i] = _dot(weights, v[c], i + 1)


@njit(cache=True, nogil=True)
def attend_backward(key, dropped, scale, Q, K, V, out, d_out, d_Q, d_K, d_V):
    """The gradients of a loss by Q, K and V, from its gradient d_out by the result of `attend`, out."""
    heads, size, length = Q.shape
    weights, gradient = np.empty(length, np.float32), np.empty(length, np.float32)
    kept, powers = np.empty(length, np.float32), np.empty(length, np.float32)
    bits = powers.view(np.int32)
    d_K[:] = _ZERO
    d_V[:] = _ZERO
    for m in range(heads):
        q, k, v, d_q, d_k, d_v, o, d_o = Q[m], K[m], V[m], d_Q[m], d_K[m], d_V[m], out[m], d_out[m]
        for i in range(length):
            _combine(q, i, k, weights)
            _softmax(weights, i + 1, bits, powers)
            _draw_kept(_row_key(key, m, i), i + 1, dropped, scale, kept)
            _combine(d_o, i, v, gradient)
            _multiply(gradient, kept, i + 1)
            _multiply(kept, weights, i + 1)
            # Σ_j weight_j gradient_j, without a sum over the row.
            level = _ZERO
            for c in range(size):
                level += d_o[c, i] * o[c, i]
            _through_softmax(weights, gradient, level, i + 1)
            for c in range(size):
                d_q[c, i] = _dot(gradient, k[c], i + 1)
                _add(d_k[c], q[c, i], gradient, i + 1)
                _add(d_v[c], d_o[c, i], kept, i + 1)
