"""A federation that other libraries may copy and pickle: a copy is made by its function, and given the saved state."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from nashcast import validation as check
from nashcast.errors import InvalidInput
from nashcast.federation.federation import Federation


class PicklableFederation:
    """make, settings: `make(**settings)` makes an untrained federation; a function of a module, so that it can be
    pickled.

    >>> import copy
    >>> import nashcast as nc
    >>> picklable = PicklableFederation(nc.default_federation, x_dim=0)
    >>> picklable.federation.learn_one(None, 3.0)
    >>> copy.deepcopy(picklable).federation.predict_one(None)
    3.0
    """

    def __init__(self, make: Callable[..., Federation], **settings: Any):
        self._make, self._settings = make, settings
        made = make(**settings) if callable(make) else None
        if not isinstance(made, Federation):
            got = check.describe(make) if made is None else f"a function that returned {check.describe(made)}"
            raise InvalidInput("make", got, "Pass a function that makes a nashcast.Federation.")
        self.federation = made

    def __getstate__(self) -> dict[str, Any]:
        state = None
        if self.federation.members:  # the stream has begun
            with TemporaryDirectory() as folder:
                path = Path(folder) / "federation.state"
                self.federation.save(path)
                state = path.read_bytes()
        return {"make": self._make, "settings": self._settings, "state": state}

    def __setstate__(self, saved: dict[str, Any]) -> None:
        self.__init__(saved["make"], **saved["settings"])
        if saved["state"] is not None:
            with TemporaryDirectory() as folder:
                path = Path(folder) / "federation.state"
                path.write_bytes(saved["state"])
                self.federation.load(path)
