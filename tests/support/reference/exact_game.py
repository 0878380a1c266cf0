"""The dense theorem in decimal numbers of a hundred digits, for one feature and one target an agent."""

from decimal import Decimal, localcontext

DIGITS = 100


def _solve(matrix, right):
    """Gauss-Jordan with row pivoting; right: several columns."""
    n = len(matrix)
    rows = [list(matrix[r]) + list(right[r]) for r in range(n)]
    for c in range(n):
        pivot = max(range(c, n), key=lambda r: abs(rows[r][c]))
        rows[c], rows[pivot] = rows[pivot], rows[c]
        rows[c] = [entry / rows[c][c] for entry in rows[c]]
        for r in range(n):
            if r != c and rows[r][c] != 0:
                ratio = rows[r][c]
                rows[r] = [a - ratio * b for a, b in zip(rows[r], rows[c], strict=True)]
    return [row[n:] for row in rows]


def solve(Z, w, y, gamma, fading):
    """Decoders (T, N) as floats. Z, w: (T, N).   y: (T,).   fading: exp(-alpha), (N,). All agents start at 0.

    Agent i's value is xᵀP_i x + 2 S_iᵀx over the N forecasts x. At each step its first-order condition reads
    c γ β_i + z_i (Q_i (x + D β) + q_i)_i = 0 with Q_i = P_i + c w wᵀ, q_i = S_i - c y w and D = diag(z).
    """
    with localcontext(prec=DIGITS):
        exact = [[[Decimal(float(v)) for v in row] for row in part] for part in (Z, w)]
        Z, w = exact
        y, gamma, fading = ([Decimal(float(v)) for v in part] for part in (y, gamma, fading))
        T, N = len(Z), len(gamma)
        every = range(N)
        P = [[[Decimal(0)] * N for _ in every] for _ in every]
        S = [[Decimal(0)] * N for _ in every]
        rules = [None] * T
        for t in reversed(range(T)):
            z, c = Z[t], [fading[i] ** (T - 1 - t) for i in every]
            Q = [[[P[i][a][b] + c[i] * w[t][a] * w[t][b] for b in every] for a in every] for i in every]
            q = [[S[i][a] - c[i] * y[t] * w[t][a] for a in every] for i in every]
            M = [[z[i] * Q[i][i][j] * z[j] + (c[i] * gamma[i] if i == j else 0) for j in every] for i in every]
            right = [[-z[i] * Q[i][i][a] for a in every] + [-z[i] * q[i][i]] for i in every]
            rule = _solve(M, right)  # beta_i = rule[i][:N] x + rule[i][N]
            rules[t] = rule
            # x after the step: move x + drift.
            move = [[(1 if a == b else 0) + z[a] * rule[a][b] for b in every] for a in every]
            drift = [z[a] * rule[a][N] for a in every]
            for i in every:
                own, k = rule[i][:N], rule[i][N]
                Qm = [[sum(Q[i][a][d] * move[d][b] for d in every) for b in every] for a in every]
                ahead = [sum(Q[i][a][d] * drift[d] for d in every) + q[i][a] for a in every]
                effort = c[i] * gamma[i]
                P[i] = [
                    [sum(move[d][a] * Qm[d][b] for d in every) + effort * own[a] * own[b] for b in every] for a in every
                ]
                S[i] = [sum(move[d][a] * ahead[d] for d in every) + effort * own[a] * k for a in every]
        x, decoders = [Decimal(0)] * N, []
        for t in range(T):
            beta = [sum(rules[t][i][a] * x[a] for a in every) + rules[t][i][N] for i in every]
            x = [x[i] + Z[t][i] * beta[i] for i in every]
            decoders.append([float(b) for b in beta])
        return decoders
