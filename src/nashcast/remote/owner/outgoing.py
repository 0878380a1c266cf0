"""The filter for everything that leaves an agent, and a record of what was sent, in words and in bytes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np

from nashcast.agents.lookback.paper_agent import PaperAgent
from nashcast.agents.protocol import Answer, GameView
from nashcast.errors import NashcastError
from nashcast.remote.wire.messages import Call, Forecast, Introduced, RemoteAnswer, Result, shortened
from nashcast.remote.wire.number_limits import LARGEST, tame
from nashcast.validation import shape_text


def allowed(agent: PaperAgent, call: Call, result: Any) -> Result:
    """The part of a call's result that was asked for and that the agent's owner shares."""
    share = agent.share
    if isinstance(result, Introduced):
        features = result.features if result.lets_out("moments") else None
        relative, varies = result.relative and share == "features", result.varies and result.lets_out("sums")
        return Introduced(features, relative, varies, share, result.public_key)
    if isinstance(result, Answer) and result.forecast is not None and not tame(result.forecast):
        result = Answer(None, f"its forecast is larger than {LARGEST:g}")
    if isinstance(call, Forecast):
        wanted = call.features and share == "features" and result.forecast is not None
        return RemoteAnswer(result.forecast, shortened(result.reason), agent.raw_features() if wanted else None)
    if isinstance(result, Answer):
        return Answer(result.forecast, shortened(result.reason))
    if isinstance(result, GameView) and share != "features" and result.means is not None:
        return result._replace(features=result.means)
    return result


def anchored_only(results: list[tuple[str, Result]]) -> list[tuple[str, Result]]:
    """If a turn also asked for the forecast from a given starting point, send only that one.

    From forecasts at two starting points, the hub could solve for the output and the decoder of a forecaster.
    """
    anchored = [result for kind, result in results if kind == "adopt" and isinstance(result, Answer)]
    if not anchored or anchored[0].forecast is None:
        return results
    place = RemoteAnswer(anchored[0].forecast)
    return [(kind, place if isinstance(result, RemoteAnswer) else result) for kind, result in results]


class Sent:
    """A record of what was sent: bytes by kind of call, and a line for each message. write: called with each line.

    bytes: of numbers by kind of call; all others are counted as "envelope".
    """

    def __init__(self, write: Callable[[str], None] | None):
        self._write = write
        self.bytes: Counter[str] = Counter()

    def hello(self, words: str, data: bytes) -> bytes:
        self.bytes["envelope"] += len(data)
        self._say(f"hello: {words}; {len(data)} bytes")
        return data

    def reply(self, step: int, reason: str, results: list[tuple[str, Result]], data: bytes) -> bytes:
        envelope = len(data)
        for kind, result in results:
            numbers = size(result)
            self.bytes[kind] += numbers
            envelope -= numbers
        self.bytes["envelope"] += envelope
        if self._write is not None:
            words = reason or ", ".join(f"{kind} ({contents(result)})" for kind, result in results) or "done"
            self._say(f"step {step}: {words}; {len(data)} bytes")
        return data

    def _say(self, line: str) -> None:
        if self._write is not None:
            with suppress(Exception):  # a log that cannot be written must not stop the agent
                self._write(line)


def contents(result: Result) -> str:
    """The names and shapes of the numbers in a result.

    >>> contents(Answer(np.zeros(2)))
    'forecast (2,)'
    """
    if isinstance(result, bytes):
        return f"{len(result)} bytes, masked"
    said = []
    for field, value in zip(type(result)._fields, result, strict=True):
        if isinstance(value, np.ndarray):
            said.append(f"{field} {shape_text(value.shape)}")
        elif isinstance(value, bytes):
            said.append(f"{field} of {len(value)} bytes")
        elif value is not None and value != "":
            said.append(f"{field} {value}")
    return ", ".join(said)


def size(result: Result) -> int:
    """Bytes of the numbers in a result."""
    if isinstance(result, bytes):
        return len(result)
    return sum(part.nbytes if isinstance(part, np.ndarray) else 8 * isinstance(part, float) for part in result)


def reason_of(error: Exception) -> str:
    """The text of an error, shortened for sending."""
    kind = type(error).__name__
    try:
        return shortened(str(error) if isinstance(error, NashcastError) else f"{kind}: {error}") or kind
    except Exception:  # str() of a black box's error may itself fail
        return kind
