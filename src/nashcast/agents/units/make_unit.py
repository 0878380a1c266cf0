"""The unit that runs a built encoder, by its kind."""

from __future__ import annotations

import numpy as np

from nashcast.agents.units.encoder_units import ForecasterUnit, RawUnit, Unit
from nashcast.agents.units.learner_unit import LearnerUnit
from nashcast.encoders.base import BuiltEncoder, BuiltForecaster, BuiltLearner, RowEncoder


def make_unit(built: BuiltEncoder, columns: np.ndarray | None, key: int, y_dim: int, horizon: int) -> Unit:
    """columns: the inputs the encoder may see, None for all.   key: seeds its noise."""
    if isinstance(built, BuiltLearner):
        return LearnerUnit(built, columns, key, y_dim, horizon)
    if isinstance(built, BuiltForecaster):
        return ForecasterUnit(built, columns, key, y_dim, horizon)
    if isinstance(built, RowEncoder):
        return Unit(built, columns)
    return RawUnit(built, columns, key, y_dim)
