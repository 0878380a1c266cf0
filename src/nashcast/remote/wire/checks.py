"""Checks each message against what was declared. A message that fails raises `MalformedMessage`, with the reason."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from math import inf, isfinite
from typing import Any, NamedTuple

import numpy as np

from nashcast.agents.protocol import SHARES, Answer, GameView, Sync
from nashcast.remote.masking.masks import masked_size
from nashcast.remote.wire.field_types import forms_of
from nashcast.remote.wire.format import LIMITS, PROTOCOL, MalformedMessage, type_name, unpack
from nashcast.remote.wire.messages import (
    LEAST_SHARE,
    LONGEST_REASON,
    MASKED,
    NOTICES,
    REFUSABLE,
    RESULTS,
    UNKNOWN,
    Begin,
    Call,
    Close,
    Dimensions,
    Hello,
    Introduced,
    JoinGame,
    LearnLate,
    Missed,
    Notice,
    Refused,
    RemoteAnswer,
    Reply,
    Result,
    StepRecord,
    Turn,
    kind_of,
)
from nashcast.remote.wire.number_limits import LARGEST, tame
from nashcast.remote.wire.shapes import NO_SIZES, SHAPES, Sizes, sizes_of, terms_of
from nashcast.validation import shape_text

NAME = re.compile("[A-Za-z0-9_-]{1,64}")
NAME_WORDS = "1 to 64 letters, digits, - or _"
# Bytes of a hello; the longest that is allowed is shorter.
LONGEST_HELLO = 2048


def read_hello(data: bytes, sender: str | None = None) -> Hello:
    """The hello in these bytes, checked. sender: the name that the broker has authenticated, if known."""
    hello = unpack(data, (Hello,), limits=LIMITS._replace(size=LONGEST_HELLO))
    check_hello(hello)
    if sender not in (None, hello.name):
        raise MalformedMessage(f"hello.name: got {hello.name!r} from {sender!r}")
    return hello


def check_hello(hello: Hello) -> None:
    _check_fields("hello", hello)
    if (hello.at < 0) != (hello.run < 0):
        raise MalformedMessage(f"hello.at: got {hello.at} with run {hello.run}, expected both or none of them to be -1")


def check_notice(notice: Notice) -> None:
    _check_fields("notice", notice)
    if notice.keys and len(notice.keys) != len(notice.names):
        raise MalformedMessage(f"notice.keys: got {len(notice.keys)}, expected none or one for each of the names")


def check_step_record(record: StepRecord, dimensions: Dimensions) -> None:
    _check_fields("step_record", record, sizes_of(dimensions))


def check_turn(turn: Turn, share: str, dimensions: Dimensions | None) -> Dimensions:
    """Check that the hub may ask this of an agent with this share. dimensions: None until the stream has begun.

    Returns the dimensions after the turn. In a turn that begins a stream, decoders are not compared with the agent's
    features here: the owner does that when it carries the turn out, as the decoder may belong to a forgotten run.
    """
    _check_fields("turn", turn)
    for place, call in enumerate(turn.calls):
        kind = kind_of(call)
        least = LEAST_SHARE.get(kind, "forecasts")
        if SHARES.index(share) < SHARES.index(least):
            raise MalformedMessage(f"{kind} is for agents that share {least}, this one shares {share}")
        if isinstance(call, Begin):
            if place > 0:
                raise MalformedMessage("begin: got it in the middle of a turn, expected it first")
            dimensions = dimensions or Dimensions(1, 1, UNKNOWN, 0)
            if call.target.size > _MOST_TARGETS:
                raise MalformedMessage(f"begin.target: got {call.target.size} numbers, expected 1 to {_MOST_TARGETS}")
            sizes: Sizes = {"y": max(1, call.target.size)}
        elif dimensions is None:
            raise MalformedMessage(f"{kind} before the stream has begun")
        elif dimensions.lookback == 0 and kind in LEAST_SHARE:
            raise MalformedMessage(f"{kind} in a stream without games: its look-back is 0")
        else:
            sizes = sizes_of(dimensions, call)
        _check_fields(kind, call, sizes)
        _check_over(kind, call, turn.step)
        _check_named(call)
        dimensions = dimensions.after(call)
    if dimensions is None:
        raise MalformedMessage("no call before the stream has begun")
    return dimensions


def check_reply(reply: Reply, turn: Turn, dimensions: Dimensions) -> list[Result]:
    """The results of a turn's calls, in order; none if the agent sits out, with the reason in reply.reason.

    dimensions: as they were before the turn, or after it. A forecast without numbers ends a turn, and so does a
    refusal to play on: later calls have no results.
    """
    if reply.step != turn.step:
        when = "stale" if reply.step < turn.step else "ahead"
        raise MalformedMessage(f"step {reply.step}, expected {turn.step} ({when})")
    _check_fields("reply", reply)
    if reply.reason and reply.results:
        raise MalformedMessage(f"got {len(reply.results)} results, expected 0 beside a reason to sit out")
    asked = [] if reply.reason else [call for call in turn.calls if kind_of(call) in RESULTS]
    for place, result in enumerate(reply.results[: len(asked)]):
        if isinstance(result, Refused) or (isinstance(result, RemoteAnswer) and result.forecast is None):
            asked = asked[: place + 1]
    if len(reply.results) != len(asked):
        told = f": {', '.join(map(kind_of, asked))}" if asked else ""
        raise MalformedMessage(f"got {len(reply.results)} results, expected {len(asked)}{told}")
    results = list(reply.results)
    for call in turn.calls:
        dimensions = dimensions.after(call)
        if kind_of(call) in RESULTS and results:
            result = results.pop(0)
            _check_result(kind_of(call), result, sizes_of(dimensions, call), dimensions.masked)
            if isinstance(result, Introduced):
                dimensions = dimensions._replace(features=result.features)
    return list(reply.results)


def _check_over(kind: str, call: Call, step: int) -> None:
    """Check that calls about finished steps name steps before the present one."""
    last = call.last if isinstance(call, Missed) else call.step if isinstance(call, Close | LearnLate) else -1
    if last >= step:
        field = "last" if isinstance(call, Missed) else "step"
        raise MalformedMessage(f"{kind}.{field}: got {last}, expected one before the present step, {step}")
    if isinstance(call, Missed) and call.first > call.last:
        raise MalformedMessage(f"missed.first: got {call.first}, expected at most {call.last}")
    if isinstance(call, Begin) and call.run < 0:
        raise MalformedMessage(f"begin.run: got {call.run}, expected at least 0")


def _check_named(call: Call) -> None:
    if not isinstance(call, JoinGame) or call.masking is None:
        return
    present, named, keys = call.masking.present, call.masking.named, call.masking.keys
    if len(set(present)) < len(present):
        raise MalformedMessage("join_game.present: got somebody twice")
    if len(keys) != len(named):
        raise MalformedMessage(f"join_game.keys: got {len(keys)}, expected one for each of the {len(named)} named")


def _check_result(kind: str, result: Result, sizes: Sizes, masked: bool) -> None:
    expected = bytes if masked and kind in MASKED else RESULTS[kind]
    if kind in REFUSABLE and isinstance(result, Refused):
        expected = Refused
    if type(result) is not expected:
        raise MalformedMessage(f"{kind}: got {type_name(type(result))}, expected {type_name(expected)}")
    if isinstance(result, bytes):
        if len(result) != (wanted := masked_size(terms_of(sizes))):
            raise MalformedMessage(f"{kind}: got {len(result)} bytes, expected {wanted} under masks")
    elif isinstance(result, tuple):
        _check_fields(kind, result, sizes)
    if isinstance(result, Refused) and not result.reason:
        raise MalformedMessage(f"{kind}: got no reason to refuse")
    if kind not in MASKED:  # terms depend on what the hub sent: very large ones need not be the agent's fault
        _check_size(kind, result)
    if isinstance(result, RemoteAnswer | Answer):
        if (result.forecast is None) != bool(result.reason):
            raise MalformedMessage(f"{kind}: got {'both' if result.reason else 'none'} of forecast and reason")
        if result.forecast is None and getattr(result, "features", None) is not None:
            raise MalformedMessage(f"{kind}: got features without a forecast")
    if isinstance(result, GameView) and (result.means is None) != (result.covariance is None):
        raise MalformedMessage(f"{kind}: got only one of means and covariance")
    if isinstance(result, Introduced) and (result.features is None) == result.lets_out("moments"):
        got, wanted = ("nothing", "a number") if result.features is None else (f"{result.features}", "nothing")
        raise MalformedMessage(f"{kind}.features: got {got}, expected {wanted} from who shares {result.share}")


def _check_size(kind: str, result: Result) -> None:
    for value in result if isinstance(result, tuple) else (result,):
        if isinstance(value, np.ndarray) and not tame(value):
            raise MalformedMessage(f"{kind}: got {np.abs(value).max():.3g}, expected at most {LARGEST:g} in size")


def _between(least: int, most: int) -> tuple[Callable[[Any], bool], str]:
    return lambda value: least <= value <= most, f"{least} to {most}"


_NAME = (lambda name: NAME.fullmatch(name) is not None, NAME_WORDS)
_KEY = (lambda key: 0 < len(key) <= 512, "1 to 512 bytes")
_COUNT = 2**63 - 1
# Limits on what `begin` allocates before any data arrives; encoders also allocate pairs of targets. The hub's work in a
# game grows with the third power of an agent's features.
_WIDEST, _LONGEST, _MOST_TARGETS, _MOST_FEATURES = 65_536, 256, 1_024, 1_024

# The rule for a field wherever it occurs; in a tuple, for each entry. Arrays are in SHAPES.
_RULES: dict[str, tuple[Callable[[Any], bool], str]] = {
    "version": (PROTOCOL.__eq__, f"{PROTOCOL}"), "name": _NAME, "names": _NAME, "present": _NAME, "named": _NAME,
    "public_key": _KEY, "keys": _KEY, "attempt": _between(0, 2**32 - 1),
    "share": (SHARES.__contains__, " or ".join(SHARES)), "kind": (NOTICES.__contains__, " or ".join(NOTICES)),
    "step": _between(0, _COUNT), "key": _between(0, _COUNT), "first": _between(0, _COUNT), "last": _between(0, _COUNT),
    "number": _between(0, _COUNT), "at": _between(-1, _COUNT), "run": _between(-1, _COUNT),
    "x_dim": _between(1, _WIDEST), "features": _between(0, _MOST_FEATURES), "lookback": _between(0, _LONGEST),
    "ridge": (lambda value: 0.0 < value < inf, "a finite number > 0"),
    "decay": (lambda value: 0.0 <= value < inf, "a finite number ≥ 0"),
    "seconds": (lambda value: 0.0 <= value < inf, "a finite number ≥ 0"),
    "reason": (lambda text: text.isprintable() and len(text) <= LONGEST_REASON, f"{LONGEST_REASON} letters on a line"),
}  # fmt: skip


class _Field(NamedTuple):
    """The check of one field. named: whether errors name the field, or only the message."""

    place: int
    name: str
    axes: str
    rule: tuple[Callable[[Any], bool], str] | None
    named: bool


@lru_cache
def _fields_of(kind: type) -> list[_Field]:
    """The fields of a NamedTuple that need a check beyond their type."""
    found = []
    for place, (field, form) in enumerate(forms_of(kind).items()):
        rule = _RULES.get(field)
        if form.array or form.records or rule is not None:
            named = field != "forecast" or kind is Sync
            found.append(_Field(place, field, SHAPES.get(kind, {}).get(field, ""), rule, named))
    return found


def _check_fields(where: str, record, sizes: Sizes = NO_SIZES) -> None:
    for place, field, axes, rule, named in _fields_of(type(record)):
        value = record[place]
        if value is None:
            continue
        if isinstance(value, np.ndarray):
            # NaN marks a missing input.
            _check_array(where, value, axes, sizes, field if named else "", field != "x")
        elif rule is None:
            _check_fields(where, value, sizes)
        else:
            holds, words = rule
            for part in value if isinstance(value, tuple) else (value,):
                if not holds(part):
                    raise MalformedMessage(f"{where}.{field}: got {part!r:.60}, expected {words}")


def _check_array(where: str, array: np.ndarray, axes: str, sizes: Sizes, field: str = "", finite: bool = True) -> None:
    shape = tuple([sizes[axis] for axis in axes])
    if shape != array.shape:
        _refuse_shape(f"{where}.{field}" if field else where, array.shape, shape)
    # Not finite if any number is not, or if the sum of squares overflows: the second test tells the two apart.
    if finite and not isfinite(np.vdot(array, array)) and not np.isfinite(array).all():
        place = [int(i) for i in np.argwhere(~np.isfinite(array))[0]]
        told = f"{where}.{field}" if field else where
        raise MalformedMessage(f"{told}{place} is {array[tuple(place)]}")


def _refuse_shape(where: str, got: tuple[int, ...], wanted: tuple[int | None, ...]) -> None:
    """Raise, unless the shapes differ only in lengths that are not known yet."""
    if None in wanted:
        raise MalformedMessage(f"{where}: got shape {shape_text(got)}, expected nothing where features are private")
    known = [length in (UNKNOWN, mine) for length, mine in zip(wanted, got, strict=False)]
    if len(got) != len(wanted) or not all(known):
        raise MalformedMessage(f"{where}: got shape {shape_text(got)}, expected {shape_text(wanted)}")
