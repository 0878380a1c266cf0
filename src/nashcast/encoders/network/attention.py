"""Causal attention with dropout and its gradient, one head at a time.

The dropped weights are a function of a key, so that both passes drop the same weights without storing them.
`compiled.attention` is the same, several times as fast.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

_GOLDEN = 0x9E3779B97F4A7C15
_BITS = 2**64
_LOWEST = -690.0


class Dropout(NamedTuple):
    """Drops the weights whose 32 bits, a function of the key, are below `dropped`. scale: factor of the rest."""

    key: int
    dropped: np.uint32
    scale: float


def _row_keys(key: int, head: int, length: int) -> np.ndarray:
    """32 bits for each row, by SplitMix64's scrambling."""
    rows = np.arange(length, dtype=np.uint64) | np.uint64(head << 32)
    bits = np.uint64(key % _BITS) + np.uint64(_GOLDEN) * rows
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return ((bits ^ (bits >> np.uint64(31))) >> np.uint64(32)).astype(np.uint32)


def _draw_kept(dropout: Dropout, head: int, length: int) -> np.ndarray:
    """0 for a share of dropped / 2³² of the entries, scale for the others. Wellons' 32-bit hash `lowbias32`."""
    row_keys = _row_keys(dropout.key, head, length)
    places = np.arange(length, dtype=np.uint32) * np.uint32(0x9E3779B9)
    bits = row_keys[:, None] + places
    bits = (bits ^ (bits >> np.uint32(16))) * np.uint32(0x7FEB352D)
    bits = (bits ^ (bits >> np.uint32(15))) * np.uint32(0x846CA68B)
    return np.where(bits ^ (bits >> np.uint32(16)) >= dropout.dropped, dropout.scale, 0.0)


def _softmax(q: np.ndarray, k: np.ndarray) -> np.ndarray:
    """Causal softmax of every row of qᵀk."""
    scores = q.T @ k
    later = np.triu(np.ones(scores.shape, dtype=bool), 1)
    scores[later] = -np.inf
    powers = np.exp(np.maximum(scores - scores.max(axis=1, keepdims=True), _LOWEST))
    powers[later] = 0.0
    return powers / powers.sum(axis=1, keepdims=True)


def attend(dropout, Q, K, V, out) -> None:
    """Fill out = dropout(softmax(QᵀK)) V, causally. All (heads, size, length); scores are not scaled."""
    for m in range(len(Q)):
        kept = _draw_kept(dropout, m, Q.shape[2])
        out[m] = V[m] @ (_softmax(Q[m], K[m]) * kept).T


def attend_backward(dropout, inputs, out, d_out, gradients) -> None:
    """Fill the gradients of a loss by the inputs Q, K and V, from its gradient d_out by the result of `attend`, out."""
    (Q, K, V), (d_Q, d_K, d_V) = inputs, gradients
    for m in range(len(Q)):
        kept = _draw_kept(dropout, m, Q.shape[2])
        weights = _softmax(Q[m], K[m])
        # Σ_j weight_j gradient_j of a row is the product of its result and the result's gradient.
        level = (d_out[m] * out[m]).sum(axis=0)
        through = weights * ((d_out[m].T @ V[m]) * kept - level[:, None])
        d_Q[m], d_K[m] = K[m] @ through.T, Q[m] @ through
        d_V[m] = d_out[m] @ (weights * kept)
