"""Golden messages: of each kind one or more, as bytes and as what they mean, for agents in other languages.

    PYTHONPATH=tests python -m support.remote.golden_messages

writes tests/remote/wire/vectors/KIND.json. In them an array is {"shape": […], "values": […]} with the values in their
order, bytes are {"hex": "…"}, an integer beyond 2^53 is {"int": "…"}, and a number that is not finite {"float": "nan"}.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from nashcast.agents.protocol import Answer, BackwardSums, BackwardTerms, GameView, Invitation, Sync
from nashcast.remote.wire import messages as m
from nashcast.remote.wire.format import PROTOCOL, pack, type_name
from nashcast.remote.wire.joint import joint_messages as j

FOLDER = Path(__file__).parents[2] / "remote" / "wire" / "vectors"
RUN = 0x7123456789ABCDEF
SAFE = 1 << 53


def numbers(*shape: int, first: float = 0.125) -> np.ndarray:
    return first + 0.25 * np.arange(math.prod(shape), dtype=np.float64).reshape(shape)


KEY = bytes(range(96))
OPENING = j.Opening(
    ("ada", "bob", "node"), 2, ("wind", "sun"), np.array([1.5]), 0, 1, None, 42, (1.0, 0.98), (0.5, 1.0), True, 0.75,
    True, 0.5,
)  # fmt: skip
INPUT = j.Input(7, np.array([0.5, np.nan]), 1.75e9)
SUMS = j.Sums(7, ("bob",), (), numbers(6, 1, 1), numbers(2, 1), None, None)
LABEL = j.Label(7, np.array([2.5]), None)
TERMS = (numbers(6, 1, 1), numbers(2, 1))
OWN = j.Own(np.array([[[2.25]]]), np.array([[0.0]]), None)


def told(number: int, ask: str, *events: j.Event, players: bytes = b"") -> j.Told:
    return j.Told(RUN, number, tuple(map(j.event_bytes, events)), ask, players)


def said(**fields: Any) -> j.Said:
    usual = {"traits": j.Traits(1, False), "own": None, "terms": None, "reason": "", "seconds": 0.25}
    return j.Said(RUN, "node", 9, **usual | fields)


SYNC = Sync(np.array([0.5]), np.array([0.25, -0.25]), numbers(2, 1))
INVITATION = Invitation(numbers(2, 1), np.array([0.5, 0.25]), np.array([1.5]), False)
MASKING = m.Masking(0, ("ada", "node"), numbers(2, 2), ("ada",), (KEY,))
CALLS: dict[str, m.Call] = {
    "begin": m.Begin(2, np.array([1.5]), 42, 2, RUN), "forecast": m.Forecast(np.array([0.5, np.nan]), False),
    "view": m.View(), "adopt": m.Adopt(SYNC), "join_game": m.JoinGame(INVITATION, None),
    "join_game under masks": m.JoinGame(INVITATION, MASKING), "backward": m.Backward(1),
    "receive": m.Receive(1, BackwardSums(numbers(2, 2), numbers(2), numbers(0), numbers(0))),
    "finish_game": m.FinishGame(np.array([0.75, 1.0])), "close": m.Close(6, None, np.array([2.5])),
    "close without a label": m.Close(6, SYNC, None), "missed": m.Missed(3, 6),
    "learn_late": m.LearnLate(0, 4, np.array([2.25])),
}  # fmt: skip
RESULTS: dict[str, m.Result] = {
    "introduced": m.Introduced(None, False, False, "forecasts", None),
    "remote_answer": m.RemoteAnswer(np.array([2.25]), "", None),
    "remote_answer with features": m.RemoteAnswer(np.array([2.25]), "", numbers(1, 2)),
    "game_view": GameView(numbers(2, 1, 2), numbers(2, 1, 2), numbers(2, 1, 1, 2, 2), 7.5, 0.125),
    "answer": Answer(np.array([2.25]), ""), "answer of none": Answer(None, "the model does not answer"),
    "backward_terms": BackwardTerms(numbers(2, 2), numbers(2), numbers(0), numbers(0)), "masked": bytes(range(48)),
    "refused": m.Refused("no keys"),
}  # fmt: skip

MESSAGES: dict[type, Mapping[str, tuple]] = {
    m.Hello: {
        "an agent that has begun no run": m.Hello(PROTOCOL, "node", "forecasts", None, -1, -1),
        "an agent with a key for masks, in a run": m.Hello(PROTOCOL, "node", "joint", KEY, 9, RUN),
    },
    m.Turn: {name: m.Turn(7, (call,)) for name, call in CALLS.items()}
    | {"the end of a step and the next one": m.Turn(7, (CALLS["close"], CALLS["forecast"]))},
    m.Reply: {name: m.Reply(7, (result,), "", 0.25) for name, result in RESULTS.items()}
    | {"an agent that sits out": m.Reply(7, (), "at step 7, not 9", 0.25)},
    m.Notice: {
        "a hub begins": m.Notice(0, "begins", ()),
        "an agent is late": m.Notice(7, "late", ("bob",), (KEY,)),
    },
    m.StepRecord: {"the input of a step": m.StepRecord(RUN, 7, np.array([0.5, np.nan]))},
    j.Opening: {
        "a stream begins": OPENING,
        "names of inputs unknown, three horizons, a season": OPENING._replace(x_names=(), horizon=3, season=24),
    },
    j.Keys: {"of two agents": j.Keys(("ada", "bob"), (KEY, KEY[::-1]))},
    j.Input: {
        "a number is missing": INPUT,
        "the time is missing": j.Input(8, np.array([0.5, 0.25]), math.nan),
    },
    j.Sums: {
        "of one horizon": SUMS,
        "of three horizons, scales have changed": j.Sums(
            7, (), ("ada",), numbers(6, 1, 3), numbers(2, 1), numbers(5, 1, 3), numbers(6, 1, 3, 7)
        ),
    },
    j.Label: {"known": LABEL, "not known": j.Label(7, None, np.array([2.375]))},
    j.LateLabel: {"of an earlier step": j.LateLabel(3, np.array([2.25]))},
    j.Recalled: {
        "sums that a label waited for": j.Recalled(numbers(5, 1, 1), ("bob",)),
        "sums that did not open": j.Recalled(None, ()),
    },
    j.Told: {
        "a run begins": told(0, j.HELLO, OPENING),
        "a row begins": told(8, j.FORECAST, INPUT),
        "sums, and nothing is asked": told(9, j.NOTHING, SUMS),
        "a label, and its sums are asked for; players are the first and third agent": told(
            10, j.RECALL, LABEL, players=b"\x05"
        ),
    },
    j.Said: {
        "hello": said(),
        "a forecast of an agent that plays no part in the game": said(own=OWN, terms=j.NO_TERMS),
        "a forecast and terms of sums": said(own=OWN, terms=TERMS),
        "with the distance it expects": said(
            traits=j.Traits(1, True), own=OWN._replace(distance=np.array([[0.5]])), terms=TERMS
        ),
        "terms under masks": said(traits=j.Traits(0, False), terms=bytes(range(160))),
        "an agent that sits out": said(reason="events 3 to 8 were missed"),
    },
    j.LogPart: {"a row": j.LogPart(RUN, 8, 8, tuple(map(j.event_bytes, (INPUT, SUMS, LABEL))))},
}  # fmt: skip


def meaning(value: Any) -> Any:
    """What a message says, as JSON: the same maps as on the wire, without their version."""
    if isinstance(value, np.ndarray):
        return {"shape": list(value.shape), "values": [meaning(float(number)) for number in value.ravel()]}
    if isinstance(value, bytes):
        return {"hex": value.hex()}
    if isinstance(value, tuple):
        if not hasattr(value, "_fields"):
            return [meaning(part) for part in value]
        fields = zip(value._fields, value, strict=True)  # pyright: ignore[reportAttributeAccessIssue]
        return {"type": type_name(type(value)), **{name: meaning(part) for name, part in fields}}
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": str(value)}
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= SAFE:
        return {"int": str(value)}
    return value


def vectors() -> dict[str, list[dict[str, Any]]]:
    """By kind of message."""
    return {
        type_name(kind): [
            {"what": what, "hex": pack(message).hex(), "meaning": meaning(message)}
            for what, message in messages.items()
        ]
        for kind, messages in MESSAGES.items()
    }


def text(found: list[dict[str, Any]]) -> str:
    return json.dumps(found, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for kind, found in vectors().items():
        (FOLDER / f"{kind}.json").write_text(text(found))
