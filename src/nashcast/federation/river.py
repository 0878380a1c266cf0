"""A federation as one of river's own regressors, for its pipelines, metrics and evaluation loops."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from nashcast import encoders
from nashcast import validation as check
from nashcast.agents.agent import Agent
from nashcast.encoders.forecaster import optional
from nashcast.errors import InvalidInput
from nashcast.federation.federation import Federation

base: Any = optional("river.base", "river", "river")


def as_river(make: Callable[[], Federation]) -> Any:
    """A river regressor, or a multi-target regressor if the federation has several targets (then y is a dict).

    make: a function that makes a federation of horizon 1. It is called again for every `clone`, which river expects to
    know nothing yet. To pickle the regressor, `make` must be picklable: a function of a module, or a partial of one.

    The first x fixes the features. Later ones that it lacks are ignored; features that are missing are missing inputs.

    >>> from functools import partial
    >>> import nashcast as nc
    >>> model = as_river(partial(nc.Federation, [nc.Agent(nc.encoders.Trend())]))
    >>> for y in [1.0, 2.0, 3.0]:
    ...     model.learn_one({"a": 0.5}, y)
    >>> untrained = model.clone()
    >>> untrained.predict_one({"a": 0.5})
    0.0
    """
    made = _made(make)
    return FederationRegressor(make) if made.y_dim == 1 else FederationMultiTargetRegressor(make)


class _Federated:
    """What both regressors share. River reads the parameters of `clone` from the signature of __init__."""

    def __init__(self, make: Callable[[], Federation]):
        self.make = make
        self._federation, self._names, self._learnt = _made(make), None, False

    def predict_one(self, x: dict) -> Any:
        return self._federation.predict_one(self._input(x))

    def learn_one(self, x: dict, y: Any) -> None:
        self._federation.learn_one(self._input(x), y)
        self._learnt = True

    def _input(self, x: dict) -> dict[str, Any]:
        named = _by_text("x", x)
        if self._names is None:
            self._names = frozenset(named)
        return {name: value for name, value in named.items() if name in self._names}

    def __getstate__(self) -> dict[str, Any]:
        return {"make": self.make, "names": self._names, "saved": self._saved()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["make"])
        self._names, saved = state["names"], state["saved"]
        self._learnt = saved is not None
        if saved is not None:
            with TemporaryDirectory() as folder:
                path = Path(folder) / "federation.state"
                path.write_bytes(saved)
                self._federation.load(path)

    def _saved(self) -> bytes | None:
        if not self._learnt:
            return None
        with TemporaryDirectory() as folder:
            path = Path(folder) / "federation.state"
            self._federation.save(path)
            return path.read_bytes()


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
        """The forecasts by the targets' names; empty before the first target, which tells them."""
        forecast = super().predict_one(x)
        return {name: forecast[str(name)] for name in self._targets}

    def learn_one(self, x: dict, y: dict) -> None:
        super().learn_one(x, _by_text("y", y))
        self._targets = tuple(y)

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "targets": self._targets}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._targets = state["targets"]

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"make": _federation_of_three_targets}


def _by_text(label: str, row: dict) -> dict[str, Any]:
    """A row by names as a federation has them; river's may be anything."""
    named = {str(name): value for name, value in row.items()}
    if len(named) < len(row):
        raise InvalidInput(label, check.describe(row), "Give every column a name that differs as text.")
    return named


def _made(make: Callable[[], Federation]) -> Federation:
    if not callable(make):
        remedy = "Pass a function that makes a federation, for example functools.partial(nashcast.Federation, agents)."
        raise InvalidInput("make", check.describe(make), remedy)
    federation = make()
    if not isinstance(federation, Federation):
        raise InvalidInput("make", f"a function that returned {check.describe(federation)}", "Return a federation.")
    if federation.horizon != 1:
        got = f"a federation of horizon {federation.horizon}"
        raise InvalidInput("make", got, "Return one of horizon 1, as river has it.")
    return federation


def _federation_of_one_target() -> Federation:
    return Federation([Agent(encoders.Trend()), Agent(encoders.Lags())])


def _federation_of_three_targets() -> Federation:
    return Federation([Agent(encoders.Trend()), Agent(encoders.Lags())], y_dim=3)
