"""The dense theorem in decimal numbers of many digits, for any sizes, noise, prior and start.

Agent i's value is xᵀP_i x + 2 S_iᵀx over all forecasts x. At each step its first-order condition is linear in all
decoders; all conditions together are one system.
"""

from decimal import Decimal, localcontext

import numpy as np

ZERO = Decimal(0)


def _exact(values):
    return np.array([Decimal(float(v)) for v in np.ravel(values)], dtype=object).reshape(np.shape(values))


def _solve(matrix, right):
    """Gauss-Jordan with row pivoting."""
    n = len(matrix)
    rows = np.concatenate([matrix, right], axis=1)
    for c in range(n):
        pivot = c + int(np.argmax([abs(v) for v in rows[c:, c]]))
        rows[[c, pivot]] = rows[[pivot, c]]
        rows[c, c:] = rows[c, c:] / rows[c, c]
        for r in range(n):
            if r != c and rows[r, c] != 0:
                rows[r, c:] = rows[r, c:] - rows[r, c] * rows[c, c:]
    return rows[:, n:]


def solve(Z, mean, cov, w, y, start, alpha, gamma, prior, digits=400):
    """Decoders (T, all features) and forecasts (T + 1, N, p) as floats; arguments as of `dense_game.solve`.

    cov: None for an agent whose features are certain.
    """
    with localcontext(prec=digits):
        N, (T, p, _) = len(Z), np.shape(Z[0])
        n, sizes = N * p, [np.shape(z)[2] for z in Z]
        first = np.concatenate([[0], np.cumsum(sizes)])
        D = int(first[-1])
        Z, mean, prior = ([_exact(part) for part in parts] for parts in (Z, mean, prior))
        cov = [None if part is None else _exact(part) for part in cov]
        w, y, start, gamma = map(_exact, (w, y, start, gamma))
        fading = [(-Decimal(float(a))).exp() for a in alpha]
        place = [slice(i * p, (i + 1) * p) for i in range(N)]
        own = [slice(first[i], first[i + 1]) for i in range(N)]

        def noise(j, t, middle):
            total = np.full((sizes[j], sizes[j]), ZERO)
            if cov[j] is not None:
                for k in range(p):
                    for l in range(p):
                        total = total + middle[k, l] * cov[j][t, k, l]
            return total

        P, S = [np.full((n, n), ZERO) for _ in range(N)], [np.full(n, ZERO) for _ in range(N)]
        rules = []
        for t in reversed(range(T)):
            c = [factor ** (T - 1 - t) for factor in fading]
            W, push = np.full((n, p), ZERO), np.full((n, D), ZERO)
            for i in range(N):
                push[place[i], own[i]] = mean[i][t]
                for a in range(p):
                    W[i * p + a, a] = w[t, i]
            Q = [P[i] + c[i] * (W @ W.T) for i in range(N)]
            q = [S[i] - c[i] * (W @ y[t]) for i in range(N)]
            M, right = np.full((D, D), ZERO), np.full((D, n + 1), ZERO)
            for i in range(N):
                seen = mean[i][t].T @ Q[i][place[i]]
                M[own[i]] = seen @ push
                M[own[i], own[i]] = M[own[i], own[i]] + noise(i, t, Q[i][place[i], place[i]])
                for f in range(first[i], first[i + 1]):
                    M[f, f] += c[i] * gamma[i]
                right[own[i], :n] = -seen
                right[own[i], n] = c[i] * gamma[i] * prior[i][t] - mean[i][t].T @ q[i][place[i]]
            rule = _solve(M, right)
            rules.append(rule)
            K, k = rule[:, :n], rule[:, n]
            move, drift = push @ K, push @ k
            for a in range(n):
                move[a, a] += 1
            for i in range(N):
                effort, missed = c[i] * gamma[i], k[own[i]] - prior[i][t]
                quadratic = move.T @ Q[i] @ move + effort * (K[own[i]].T @ K[own[i]])
                linear = move.T @ (Q[i] @ drift + q[i]) + effort * (K[own[i]].T @ missed)
                for j in range(N):
                    if cov[j] is not None:
                        spread = noise(j, t, Q[i][place[j], place[j]])
                        quadratic = quadratic + K[own[j]].T @ spread @ K[own[j]]
                        linear = linear + K[own[j]].T @ spread @ k[own[j]]
                P[i], S[i] = quadratic, linear
        x = start.reshape(n)
        decoders, states = [], [x]
        for t, rule in enumerate(reversed(rules)):
            beta = rule[:, :n] @ x + rule[:, n]
            x = x + np.concatenate([Z[i][t] @ beta[own[i]] for i in range(N)])
            decoders.append(beta)
            states.append(x)
        return np.array(decoders).astype(float), np.array(states).reshape(T + 1, N, p).astype(float)
