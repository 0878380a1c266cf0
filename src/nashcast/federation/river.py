"""A federation as one of river's own regressors, for its pipelines, metrics and evaluation loops."""

from __future__ import annotations

from typing import Any

from nashcast.encoders.forecaster import optional
from nashcast.federation.paper import PaperFederation


def as_river(federation: PaperFederation) -> Any:
    """A river regressor, or a multi-target regressor if the federation has several targets (then y is a dict)."""
    base = optional("river.base", "river", "river")
    kind = base.Regressor if federation.y_dim == 1 else base.MultiTargetRegressor

    class RiverFederation(kind):
        def __init__(self, federation: PaperFederation):
            self.federation = federation

        def predict_one(self, x, **_):
            return self.federation.predict_one(x)

        def learn_one(self, x, y, **_):
            self.federation.learn_one(x, y)

    return RiverFederation(federation)
