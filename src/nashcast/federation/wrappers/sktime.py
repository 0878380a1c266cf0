"""A federation as an sktime forecaster: fit, update, predict, predict_interval, predict_quantiles."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from nashcast import encoders
from nashcast.agents.agent import Agent
from nashcast.errors import InvalidInput
from nashcast.extras import needed
from nashcast.federation.default import default_federation
from nashcast.federation.federation import Federation
from nashcast.federation.wrappers.picklable import PicklableFederation

_forecasting: Any = needed("sktime.forecasting.base", "sktime", "sktime", "encoder")
_pandas: Any = needed("pandas", "pandas", "sktime", "encoder")


def as_sktime(make: Callable[..., Federation] | None = None) -> FederationForecaster:
    """An sktime forecaster of one series. make: see `FederationForecaster`."""
    return FederationForecaster(make)


class FederationForecaster(_forecasting.BaseForecaster):
    """make: a function of `horizon` that makes a federation of one target without inputs; the default one if left out.

    `fit` needs fh, the steps ahead to forecast. `update` learns new rows where it left off. Missing values of y are
    missing labels. Exogenous data are not used: a federation's inputs are known when a row is, sktime's in advance.

    >>> import pandas as pd
    >>> from nashcast.federation.wrappers.sktime import FederationForecaster
    >>> y = pd.Series([1.0, 3.0, 2.0] * 20)
    >>> FederationForecaster().fit(y, fh=[1, 2, 3]).predict().round(1).tolist()
    [1.0, 3.0, 2.0]
    """

    _tags: ClassVar[dict[str, Any]] = {
        "authors": ["nashcast"],
        "y_inner_mtype": "pd.Series",
        "X_inner_mtype": "pd.DataFrame",
        "scitype:y": "univariate",
        "capability:exogenous": False,
        "requires-fh-in-fit": True,
        "capability:missing_values": True,
        "capability:update": True,
        "capability:insample": False,
        "capability:pred_int": True,
        "capability:pred_int:insample": False,
    }

    # The federation stores the past it needs.
    _config: ClassVar[dict[str, Any]] = {"remember_data": False}

    def __init__(self, make: Callable[..., Federation] | None = None):
        self.make = make
        super().__init__()

    def _fit(self, y: Any, X: Any = None, fh: Any = None) -> FederationForecaster:
        steps = self._steps(fh)
        settings = {"x_dim": 0} if self.make is None else {}
        make = default_federation if self.make is None else self.make
        self._name = y.name
        self._picklable = PicklableFederation(make, horizon=int(steps.max()), **settings)
        return self._learn(y)

    def _update(self, y: Any, X: Any = None, update_params: bool = True) -> FederationForecaster:
        return self._learn(y)

    def _predict(self, fh: Any, X: Any = None) -> Any:
        steps = self._steps(fh)
        forecasts = np.atleast_1d(self._picklable.federation.predict_one(None))
        index = fh.to_absolute_index(self.cutoff)
        return _pandas.Series(forecasts[steps - 1], index=index, name=self._name)

    def _predict_quantiles(self, fh: Any, X: Any, alpha: list[float]) -> Any:
        steps, federation = self._steps(fh), self._picklable.federation
        federation.predict_one(None)
        found = federation.predict_quantiles(alpha).reshape(federation.horizon, -1)
        variable = self._get_varnames()[0]
        columns = _pandas.MultiIndex.from_product([[variable], alpha])
        return _pandas.DataFrame(found[steps - 1], index=fh.to_absolute_index(self.cutoff), columns=columns)

    def _learn(self, y: Any) -> FederationForecaster:
        for value in y.to_numpy(dtype=float):
            self._picklable.federation.learn_one(None, None if np.isnan(value) else float(value))
        return self

    def _steps(self, fh: Any) -> np.ndarray:
        steps = np.asarray(fh.to_relative(self.cutoff).to_numpy(), dtype=np.int64)
        horizon = self._picklable.federation.horizon if hasattr(self, "_picklable") else None
        if steps.min() < 1 or (horizon is not None and steps.max() > horizon):
            remedy = "Pass steps ahead from 1 on, no further than fh in `fit`."
            raise InvalidInput("fh", f"{steps.tolist()[:8]}", remedy)
        return steps

    @classmethod
    def get_test_params(cls, parameter_set: str = "default") -> list[dict[str, Any]]:
        """Settings for sktime's own checks."""
        return [{"make": _trend}]


def _trend(horizon: int) -> Federation:
    return Federation([Agent(encoders.Trend())], horizon=horizon, x_dim=0, game=None)
