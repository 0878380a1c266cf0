"""Theorem 2 as the paper writes it: the big matrices A, Â, B, C, D, D_i, G, H, P_i, S_i, in plain NumPy.

One array per agent throughout: Z[i] (T, p, d_i) as drawn, mean[i] (T, p, d_i), cov[i] (T, p, p, d_i, d_i),
prior[i] (T, d_i); w (T, N), y (T, p) with y[t] the target of step t, alpha and gamma (N,).

Two switches bring back what is wrong in print and in the published code:
- printed_recursion: eq. Pi and Si with Â(t) bare of its factor exp(-alpha_i (T-1-t));
- published_assembly: block matrices of an (N, N, d, d) array flattened by a plain reshape (needs equal d_i).
"""

from typing import NamedTuple

import numpy as np


class DenseGame(NamedTuple):
    G: list  # G[t], (sum d, N p)
    H: list  # H[t], (sum d,)
    P: list  # P[t][i], (N p, N p)
    S: list  # S[t][i], (N p,)
    r: list  # r[t][i], the constant of agent i's value function
    decoders: list  # beta[t] stacked over agents
    forecasts: np.ndarray  # (T+1, N p)


def solve(Z, mean, cov, w, y, start, alpha, gamma, prior, *, printed_recursion=False, published_assembly=False):
    N, (T, p, _) = len(Z), Z[0].shape
    sizes = [z.shape[2] for z in Z]
    D_all = sum(sizes)
    first = np.concatenate([[0], np.cumsum(sizes)]).astype(int)
    e = [np.kron(np.eye(N)[:, [i]], np.eye(p)) for i in range(N)]  # (N p, p)
    e_hat = [np.zeros((D_all, sizes[i])) for i in range(N)]
    for i in range(N):
        e_hat[i][first[i] : first[i + 1]] = np.eye(sizes[i])
    Gamma = np.diag(np.concatenate([np.full(sizes[i], gamma[i]) for i in range(N)]))

    def expected_product(t, i, j, middle):
        """E[Z_iᵀ · middle · Z_j] for a p×p matrix in the middle."""
        result = mean[i][t].T @ middle @ mean[j][t]
        if i == j:
            for k in range(p):
                for l in range(p):
                    result = result + middle[k, l] * cov[i][t, k, l]
        return result

    def assemble(blocks):
        if published_assembly:
            return np.array(blocks).reshape(D_all, D_all)
        return np.block(blocks)

    P = [[np.zeros((N * p, N * p)) for _ in range(N)] for _ in range(T + 1)]
    S = [[np.zeros(N * p) for _ in range(N)] for _ in range(T + 1)]
    r = [[0.0] * N for _ in range(T + 1)]
    G, H = [None] * T, [None] * T
    for t in reversed(range(T)):
        W = np.vstack([w[t, i] * np.eye(p) for i in range(N)])  # bold w_t, (N p, p)
        c = np.exp(-alpha * (T - 1 - t))
        C_big = np.diag(np.concatenate([np.full(sizes[i], c[i]) for i in range(N)]))
        P1, S1 = P[t + 1], S[t + 1]
        A = assemble([[expected_product(t, i, j, e[i].T @ P1[i] @ e[j]) for j in range(N)] for i in range(N)])
        A_hat = assemble([[expected_product(t, i, j, e[i].T @ W @ W.T @ e[j]) for j in range(N)] for i in range(N)])
        D = np.hstack([e[i] @ mean[i][t] for i in range(N)])
        B = np.hstack([P1[i] @ e[i] @ mean[i][t] for i in range(N)]).T
        C = np.concatenate([S1[i] @ e[i] @ mean[i][t] for i in range(N)])
        centre = np.concatenate([prior[i][t] for i in range(N)])

        M = C_big @ Gamma + A + C_big @ A_hat
        G[t] = -np.linalg.solve(M, C_big @ D.T @ W @ W.T + B)
        H[t] = np.linalg.solve(M, C_big @ D.T @ W @ y[t] - C + C_big @ Gamma @ centre)
        g, h = G[t], H[t]
        for i in range(N):
            D_i = assemble([[expected_product(t, j, k, e[j].T @ P1[i] @ e[k]) for k in range(N)] for j in range(N)])
            own = c[i] * gamma[i] * e_hat[i] @ e_hat[i].T
            Q = (1.0 if printed_recursion else c[i]) * A_hat + D_i + own
            L = c[i] * W @ W.T + P1[i]
            l = -c[i] * W @ y[t] + S1[i]
            P[t][i] = g.T @ Q @ g + L @ D @ g + (L @ D @ g).T + L
            S[t][i] = g.T @ (Q @ h - own @ centre) + L @ D @ h + g.T @ D.T @ l + l
            r[t][i] = (
                h @ Q @ h
                - 2 * h @ own @ centre
                + centre @ own @ centre
                + 2 * l @ D @ h
                + c[i] * y[t] @ y[t]
                + r[t + 1][i]
            )

    state = np.concatenate([np.asarray(start[i], float) for i in range(N)])
    decoders, forecasts = [], [state]
    for t in range(T):
        beta = G[t] @ state + H[t]
        step = [Z[i][t] @ beta[first[i] : first[i + 1]] for i in range(N)]
        state = state + np.concatenate(step)
        decoders.append(beta)
        forecasts.append(state)
    return DenseGame(G, H, P, S, r, decoders, np.array(forecasts))
