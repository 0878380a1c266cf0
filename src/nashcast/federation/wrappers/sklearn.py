"""A federation as a scikit-learn regressor: rows in the order of time, `partial_fit` goes on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from nashcast.errors import InvalidInput
from nashcast.extras import needed
from nashcast.federation.default import default_federation
from nashcast.federation.federation import Federation
from nashcast.federation.wrappers.picklable import PicklableFederation

base: Any = needed("sklearn.base", "scikit-learn", "sklearn", "encoder")
_validation: Any = needed("sklearn.utils.validation", "scikit-learn", "sklearn", "encoder")


def as_sklearn(make: Callable[..., Federation] | None = None) -> FederationEstimator:
    """A scikit-learn regressor of one target. make: see `FederationEstimator`.

    >>> import numpy as np
    >>> model = as_sklearn().fit(np.arange(40.0)[:, None], 2 * np.arange(40.0))
    >>> model.predict([[40.0]]).round(1)
    array([80.])
    """
    return FederationEstimator(make)


class FederationEstimator(base.RegressorMixin, base.BaseEstimator):
    """make: a function of `x_dim` that makes a federation of horizon 1; the default federation if left out.

    Rows are steps in the order of time: row t of X is known when y_t is forecast. `fit` begins anew, `partial_fit` goes
    on. `predict` takes each of its rows as the next step, learns nothing, and does not depend on the other rows. NaN in
    X is a missing input.
    """

    def __init__(self, make: Callable[..., Federation] | None = None):
        self.make = make

    def fit(self, X: Any, y: Any) -> FederationEstimator:
        """Begin anew, and learn the rows in their order."""
        X, y = self._checked(X, y, reset=True)
        self.held_ = PicklableFederation(default_federation if self.make is None else self.make, x_dim=X.shape[1])
        return self._learn(X, y)

    def partial_fit(self, X: Any, y: Any) -> FederationEstimator:
        """Go on with further rows."""
        if not hasattr(self, "held_"):
            return self.fit(X, y)
        return self._learn(*self._checked(X, y, reset=False))

    def predict(self, X: Any) -> np.ndarray:
        """For each row the forecast of the next target, if that row came next."""
        _validation.check_is_fitted(self)
        X = _validation.validate_data(self, X, dtype=np.float64, ensure_all_finite="allow-nan", reset=False)
        return np.array([self.held_.federation.predict_one(x) for x in X])

    def _learn(self, X: np.ndarray, y: np.ndarray) -> FederationEstimator:
        federation = self.held_.federation
        if federation.horizon != 1 or federation.y_dim != 1:
            got = f"a federation of horizon {federation.horizon} and y_dim {federation.y_dim}"
            raise InvalidInput("make", got, "Make one of horizon 1 and y_dim 1.")
        for x, target in zip(X, y, strict=True):
            federation.learn_one(x, float(target))
        return self

    def _checked(self, X: Any, y: Any, reset: bool) -> tuple[np.ndarray, np.ndarray]:
        return _validation.validate_data(
            self, X, y, dtype=np.float64, y_numeric=True, ensure_all_finite="allow-nan", reset=reset
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        # Rows are steps of one stream: on shuffled rows, without an order in time, its score is poor.
        tags.regressor_tags.poor_score = True
        return tags
