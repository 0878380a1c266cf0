"""Public features of the targets, which every agent can compute: the public player of the joint game plays them."""

from __future__ import annotations

import numpy as np

from nashcast.encoders.families.rows import Rows

PUBLIC_FEATURES = 7


def public_features(rows: Rows) -> np.ndarray:
    """Public features of the targets: one, value, last four changes, seasonal change; (rows, y_dim, 7)."""
    features = np.empty((rows.count, rows.y_dim, PUBLIC_FEATURES))
    features[:, :, 0], features[:, :, 1] = 1.0, rows.value(0)
    features[:, :, 2:6] = rows.changes(4)
    features[:, :, 6] = rows.seasonal_change
    return features
