"""Calls of third-party code, with warnings suppressed and a timeout."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable
from typing import Any

from nashcast import validation as check
from nashcast.errors import NashcastError


class BlackBoxCall:
    """Calls a black box. Its warnings are suppressed; its exceptions propagate.

    timeout: seconds, None for no limit. With a timeout each call runs in a thread of its own, because
    Python cannot stop a call. One that takes longer is left to end by itself; until it has, further calls are refused.

    >>> BlackBoxCall()(abs, -2.0)
    2.0
    """

    def __init__(self, timeout: float | None = None):
        self._timeout = None if timeout is None else check.number("timeout", timeout, above=0.0)
        self._thread: threading.Thread | None = None

    def __call__(self, function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if self._timeout is None:
                return function(*arguments, **named)
            return self._limited(function, arguments, named)

    def _limited(self, function: Callable[..., Any], arguments: tuple, named: dict[str, Any]) -> Any:
        if self._thread is not None and self._thread.is_alive():
            raise NashcastError("it is still busy with an earlier step")
        result: dict[str, Any] = {}

        def run() -> None:
            try:
                result["value"] = function(*arguments, **named)
            except BaseException as error:
                result["error"] = error

        self._thread = threading.Thread(target=run, name="nashcast black box", daemon=True)
        self._thread.start()
        self._thread.join(self._timeout)
        if self._thread.is_alive():
            raise NashcastError(f"it did not answer within {self._timeout:g} s")
        self._thread = None
        if "error" in result:
            raise result["error"]
        return result["value"]

    def __deepcopy__(self, memo: dict) -> BlackBoxCall:
        return BlackBoxCall(self._timeout)
