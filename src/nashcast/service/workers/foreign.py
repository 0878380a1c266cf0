"""Foreign encoders in separate processes: a hang, a crash, an exit or excessive memory costs one step.

The process is forked from the worker, which has one thread, when the encoder is built. It answers one call at a time:

    worker → {"call": method, "given": […]}      process → {"value": …} or {"error": text}
"""

from __future__ import annotations

import ctypes
import os
import resource
import select
import signal
import socket
import sys
import time
from contextlib import suppress
from typing import Any

import numpy as np

from nashcast.encoders.base import (
    BuiltEncoder,
    BuiltForecaster,
    BuiltLearner,
    Context,
    Encoder,
    ForecastSet,
    Quantiles,
    RowEncoder,
)
from nashcast.errors import InvalidInput, NashcastError
from nashcast.service.workers import frames
from nashcast.service.workers.plain_values import pack, unpack

DEADLINE_S, MEMORY_MB = 5.0, 2000
# Seconds for the process to build its encoder, which may load a model.
BUILD_S = 120.0
# Consecutive failures after which an encoder is paused, and the longest pause before a retry.
PATIENCE, LONGEST_REST_S = 3, 60.0
MOST_TEXT = 300
MOST_BYTES = 64 * 2**20
_KINDS = ("learner", "forecaster", "encoder")
_TOLD = ("past_inputs", "past_targets", "relative", "accepts_missing", "forecasts", "calibrated", "levels", "row_size")


class ForeignEncoder:
    """An encoder's description whose built form runs in a separate process.

    deadline: seconds for one call.   memory: megabytes the process may allocate beyond its initial size.
    """

    def __init__(self, encoder: Encoder, deadline: float | None, memory: int | None):
        self._encoder, self._deadline = encoder, deadline or DEADLINE_S
        self._memory = (memory or MEMORY_MB) * 2**20
        self._children: list[Child] = []

    def build(self, x_dim: int, y_dim: int) -> BuiltEncoder:
        child = Child(self._encoder, (x_dim, y_dim), self._deadline, self._memory)
        self._children.append(child)
        told = child.told
        if told["kind"] not in _KINDS:
            # Encoders of standardised rows and encoders with their own moments are never foreign code.
            child.close()
            return self._encoder.build(x_dim, y_dim)
        made = {"learner": ProxyLearner, "forecaster": ProxyForecaster, "encoder": ProxyEncoder}[told["kind"]]
        return made(child)

    def close(self) -> None:
        for child in self._children:
            child.close()


class Child:
    """The process, replaced when it dies. told: the encoder's declared properties."""

    def __init__(self, encoder: Encoder, sizes: tuple[int, int], deadline: float, memory: int):
        self._encoder, self._sizes, self._deadline, self._memory = encoder, sizes, deadline, memory
        self._line: socket.socket | None = None
        self._pid = 0
        self._failures, self._rest_until = 0, 0.0
        try:
            self.told = self._start()
        except NashcastError as error:
            raise InvalidInput("encoder", f"one that cannot be built ({error})", "Fix it, or leave it out.") from None

    def _start(self) -> dict[str, Any]:
        ours, theirs = socket.socketpair()
        pid = os.fork()
        if pid == 0:
            _be_child(theirs, self._encoder, self._sizes, self._memory)
        theirs.close()
        self._line, self._pid, self._decoder = ours, pid, frames.Decoder(MOST_BYTES)
        return self._answer(BUILD_S)

    def call(self, method: str, *given: Any) -> Any:
        now = time.monotonic()
        if now < self._rest_until:
            raise NashcastError(f"paused for {self._rest_until - now:.0f} s more after {self._failures} failures")
        try:
            if self._line is None:
                self._start()
            assert self._line is not None
            self._line.sendall(frames.encode({"call": method, "given": [pack(each) for each in given]}))
            value = self._answer(self._deadline)
        except (OSError, frames.BadFrame, _Gone) as error:
            self._failed()
            raise NashcastError(str(error)) from None
        self._failures = 0
        return value

    def _answer(self, seconds: float) -> Any:
        assert self._line is not None
        until, line = time.monotonic() + seconds, self._line
        while True:
            ready, _, _ = select.select([line], [], [], max(0.0, until - time.monotonic()))
            if not ready:
                raise _Gone(f"no answer within {seconds:g} s: its process was killed")
            data = line.recv(1 << 18)
            if not data:
                raise _Gone("its process died")
            for message in self._decoder.feed(data):
                if "error" in message:
                    raise NashcastError(str(message["error"])[:MOST_TEXT])
                return unpack(message["value"])

    def _failed(self) -> None:
        self.close()
        self._failures += 1
        if self._failures >= PATIENCE:
            rest = self._deadline * 2 ** (self._failures - PATIENCE)
            self._rest_until = time.monotonic() + min(rest, LONGEST_REST_S)

    def close(self) -> None:
        if self._line is None:
            return
        self._line.close()
        self._line = None
        with suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGKILL)  # the child is not yet reaped, so its pid is not reused
        os.waitpid(self._pid, 0)


