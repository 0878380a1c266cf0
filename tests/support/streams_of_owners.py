"""Streams whose inputs belong to different owners, for the tests of federations."""

import numpy as np

SIGNS = np.array([1.0, -1.0, 1.0, -1.0])


def four_owners(correlation, y_dim=1, steps=3000, seed=0, noise=0.5):
    """y_{t+1} = y_t + x_1 - x_2 + x_3 - x_4 + noise; a second target weighs the inputs otherwise."""
    rng = np.random.default_rng(seed)
    covariance = np.full((4, 4), correlation) + (1.0 - correlation) * np.eye(4)
    X = rng.standard_normal((steps, 4)) @ np.linalg.cholesky(covariance).T
    weights = np.stack([SIGNS, SIGNS * [1.0, 0.5, -1.0, 2.0]])[:y_dim].T
    return X, np.cumsum(X @ weights + noise * rng.standard_normal((steps, y_dim)), axis=0)


def pooled_errors(X, Y):
    """Squared errors of one online regression over all inputs in one place: the limit."""
    steps, inputs = X.shape
    gram, cross = 1e-2 * np.eye(inputs + 1), np.zeros((inputs + 1, Y.shape[1]))
    errors, before = np.empty(Y.shape), np.zeros(Y.shape[1])
    for t in range(steps):
        z = np.append(1.0, X[t])
        change = z @ np.linalg.solve(gram, cross)
        errors[t] = (before + change - Y[t]) ** 2
        gram += np.outer(z, z)
        cross += np.outer(z, Y[t] - before)
        before = Y[t]
    return errors
