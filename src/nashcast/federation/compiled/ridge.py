"""Twin of `agents.decoders`: ridge regression in place, without allocating. Only lower triangles are stored."""

from __future__ import annotations

from numba import njit

from nashcast.games.lookback.compiled import cholesky


@njit(cache=True)
def solve_ridge(gram, cross, ridge):
    """Overwrite `cross` by (gram + ridge·I)⁻¹ cross; `gram` is overwritten too."""
    d = len(cross)
    for f in range(d):
        gram[f, f] += ridge
    cholesky.factor(gram, d)
    cholesky.solve(gram, cross, d)


@njit(cache=True)
def fade(gram, cross, forgetting):
    """Discount all earlier rows by one step. Only the lower triangle of `gram` is stored."""
    for f in range(len(cross)):
        cross[f] *= forgetting
        for g in range(f + 1):
            gram[f, g] *= forgetting


@njit(cache=True)
def remember_row(gram, cross, row, residual):
    """Add one row of Z and the residual that it should have explained."""
    for f in range(len(cross)):
        cross[f] += row[f] * residual
        for g in range(f + 1):
            gram[f, g] += row[f] * row[g]


@njit(cache=True, nogil=True)
def fill_long_memory_decoder(gram, cross, ridge, scratch, decoder):
    for f in range(len(cross)):
        decoder[f] = cross[f]
        for g in range(f + 1):
            scratch[f, g] = gram[f, g]
    solve_ridge(scratch, decoder, ridge)
