"""What an agent can gain by deviating, by brute force: costs and best response over the full state of all forecasts.

Rules are affine in the stacked forecasts x of all agents: beta_i = K[t][i] @ x + k[t][i].
"""

import numpy as np


def split_rules(G, H, sizes):
    """Stacked rules (sum d, N p) and (sum d,) of each step, as one pair of lists for each step."""
    ends = np.cumsum(sizes)[:-1]
    return [list(np.split(g, ends)) for g in G], [list(np.split(h, ends)) for h in H]


def _expected_square(mean, cov, middle):
    """E[Zᵀ middle Z]."""
    result = mean.T @ middle @ mean
    p = len(middle)
    for k in range(p):
        for l in range(p):
            result = result + middle[k, l] * cov[k, l]
    return result


def values(i, K, k, mean, cov, w, y, alpha, gamma, prior):
    """Agent i's value functions at every step, (quadratic, linear, constant): as it plays, and at its best response."""
    N, (T, p, _) = len(mean), mean[0].shape
    n = N * p
    place = [slice(j * p, (j + 1) * p) for j in range(N)]
    zero = (np.zeros((n, n)), np.zeros(n), 0.0)
    played, best = [zero], [zero]
    for t in reversed(range(T)):
        c = np.exp(-alpha[i] * (T - 1 - t))
        W = np.kron(w[t], np.eye(p))  # (p, n): the mixture
        move, drift = np.eye(n), np.zeros(n)
        for j in range(N):
            if j != i:
                move[place[j]] += mean[j][t] @ K[t][j]
                drift[place[j]] += mean[j][t] @ k[t][j]

        def noise_of_others(Q, t=t):
            quad, lin, const = np.zeros((n, n)), np.zeros(n), 0.0
            for j in range(N):
                if j != i:
                    spread = _expected_square(np.zeros_like(mean[j][t]), cov[j][t], Q[place[j], place[j]])
                    quad += K[t][j].T @ spread @ K[t][j]
                    lin += K[t][j].T @ spread @ k[t][j]
                    const += k[t][j] @ spread @ k[t][j]
            return quad, lin, const

        push = np.zeros((n, mean[i].shape[2]))
        push[place[i]] = mean[i][t]
        for chain, respond in ((played, False), (best, True)):
            P, S, r = chain[-1]
            Q, q = P + c * W.T @ W, S - c * W.T @ y[t]
            const = r + c * y[t] @ y[t]
            nq, nl, nc = noise_of_others(Q)
            quad = move.T @ Q @ move + nq
            lin = move.T @ (Q @ drift + q) + nl
            const += drift @ Q @ drift + 2 * q @ drift + nc
            # E over own noise: betaᵀ M beta + 2 betaᵀ(push)ᵀ(Q(move x + drift) + q) + penalty
            M = c * gamma[i] * np.eye(push.shape[1]) + _expected_square(mean[i][t], cov[i][t], Q[place[i], place[i]])
            Lx, L0 = push.T @ Q @ move, push.T @ (Q @ drift + q) - c * gamma[i] * prior[i][t]
            const += c * gamma[i] * prior[i][t] @ prior[i][t]
            A, a = (-np.linalg.solve(M, Lx), -np.linalg.solve(M, L0)) if respond else (K[t][i], k[t][i])
            quad = quad + A.T @ M @ A + A.T @ Lx + Lx.T @ A
            lin = lin + A.T @ M @ a + A.T @ L0 + Lx.T @ a
            const += a @ M @ a + 2 * a @ L0
            chain.append((quad, lin, const))
    return played[::-1], best[::-1]


def at(value, x):
    P, S, r = value
    return x @ P @ x + 2 * S @ x + r
