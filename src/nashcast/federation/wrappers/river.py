"""A federation as one of river's own regressors, for its pipelines, metrics and evaluation loops."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from nashcast import encoders
from nashcast import validation as check
from nashcast.agents.agent import Agent
from nashcast.errors import InvalidInput
from nashcast.extras import needed
from nashcast.federation.federation import Federation
from nashcast.federation.wrappers.picklable import PicklableFederation

base: Any = needed("river.base", "river", "river", "encoder")


def as_river(make: Callable[[], Federation]) -> Any:
    """A river regressor, or a multi-target regressor if the federation has several targets (then y is a dict).

    make: a function that makes a federation of horizon 1. It is called again for every `clone`, which river expects to
    be untrained. To pickle the regressor, `make` must be picklable: a function of a module, or a partial of one.

    The first x fixes the features. New ones in a later x are ignored; ones that a later x lacks are missing inputs.

    >>> from functools import partial
    >>> import nashcast as nc
    >>> model = as_river(partial(nc.Federation, [nc.Agent(nc.encoders.Trend())]))
    >>> for y in [1.0, 2.0, 3.0]:
    ...     model.learn_one({"a": 0.5}, y)
    >>> untrained = model.clone()
    >>> untrained.predict_one({"a": 0.5})
    0.0
    """
    one = _picklable(make).federation.y_dim == 1
    return FederationRegressor(make) if one else FederationMultiTargetRegressor(make)


class _Federated:
    """The common part of both regressors. River reads the parameters of `clone` from the signature of __init__."""

    def __init__(self, make: Callable[[], Federation]):
        self.make = make
        self._picklable, self._names = _picklable(make), None

    def predict_one(self, x: dict) -> Any:
        return self._picklable.federation.predict_one(self._input(x))

    def learn_one(self, x: dict, y: Any) -> None:
        self._picklable.federation.learn_one(self._input(x), y)

    def _input(self, x: dict) -> dict[str, Any]:
        named = _by_text("x", x)
        if self._names is None:
            self._names = frozenset(named)
        return {name: value for name, value in named.items() if name in self._names}


class FederationRegressor(_Federated, base.Regressor):
    """A federation of one target. See `as_river`."""

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"make": _federation_of_one_target}


class FederationMultiTargetRegressor(_Federated, base.MultiTargetRegressor):
    """A federation of several targets. See `as_river`."""

    def __init__(self, make: Callable[[], Federation]):
        super().__init__(make)
        self._targets: tuple = ()

    def predict_one(self, x: dict) -> dict:
        """The forecasts by the targets' names; empty before the first target, which fixes the names."""
        forecast = super().predict_one(x)
        return {name: forecast[str(name)] for name in self._targets}

    def learn_one(self, x: dict, y: dict) -> None:
        super().learn_one(x, _by_text("y", y))
        self._targets = tuple(y)

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"make": _federation_of_three_targets}


def _by_text(label: str, row: dict) -> dict[str, Any]:
    """A row keyed by text, as a federation requires; river's keys may be any object."""
    named = {str(name): value for name, value in row.items()}
    if len(named) < len(row):
        raise InvalidInput(label, check.describe(row), "Give every column a name that differs as text.")
    return named


def _picklable(make: Callable[[], Federation]) -> PicklableFederation:
    picklable = PicklableFederation(make)
    if picklable.federation.horizon != 1:
        got = f"a federation of horizon {picklable.federation.horizon}"
        raise InvalidInput("make", got, "Return one of horizon 1, as river has it.")
    return picklable


def _federation_of_one_target() -> Federation:
    return Federation([Agent(encoders.Trend()), Agent(encoders.Lags())])


def _federation_of_three_targets() -> Federation:
    return Federation([Agent(encoders.Trend()), Agent(encoders.Lags())], y_dim=3)