class _Gone(NashcastError):
    """The process did not answer, or has ended."""


class ProxyEncoder(BuiltEncoder):
    """Features from the process."""

    def __init__(self, child: Child):
        self._child = child
        for name in _TOLD[:4]:
            setattr(self, name, child.told[name])
        self.features = child.told["features"]

    def start(self) -> Any:
        return self._child.told["start"]

    def advance(self, context: Context) -> Any:
        return None if self._child.told["start"] is None else self._child.call("advance", context)

    def encode(self, context: Context) -> np.ndarray:
        return np.asarray(self._child.call("encode", context))


class ProxyForecaster(BuiltForecaster):
    """Forecasts from the process."""

    def __init__(self, child: Child):
        self._child = child
        for name in _TOLD[:6]:
            setattr(self, name, child.told[name])
        self.levels = tuple(child.told["levels"])

    def start(self) -> Any:
        return self._child.told["start"]

    def advance(self, context: Context) -> Any:
        return None if self._child.told["start"] is None else self._child.call("advance", context)

    def forecast(self, context: Context, horizon: int) -> np.ndarray:
        return self.forecast_set(context, horizon).forecasts

    def forecast_set(self, context: Context, horizon: int) -> ForecastSet:
        forecasts, values = self._child.call("forecast_set", context, horizon)
        return ForecastSet(forecasts, None if values is None else Quantiles(self.levels, values))


class ProxyLearner(BuiltLearner):
    """A learner in the process. If the process dies, its replacement starts untrained."""

    def __init__(self, child: Child):
        self._child = child
        for name in _TOLD[:6]:
            setattr(self, name, child.told[name])

    def row(self, context: Context) -> np.ndarray:
        return self._child.call("row", context)

    @property
    def row_size(self) -> int:
        return self._child.told["row_size"]

    def forecast_row(self, row: np.ndarray, horizon: int) -> np.ndarray:
        return self._child.call("forecast_row", row, horizon)

    def learn_row(self, row: np.ndarray, target: np.ndarray) -> None:
        self._child.call("learn_row", row, target)

    def save_state(self) -> dict[str, np.ndarray] | None:
        return self._child.call("save_state")

    def restore_state(self, saved: dict[str, np.ndarray]) -> None:
        self._child.call("restore_state", saved)


def _be_child(line: socket.socket, encoder: Encoder, sizes: tuple[int, int], memory: int) -> None:
    """In the new process; does not return."""
    status = 1
    try:
        keep = line.fileno()
        os.closerange(3, keep)
        os.closerange(keep + 1, resource.getrlimit(resource.RLIMIT_NOFILE)[0])
        with suppress(Exception):  # where the kernel supports it: the process ends with the worker
            ctypes.CDLL(None).prctl(1, int(signal.SIGKILL))
        with open("/proc/self/statm") as file:  # noqa: PTH123
            used = int(file.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + memory, used + memory))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        _answer_calls(line, encoder, sizes)
        status = 0
    except BaseException:
        pass
    finally:
        os._exit(status)


def _answer_calls(line: socket.socket, encoder: Encoder, sizes: tuple[int, int]) -> None:
    sys.stdout = sys.stderr  # keeps foreign prints out of the replies
    decoder, built = frames.Decoder(), None
    try:
        built = encoder.build(*sizes)
        line.sendall(frames.encode({"value": pack(_about(built))}))
    except Exception as error:
        line.sendall(frames.encode({"error": _text(error)}))
        return
    while data := line.recv(1 << 18):
        for message in decoder.feed(data):
            try:
                given = [unpack(each) for each in message["given"]]
                answer = {"value": pack(_called(built, message["call"], given))}
            except Exception as error:
                answer = {"error": _text(error)}
            line.sendall(frames.encode(answer))


def _called(built: BuiltEncoder, method: str, given: list[Any]) -> Any:
    if method == "forecast_set":
        found = built.forecast_set(*given)  # type: ignore[attr-defined]
        return np.asarray(found.forecasts, float), None if found.quantiles is None else np.asarray(
            found.quantiles.values
        )
    found = getattr(built, method)(*given)
    return np.asarray(found, float) if method in ("encode", "row", "forecast_row") else found


def _about(built: BuiltEncoder) -> dict[str, Any]:
    kind = (
        "learner"
        if isinstance(built, BuiltLearner)
        else "forecaster"
        if isinstance(built, BuiltForecaster)
        else "encoder"
    )
    if isinstance(built, RowEncoder) or type(built).moments is not BuiltEncoder.moments:
        kind = "ours"
    told = {name: getattr(built, name, None) for name in _TOLD}
    told["levels"] = tuple(told["levels"] or ())
    return {**told, "kind": kind, "features": int(built.features), "start": built.start()}


def _text(error: BaseException) -> str:
    try:
        return f"{type(error).__name__}: {error}"[:MOST_TEXT]
    except Exception:
        return type(error).__name__
