"""The wire format: every message to the bit, any bytes refused safely, every reason in words, the page that says so."""

import ast
import inspect
import re
import sys
import tracemalloc
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, get_args, get_type_hints

import msgpack
import numpy as np
import pytest

import nashcast as nc
from nashcast.agents import protocol
from nashcast.agents.protocol import (
    PAPER_SHARES,
    Answer,
    BackwardSums,
    BackwardTerms,
    GameView,
    Invitation,
    Participant,
    Sync,
)
from nashcast.games.lookback.spread import AgentPart
from nashcast.remote.hub.peer import MOST_LATE
from nashcast.remote.owner.owner import AT_ONCE
from nashcast.remote.wire import checks as c
from nashcast.remote.wire import format as wire
from nashcast.remote.wire import messages as m
from nashcast.remote.wire.fast_decoding import NotAsWritten, read_as_written
from nashcast.remote.wire.format import LIMITS, PROTOCOL, VERSION, Limits, MalformedMessage, pack, type_name, unpack
from nashcast.remote.wire.shapes import sizes_of
from support.remote.drawn_messages import draw

PAGE = (Path(__file__).parents[3] / "docs" / "reference" / "remote-protocol.md").read_text()
MESSAGES = (m.Hello, m.Turn, m.Reply, m.Notice, m.StepRecord)
CALLS, RESULTS = get_args(m.Call), get_args(m.Result)


def same(one, other):
    """Equal in type and to the bit."""
    if type(one) is not type(other):
        return False
    if isinstance(one, np.ndarray):
        return one.shape == other.shape and one.dtype == other.dtype and one.tobytes() == other.tobytes()
    if isinstance(one, tuple):
        return len(one) == len(other) and all(map(same, one, other))
    return repr(one) == repr(other)


class Holder(NamedTuple):
    array: np.ndarray


def refused(data, kinds=MESSAGES, **options):
    with pytest.raises(MalformedMessage) as caught:
        unpack(data, kinds, **options)
    return str(caught.value)


@pytest.mark.parametrize("kind", [*MESSAGES, *CALLS, *(r for r in RESULTS if hasattr(r, "_fields"))], ids=type_name)
def test_every_message_comes_back_to_the_bit(kind):
    rng = np.random.default_rng(len(kind.__name__))
    for _ in range(60):
        message = draw(rng, kind)
        data = pack(message)
        back = unpack(data, (kind,))
        assert same(back, message)
        assert pack(back) == data
        assert msgpack.unpackb(data)["v"] == VERSION


@pytest.mark.parametrize("result", [b"", b"masked", Answer(None, "away")], ids=repr)
def test_every_plain_result_comes_back(result):
    assert same(unpack(pack(m.Reply(1, (result,), "", 0.5)), (m.Reply,)).results[0], result)


def test_arrays_keep_every_bit_and_are_fresh():
    bits = [0, 1 << 63, 1, 0x000FFFFFFFFFFFFF, 0x7FF0000000000000, 0xFFF0000000000000, 0x7FF0000000000001]
    bits += [0x7FF8DEADBEEF1234, 0xFFFFFFFFFFFFFFFF, 0x7FEFFFFFFFFFFFFF]
    sent = np.array(bits, dtype=np.uint64).view(np.float64)
    data = pack(Holder(sent))
    got = unpack(data, (Holder,)).array
    assert got.view(np.uint64).tolist() == bits
    assert got.flags.writeable
    assert got.flags.c_contiguous
    assert got.flags.aligned
    assert got.dtype is np.dtype(np.float64)
    got[:] = 0.0
    assert unpack(data, (Holder,)).array.view(np.uint64).tolist() == bits


def test_arrays_of_any_layout_are_sent_in_order():
    values = np.arange(24.0).reshape(2, 3, 4)
    for view in (values.transpose(2, 0, 1), values[:, ::-1, ::2], values.astype(">f8"), np.asfortranarray(values)):
        np.testing.assert_array_equal(unpack(pack(Holder(view)), (Holder,)).array, view)
    for shape in ((), (0,), (3, 0, 2), (0, 0, 0, 0, 0)):
        assert unpack(pack(Holder(np.zeros(shape))), (Holder,)).array.shape == shape


def test_numbers_may_be_whole_and_numpys():
    reply = m.Reply(np.int64(3), (m.Introduced(np.int64(2), np.bool_(True), False, "sums"),), "", 2)
    assert same(unpack(pack(reply), (m.Reply,)), m.Reply(3, (m.Introduced(2, True, False, "sums"),), "", 2.0))


CLOSE = m.Close(299, Sync(np.ones(1), None), None)


def test_the_quick_way_and_the_careful_one_read_the_same(monkeypatch):
    """On messages as they are written, in another order, with a field twice, and with bytes changed."""
    rng, quick, counts = np.random.default_rng(3), wire.read_as_written, {"quick": 0, "careful": 0, "refused": 0}

    def careful(*_):
        raise NotAsWritten

    def shuffled(value):
        if isinstance(value, dict):
            pairs = [(key, shuffled(part)) for key, part in value.items()]
            return dict([pairs[i] for i in rng.permutation(len(pairs))])
        return [shuffled(part) for part in value] if isinstance(value, list) else value

    for _ in range(1500):
        kind = MESSAGES[rng.integers(len(MESSAGES))]
        data = bytearray(pack(draw(rng, kind)))
        way = rng.integers(3)
        if way == 1:
            data = msgpack.packb(shuffled(msgpack.unpackb(bytes(data))))
        elif way == 2:
            data[rng.integers(min(len(data), 80))] = rng.integers(256)
        found = []
        for reader in (quick, careful):
            monkeypatch.setattr(wire, "read_as_written", reader)
            try:
                found.append(unpack(bytes(data), MESSAGES))
            except MalformedMessage as error:
                found.append((str(error),))
        assert same(found[0], found[1])
        try:
            read_as_written(msgpack.unpackb(bytes(data), object_pairs_hook=tuple), MESSAGES, VERSION, *LIMITS[-1:-3:-1])
            counts["quick"] += 1
        except Exception:
            counts["careful" if hasattr(found[0], "_fields") else "refused"] += 1
    assert min(counts.values()) > 100


def samples():
    rng = np.random.default_rng(5)
    terms = BackwardTerms(rng.standard_normal((2, 2)), rng.standard_normal(2), np.zeros(0), np.zeros(0))
    return [
        m.Hello(PROTOCOL, "desk-3", "sums", b"keys", 12, 2**62),
        m.Turn(300, (m.Begin(2, np.ones(1), 2**62, 3, 5), m.Receive(1, BackwardSums(*terms)), CLOSE, m.View())),
        m.Reply(300, (m.Introduced(3, False, True, "features"), terms, b"x", Answer(np.ones(3))), "", 0.01),
        m.Notice(7, "absent", ("desk-3", "a"), (b"1", b"2")),
        m.StepRecord(5, 9, np.array([np.nan, 1.0])),
    ]


@pytest.mark.parametrize("message", samples(), ids=lambda sample: type_name(type(sample)))
def test_no_prefix_and_no_longer_message_is_read(message):
    data = pack(message)
    for end in range(len(data)):
        refused(data[:end])
    assert "1 bytes too many" in refused(data + b"\x00")
    assert "too many" in refused(data + data)


TELLING = {0x00, 0x7F, 0x80, 0x90, 0xA0, 0xC0, 0xC1, 0xC4, 0xC7, 0xCB, 0xD9, 0xDD, 0xDF, 0xFF}  # heads of many kinds


@pytest.mark.parametrize("message", samples(), ids=lambda sample: type_name(type(sample)))
def test_a_changed_byte_is_refused_or_is_another_message(message):
    data, read = bytearray(pack(message)), 0
    for place in range(len(data)):
        kept = data[place]
        for other in {kept ^ (1 << bit) for bit in range(8)} | TELLING - {kept}:
            data[place] = other
            try:
                got = unpack(bytes(data), MESSAGES)
            except MalformedMessage:
                continue
            assert type(got) in MESSAGES
            assert same(unpack(pack(got), MESSAGES), got)
            read += 1
        data[place] = kept
    assert 0 < read < 8 * len(data)
    assert same(unpack(bytes(data), MESSAGES), message)


def test_random_bytes_are_refused():
    rng = np.random.default_rng(6)
    start = pack(samples()[0])[:20]
    for i in range(10_000):
        noise = rng.bytes(int(rng.integers(0, 200)))
        refused(noise if i % 2 else start + noise)


def head(byte, length, width):
    return bytes([byte]) + length.to_bytes(width, "big")


def wrapped(**fields):
    return msgpack.packb({"v": 1, **fields})


def array(*parts):
    return wrapped(type="holder", array=list(parts))


MANY = 2**32 - 1
FORECAST = {"type": "forecast", "x": ["<f8", [0], b""], "features": 1}
HELLO = msgpack.unpackb(pack(samples()[0]))
BOMBS = {
    "nothing": (b"", "cut off after 0 bytes"),
    "too large": (b"\xc0" * (LIMITS.size + 1), "1048577 bytes, at most 1048576"),
    "a huge list": (head(0xDD, MANY, 4), f"a list of length {MANY}, at most 4096"),
    "a huge map": (head(0xDF, MANY, 4), f"a map of length {MANY}, at most 32"),
    "a huge text": (head(0xDB, MANY, 4), f"a text of length {MANY}, at most 4096"),
    "huge bytes": (head(0xC6, MANY, 4), f"a bytes of length {MANY}, at most 1048576"),
    "a list that is not there": (head(0xDC, 4096, 2), "a list that claims 4096 of the 0 bytes left"),
    "a map that is not there": (head(0xDE, 32, 2) + b"\xc0" * 60, "a map that claims 64 of the 60 bytes left"),
    "a text that is not there": (head(0xDA, 4000, 2) + b"a", "a text that claims 4000 of the 1 bytes left"),
    "bytes that are not there": (head(0xC6, 10**6, 4) + b"a", "a bytes that claims 1000000 of the 1 bytes left"),
    "a number that is not there": (b"\xcb\x00", "a number that claims 8 of the 1 bytes left"),
    "a length that is not there": (b"\xdd\x00", "cut off after 2 bytes"),
    "lists in lists": (b"\x91" * LIMITS.size, "more than 8 maps and lists inside each other"),
    "maps in maps": (b"\x81\xa1a" * 10_000 + b"\xc0", "more than 8 maps and lists inside each other"),
    "long lists in lists": (head(0xDC, 4096, 2) * 20_000, "more than 8 maps and lists inside each other"),
    "lists of lists": (head(0xDC, 4096, 2) + (head(0xDC, 200, 2) + b"\x00" * 200) * 4096, "more than 16384 values"),
    "a giant text": (wrapped(type="a" * 5000), "a text of length 5000, at most 4096"),
    "many fields": (wrapped(**{str(i): 0 for i in range(40)}), "a map of length 41, at most 32"),
    "an own type": (msgpack.packb(msgpack.ExtType(5, b"abcd")), "byte 0xd6 at 0 begins nothing"),
    "a long own type": (head(0xC9, MANY, 4) + b"\x05", "byte 0xc9 at 0 begins nothing"),
    "a time": (msgpack.packb(msgpack.Timestamp(1)), "begins nothing"),
    "a short float": (b"\xca\x00\x00\x00\x00", "byte 0xca at 0 begins nothing"),
    "the byte never used": (b"\xc1", "byte 0xc1 at 0 begins nothing"),
    "a key twice": (b"\x83\xa1v\x01\xa4type\xa5hello\xa1v\x01", "the same key twice"),
    "a type twice": (b"\x83\xa1v\x01\xa4type\xa5hello\xa4type\xa5hello", "the same key twice"),
    "a key of bytes": (b"\x81\xc4\x01v\x01", "the key b'v', expected a text"),
    "a key that is a number": (b"\x81\x01\x01", "is not allowed for map key"),
    "a key that is a list": (b"\x81\x90\x01", "is not allowed for map key"),
    "no UTF-8": (b"\x81\xa1v\xa1\xff", "'utf-8' codec can't decode byte 0xff"),
    "a surrogate": (b"\x81\xa1v\xa3\xed\xa0\x80", "'utf-8' codec can't decode byte 0xed"),
    "no map": (b"\x93\x01\x02\x03", "got a list of length 3, expected a map"),
    "nil": (b"\xc0", "got nothing, expected a map"),
    "no version": (msgpack.packb({"type": "hello"}), "version nothing, expected 1"),
    "another version": (msgpack.packb({"v": 2, "type": "hello"}), "version 2, expected 1"),
    "true for a version": (msgpack.packb({"v": True}), "version True, expected 1"),
    "no type": (wrapped(), "message: got type nothing, expected hello or holder or forecast"),
    "a list for a type": (wrapped(type=["hello"]), "got type a list of length 1, expected hello or holder or forecast"),
    "an unknown type": (wrapped(type="turn"), "message: got type 'turn', expected hello or holder or forecast"),
    "a field less": (msgpack.packb({k: v for k, v in HELLO.items() if k != "share"}), "got a hello without share"),
    "a field more": (msgpack.packb(HELLO | {"x" * 99: 1}), f"got a hello with an unknown field '{'x' * 40}'…"),
    "bytes for a text": (msgpack.packb(HELLO | {"name": b"a"}), "hello.name: got b'a', expected a text"),
    "a text for bytes": (msgpack.packb(HELLO | {"public_key": "a"}), "public_key: got 'a', expected bytes or nothing"),
    "true for a number": (msgpack.packb(HELLO | {"at": True}), "hello.at: got True, expected a whole number"),
    "a float for a whole number": (msgpack.packb(HELLO | {"at": 1.0}), "at: got 1.0, expected a whole number"),
    "a number for a flag": (wrapped(**FORECAST), "forecast.features: got 1, expected true or false"),
    "no array": (wrapped(type="holder", array=1.0), "holder.array: got 1.0, expected an array"),
    "a map for an array": (wrapped(type="holder", array={"type": "hello"}), "got a map of length 1, expected an array"),
    "an array of two parts": (array("<f8", [0]), "array: got a list of length 2, expected dtype, shape and bytes"),
    "an array of text": (array("<f8", [1], "12345678"), "got a list of length 3, expected dtype, shape and bytes"),
    "a dtype of bytes": (array(b"<f8", [1], b"12345678"), "got a list of length 3, expected dtype, shape and bytes"),
    "objects": (array("|O", [1], b"12345678"), "array: got dtype '|O', expected '<f8'"),
    "another end first": (array(">f8", [1], b"12345678"), "array: got dtype '>f8', expected '<f8'"),
    "six axes": (array("<f8", [1] * 6, b"12345678"), "got shape a list of length 6, expected at most 5 whole"),
    "a negative length": (array("<f8", [-1, -1], b"12345678"), "expected at most 5 whole numbers ≥ 0"),
    "a true length": (array("<f8", [True], b"12345678"), "expected at most 5 whole numbers ≥ 0"),
    "more than there is": (array("<f8", [2], b"12345678"), "array: got shape (2,) in 8 bytes, expected 16 bytes"),
    "less than there is": (array("<f8", [0], b"12345678"), "array: got shape (0,) in 8 bytes, expected 0 bytes"),
    "half a number": (array("<f8", [1], b"1234567"), "array: got shape (1,) in 7 bytes, expected 8 bytes"),
    "numbers that overflow": (array("<f8", [2**32, 2**32], b""), "at most 131072 numbers"),
    "hidden behind nothing": (array("<f8", [0, 2**62, 2**62], b""), "at most 131072 numbers"),
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_is_refused_with_a_reason_before_it_takes_memory(name):
    data, words = BOMBS[name]
    kinds = (m.Hello, Holder, m.Forecast)
    refused(data, kinds)
    tracemalloc.start()
    try:
        told = refused(data, kinds)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert words in told
    assert len(told) < 400
    assert peak < 200_000


def test_damaged_and_random_bytes_leave_no_memory_behind():
    rng, data = np.random.default_rng(8), pack(samples()[1])

    def feed():
        for _ in range(300):
            changed = bytearray(data)
            changed[rng.integers(len(data))] = rng.integers(256)
            for damaged in (bytes(changed), rng.bytes(100)):
                with suppress(MalformedMessage):
                    unpack(damaged, MESSAGES)

    feed()
    tracemalloc.start()
    try:
        feed()
        before = tracemalloc.get_traced_memory()[0]
        feed()
        feed()
        grown = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert grown < 50_000


def test_limits_are_parameters():
    data = pack(m.StepRecord(0, 1, np.zeros(100)))
    assert "at most 500 are read" in refused(data, limits=Limits(size=500))
    assert "at most 99 numbers" in refused(data, limits=Limits(elements=99))
    assert "at most 0 whole numbers" in refused(data, limits=Limits(rank=0))
    assert "more than 2 maps and lists" in refused(data, limits=Limits(depth=2))
    assert "more than 9 values" in refused(data, limits=Limits(values=9))
    assert "a map of length 5, at most 4" in refused(data, limits=Limits(fields=4))
    assert "a list of length 3, at most 2" in refused(data, limits=Limits(items=2))
    assert "a text of length 4, at most 3" in refused(data, limits=Limits(text=3))
    large = Limits(size=1 << 22, elements=1 << 18)
    record = m.StepRecord(0, 1, np.ones(200_000))
    assert same(unpack(pack(record, limits=large), (m.StepRecord,), limits=large), record)


class Odd(NamedTuple):
    value: object


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (np.ones(2, dtype=np.float32), "an array of shape (2,) and type float32, not float64"),
        (np.ones(2, dtype=np.int64), "type int64, not float64"),
        (np.array([None]), "type object, not float64"),
        (np.ones(200_000), "at most 1048576"),
        ("a" * 5000, "a text of length 5000, at most 4096"),
        ("\ud800", "surrogates not allowed"),
        (2**64, "out of range"),
        (object(), "serialize"),
    ],
)
def test_what_cannot_be_sent_is_refused_by_the_sender(value, words):
    with pytest.raises(nc.InvalidInput) as caught:
        pack(Odd(value))
    assert str(caught.value).startswith("odd: got what cannot be sent (")
    assert words in str(caught.value)


def test_a_missing_package_prints_its_line(monkeypatch):
    monkeypatch.setitem(sys.modules, "msgpack", None)
    with pytest.raises(nc.InvalidInput, match=r"Install it: pip install 'nashcast\[remote\]'"):
        pack(samples()[0])


def test_calls_are_methods_of_the_protocol_and_their_arguments():
    kinds = {type_name(call): call for call in CALLS}
    assert len(kinds) == len(CALLS) == 11
    ends = {"close", "missed", "learn_late"}  # these say which step, so that each is done once
    beside = {"begin": ["run"], "forecast": ["features"], "join_game": ["masking"]}
    for kind in kinds.keys() - ends:
        method = getattr(Participant, kind)
        assert [*inspect.signature(method).parameters][1:] + beside.get(kind, []) == list(kinds[kind]._fields)
        hints = get_type_hints(method, vars(protocol))
        hints.pop("return")
        assert hints.items() <= get_type_hints(kinds[kind]).items()
    assert not any(hasattr(Participant, kind) for kind in ends - {"learn_late"})
    assert set(m.RESULTS) < set(kinds)
    assert set(m.LEAST_SHARE) < set(kinds)
    assert {*m.RESULTS.values(), bytes, m.Refused} == set(RESULTS)
    assert set(m.MASKED) < set(m.RESULTS)
    assert kinds.keys() - m.RESULTS.keys() == {"join_game", "receive"} | ends
    # What an agent has learnt never leaves it whole.
    assert "save" not in kinds


def test_noise_and_surprise_have_the_sizes_the_game_gives_them():
    for p, T, noisy in ((1, 1, True), (1, 3, True), (2, 3, True), (3, 4, True), (2, 3, False)):
        Z, spread = np.ones((T, p, 2)), np.zeros((T, p, p, 2, 2)) if noisy else None
        part = AgentPart(Z, None, spread, 1.0, 0.0, Invitation(np.ones((T, p)), np.ones(T), np.zeros(p), noisy))
        for back in range(T):
            sizes, k = sizes_of(m.Dimensions(1, p, 2, T, noisy), m.Backward(back)), (back + 1) * p
            *_, tensor, surprise = part.backward(back)
            assert (sizes["n"], sizes["s"]) == (tensor.size, surprise.size)
            part.receive(back, np.eye(k), np.zeros(k), tensor, surprise)


# Everything the checks refuse, in words

DIMENSIONS = m.Dimensions(x_dim=2, y_dim=1, features=4, lookback=3, noisy=True)
SENDER = m.Hello(PROTOCOL, "desk-3", "features", None, 4, 7)
INTRODUCED = m.Introduced(4, False, True, "features")
VIEW = GameView(np.ones((3, 1, 4)), np.ones((3, 1, 4)), np.ones((3, 1, 1, 4, 4)), 1.0, 0.0)
TERMS = BackwardTerms(np.ones((2, 2)), np.ones(2), np.ones(15), np.ones(6))
FINISH = m.FinishGame(np.ones(3))
ONE = np.ones(1)

FORECASTS = m.Forecast(np.ones(2), True)

GOOD_RESULTS = [
    (m.Forecast(np.array([np.nan, 1.0]), False), m.RemoteAnswer(ONE)),
    (FORECASTS, m.RemoteAnswer(ONE, "", np.ones((1, 4)))),
    (FORECASTS, m.RemoteAnswer(None, "its encoder raised")),
    (m.View(), VIEW),
    (m.View(), VIEW._replace(means=None, covariance=None)),
    (m.Adopt(Sync(ONE, None)), Answer(ONE)),
    (m.Backward(1), TERMS),
    (m.Backward(2), BackwardTerms(np.ones((3, 3)), np.ones(3), np.ones(0), np.ones(12))),
    (FINISH, Answer(ONE)),
]

BAD_RESULTS = [
    (FORECASTS, m.RemoteAnswer(np.ones(2)), "forecast: got shape (2,), expected (1,)"),
    (FORECASTS, m.RemoteAnswer(np.ones(())), "forecast: got shape (), expected (1,)"),
    (FORECASTS, m.RemoteAnswer(np.array([-np.inf])), "forecast[0] is -inf"),
    (FORECASTS, m.RemoteAnswer(None), "forecast: got none of forecast and reason"),
    (FORECASTS, m.RemoteAnswer(ONE, "tired"), "forecast: got both of forecast and reason"),
    (FORECASTS, m.RemoteAnswer(None, "a\nb"), "forecast.reason: got 'a\\nb', expected 500 letters"),
    (FORECASTS, m.RemoteAnswer(None, "a" * 501), "expected 500 letters on a line"),
    (FORECASTS, m.RemoteAnswer(ONE, "", np.ones(4)), "forecast.features: got shape (4,), expected (1, 4)"),
    (FORECASTS, m.RemoteAnswer(None, "no", np.ones((1, 4))), "forecast: got features without a forecast"),
    (FORECASTS, Answer(ONE), "forecast: got answer, expected remote_answer"),
    (m.View(), VIEW._replace(features=np.ones((2, 1, 4))), "view.features: got shape (2, 1, 4), expected (3, 1, 4)"),
    (m.View(), VIEW._replace(means=np.full((3, 1, 4), np.nan)), "view.means[0, 0, 0] is nan"),
    (m.View(), VIEW._replace(covariance=np.ones((3, 1, 4, 4))), "(3, 1, 4, 4), expected (3, 1, 1, 4, 4)"),
    (m.View(), VIEW._replace(means=None), "view: got only one of means and covariance"),
    (m.View(), VIEW._replace(ridge=0.0), "view.ridge: got 0.0, expected a finite number > 0"),
    (m.View(), VIEW._replace(ridge=np.inf), "view.ridge: got inf, expected a finite number > 0"),
    (m.View(), VIEW._replace(decay=-1.0), "view.decay: got -1.0, expected a finite number ≥ 0"),
    (m.View(), VIEW._replace(decay=float("nan")), "view.decay: got nan, expected a finite number ≥ 0"),
    (m.Adopt(Sync(ONE, None)), m.RemoteAnswer(ONE), "adopt: got remote_answer, expected answer"),
    (m.Adopt(Sync(ONE, None)), Answer(np.full(1, np.nan)), "adopt[0] is nan"),
    (m.Backward(1), VIEW, "backward: got game_view, expected backward_terms"),
    (m.Backward(1), TERMS._replace(coupling=np.array([[1.0, np.nan], [1.0, 1.0]])), "backward.coupling[0, 1] is nan"),
    (m.Backward(1), TERMS._replace(coupling=np.ones(4)), "backward.coupling: got shape (4,), expected (2, 2)"),
    (m.Backward(1), TERMS._replace(offset=np.ones(3)), "backward.offset: got shape (3,), expected (2,)"),
    (m.Backward(1), TERMS._replace(tensor=np.ones(0)), "backward.tensor: got shape (0,), expected (15,)"),
    (m.Backward(2), TERMS, "backward.coupling: got shape (2, 2), expected (3, 3)"),
    (m.Backward(1), TERMS._replace(surprise=np.ones(4)), "backward.surprise: got shape (4,), expected (6,)"),
    (m.Backward(1), b"", "backward: got bytes, expected backward_terms"),
    (FINISH, Answer(np.ones(2)), "finish_game: got shape (2,), expected (1,)"),
]


def answer(turn, *results, reason="", seconds=0.1, dimensions=DIMENSIONS):
    reply = unpack(pack(m.Reply(turn.step, results, reason, seconds)), (m.Reply,))
    return c.check_reply(reply, turn, dimensions)


@pytest.mark.parametrize(("call", "result"), GOOD_RESULTS)
def test_a_good_result_comes_back_in_the_protocols_types(call, result):
    turn = m.Turn(15, (m.Close(14, None, ONE), call, m.Missed(0, 14)))
    (got,) = answer(turn, result)
    assert same(got, result)


@pytest.mark.parametrize(("call", "result", "words"), BAD_RESULTS)
def test_a_bad_result_is_refused_by_name(call, result, words):
    with pytest.raises(MalformedMessage) as caught:
        answer(m.Turn(15, (m.Missed(0, 14), call)), result)
    assert words in str(caught.value)


BAD_INTRODUCTIONS = [
    (INTRODUCED._replace(features=-1), "begin.features: got -1, expected 0 to 1024"),
    (INTRODUCED._replace(features=5000), "begin.features: got 5000, expected 0 to 1024"),
    (INTRODUCED._replace(features=None), "begin.features: got nothing, expected a number from who shares features"),
    (INTRODUCED._replace(share="sums"), "begin.features: got 4, expected nothing from who shares sums"),
    (
        INTRODUCED._replace(share="all"),
        "begin.share: got 'all', expected joint or forecasts or sums or moments or features",
    ),
    (Answer(ONE), "begin: got answer, expected introduced"),
]


@pytest.mark.parametrize(("result", "words"), BAD_INTRODUCTIONS)
def test_a_bad_introduction_is_refused_by_name(result, words):
    with pytest.raises(MalformedMessage, match=re.escape(words)):
        answer(m.Turn(0, (m.Begin(2, ONE, 1, 3, 1),)), result)


def test_an_introduction_says_how_many_features_what_follows_it_has():
    turn = m.Turn(5, (m.Begin(2, ONE, 1, 3, 1), FORECASTS, m.View()))
    for before in (m.UNKNOWN, 4, 7):
        dimensions = DIMENSIONS._replace(features=before)
        answered = m.RemoteAnswer(ONE, "", np.ones((1, 4)))
        assert len(answer(turn, INTRODUCED, answered, VIEW, dimensions=dimensions)) == 3
        with pytest.raises(MalformedMessage, match=re.escape("forecast.features: got shape (1, 4), expected (1, 3)")):
            answer(turn, INTRODUCED._replace(features=3), answered, VIEW, dimensions=dimensions)
    private = INTRODUCED._replace(features=None, share="sums")
    with pytest.raises(MalformedMessage, match=r"view\.features: .* expected nothing where features are private"):
        answer(turn, private, m.RemoteAnswer(ONE), VIEW)


def test_replies_keep_step_order_and_count():
    turn = m.Turn(15, (m.Missed(0, 14), FORECASTS, m.View()))
    results = (m.RemoteAnswer(ONE), VIEW)
    bad = [
        (m.Reply(12, results, "", 0.1), "step 12, expected 15 (stale)"),
        (m.Reply(16, results, "", 0.1), "step 16, expected 15 (ahead)"),
        (m.Reply(15, results[::-1], "", 0.1), "forecast: got game_view, expected remote_answer"),
        (m.Reply(15, results[:1], "", 0.1), "got 1 results, expected 2: forecast, view"),
        (m.Reply(15, (*results, VIEW), "", 0.1), "got 3 results, expected 2: forecast, view"),
        (m.Reply(15, results, "busy", 0.1), "got 2 results, expected 0 beside a reason to sit out"),
        (m.Reply(15, results, "", -0.1), "reply.seconds: got -0.1, expected a finite number ≥ 0"),
        (m.Reply(15, results, "", float("nan")), "reply.seconds: got nan"),
        (m.Reply(15, (), "\x1b[2J", 0.1), "reply.reason: got '\\x1b[2J', expected 500 letters on a line"),
        (m.Reply(15, (m.RemoteAnswer(None, "away"), VIEW), "", 0.1), "got 2 results, expected 1: forecast"),
    ]
    for reply, words in bad:
        with pytest.raises(MalformedMessage, match=re.escape(words)):
            c.check_reply(reply, turn, DIMENSIONS)
    with pytest.raises(MalformedMessage, match=r"got 1 results, expected 0$"):
        c.check_reply(m.Reply(15, (VIEW,), "", 0.1), m.Turn(15, (m.Missed(0, 14),)), DIMENSIONS)
    assert c.check_reply(m.Reply(15, (), "busy", 0.1), turn, DIMENSIONS) == []
    assert c.check_reply(m.Reply(15, (), "", 0.1), m.Turn(15, (m.Missed(0, 14),)), DIMENSIONS) == []
    assert len(c.check_reply(m.Reply(15, results, "", 0.1), turn, DIMENSIONS)) == 2
    # Who has no forecast has nothing else to say in that turn.
    assert len(c.check_reply(m.Reply(15, (m.RemoteAnswer(None, "away"),), "", 0.1), turn, DIMENSIONS)) == 1


def test_masked_terms_are_bytes_and_nothing_else_is():
    masked = DIMENSIONS._replace(masked=True)
    turn = m.Turn(1, (m.Backward(1), FINISH))
    terms = bytes(16 + 16 * (4 + 2 + 15 + 6 + 1))  # a tag, then 16 bytes for each number and for a 1
    results = (terms, Answer(ONE))
    assert all(map(same, answer(turn, *results, dimensions=masked), results))
    for changed, words in [
        ((TERMS, results[1]), "backward: got backward_terms, expected bytes"),
        ((terms[1:], results[1]), "backward: got 463 bytes, expected 464 under masks"),
        ((terms, b""), "finish_game: got bytes, expected answer"),
        ((m.Refused("too few"), results[1]), "got 2 results, expected 1: backward"),
        ((m.Refused(""),), "backward: got no reason to refuse"),
        ((m.Refused("a\nb"),), "backward.reason: got 'a.*expected 500 letters on a line"),
    ]:
        with pytest.raises(MalformedMessage, match=words):
            answer(turn, *changed, dimensions=masked)
    for place in range(2):  # whoever refuses has nothing else to say in that turn
        assert len(answer(turn, *results[:place], m.Refused("too few"), dimensions=masked)) == place + 1
    # Without masks too an owner may refuse: a second game in a step, for one.
    assert list(answer(turn, m.Refused("a second game"))) == [m.Refused("a second game")]
    with pytest.raises(MalformedMessage, match="forecast: got refused, expected remote_answer"):
        answer(m.Turn(1, (FORECASTS,)), m.Refused("no masks"), dimensions=masked)
    with pytest.raises(MalformedMessage, match="backward: got bytes, expected backward_terms"):
        answer(turn, *results)


def test_private_features_may_not_be_told():
    private = DIMENSIONS._replace(features=None)
    for call, result in ((m.View(), VIEW), (FORECASTS, m.RemoteAnswer(ONE, "", np.ones((1, 4))))):
        with pytest.raises(MalformedMessage, match="expected nothing where features are private"):
            answer(m.Turn(1, (call,)), result, dimensions=private)


def test_dimensions_follow_the_calls_of_a_turn():
    start = m.Begin(2, ONE, 5, 2, 1)
    join = m.JoinGame(Invitation(np.ones((2, 1)), np.ones(2), ONE, True))
    after = c.check_turn(m.Turn(0, (start, join, m.Backward(0))), "features", None)
    assert after == m.Dimensions(2, 1, m.UNKNOWN, 2, noisy=True)
    assert c.check_turn(m.Turn(1, (start,)), "features", after._replace(masked=True)) == (2, 1, -1, 2, False, True)
    turn = m.Turn(3, (join, m.Backward(0)))
    noisy = BackwardTerms(np.ones((1, 1)), ONE, np.ones(2), np.ones(0))
    assert len(answer(turn, noisy, dimensions=after._replace(noisy=False))) == 1
    with pytest.raises(MalformedMessage, match=re.escape("backward.tensor: got shape (0,), expected (2,)")):
        answer(turn, noisy._replace(tensor=np.ones(0)), dimensions=after._replace(noisy=False))
    masking = m.Masking(0, ("a", "b"), np.ones((2, 2)), (), ())
    assert after.after(join._replace(masking=masking)) == after._replace(masked=True)


SYNC, SUMS = Sync(ONE, np.ones(4), np.ones((3, 1))), BackwardSums(np.ones((2, 2)), np.ones(2), np.ones(15), np.ones(6))
INVITATION = Invitation(np.ones((3, 1)), np.ones(3), ONE, True)
MASKING = m.Masking(1, ("desk-3", "a"), np.ones((3, 2)), ("a",), (b"k" * 96,))
GOOD_CALLS = [
    m.Begin(2, ONE, 2**63 - 1, 256, 2**63 - 1), m.Forecast(np.array([np.nan, np.inf]), False), m.View(), m.Adopt(SYNC),
    m.Adopt(Sync(ONE, None)), m.JoinGame(INVITATION), m.JoinGame(INVITATION, MASKING), m.Backward(2),
    m.Receive(1, SUMS), FINISH, m.Close(3, SYNC, ONE), m.Close(0, None, None), m.Missed(0, 3),
    m.Missed(3, 3), m.LearnLate(2**63 - 1, 3, ONE),
]  # fmt: skip
BAD_CALLS = [
    (m.Begin(0, ONE, 1, 3, 1), "begin.x_dim: got 0, expected 1 to 65536"),
    (m.Begin(2**40, ONE, 1, 3, 1), "begin.x_dim: got 1099511627776, expected 1 to 65536"),
    (m.Begin(2, np.ones((1, 1)), 1, 3, 1), "begin.target: got shape (1, 1), expected (1,)"),
    (m.Begin(2, np.ones(2000), 1, 3, 1), "begin.target: got 2000 numbers, expected 1 to 1024"),
    (m.Begin(2, np.full(1, np.nan), 1, 3, 1), "begin.target[0] is nan"),
    (m.Begin(2, ONE, -1, 3, 1), "begin.key: got -1, expected 0 to 9223372036854775807"),
    (m.Begin(2, ONE, 2**63, 3, 1), "begin.key: got 9223372036854775808"),
    (m.Begin(2, ONE, 1, 10**6, 1), "begin.lookback: got 1000000, expected 0 to 256"),
    (m.Begin(2, ONE, 1, 3, 2**63), "begin.run: got 9223372036854775808"),
    (m.Begin(2, ONE, 1, 3, -1), "begin.run: got -1, expected at least 0"),
    (m.Forecast(ONE, False), "forecast.x: got shape (1,), expected (2,)"),
    (m.Adopt(SYNC._replace(forecast=np.ones(2))), "adopt.forecast: got shape (2,), expected (1,)"),
    (m.Adopt(SYNC._replace(decoder=np.ones(3))), "adopt.decoder: got shape (3,), expected (4,)"),
    (m.Adopt(SYNC._replace(past=np.ones((1, 3)))), "adopt.past: got shape (1, 3), expected (3, 1)"),
    (m.JoinGame(INVITATION._replace(targets=np.ones(3))), "join_game.targets: got shape (3,), expected (3, 1)"),
    (m.JoinGame(INVITATION._replace(weights=np.full(3, np.inf))), "join_game.weights[0] is inf"),
    (m.JoinGame(INVITATION._replace(start=np.ones(2))), "join_game.start: got shape (2,), expected (1,)"),
    (m.JoinGame(INVITATION, MASKING._replace(attempt=-1)), "join_game.attempt: got -1, expected 0 to 4294967295"),
    (m.JoinGame(INVITATION, MASKING._replace(weights=np.ones((3, 3)))), "weights: got shape (3, 3), expected (3, 2)"),
    (m.JoinGame(INVITATION, MASKING._replace(present=("a", "b."))), "join_game.present: got 'b.', expected 1 to 64"),
    (m.JoinGame(INVITATION, MASKING._replace(present=("a", "a"))), "join_game.present: got somebody twice"),
    (m.JoinGame(INVITATION, MASKING._replace(named=())), "join_game.keys: got 1, expected one for each of the 0 named"),
    (m.JoinGame(INVITATION, MASKING._replace(keys=(b"",))), "join_game.keys: got b'', expected 1 to 512 bytes"),
    (m.Backward(3), "backward.back: got 3, expected 0 to 2"),
    (m.Receive(-1, SUMS), "receive.back: got -1, expected 0 to 2"),
    (m.Receive(0, SUMS), "receive.carry: got shape (2, 2), expected (1, 1)"),
    (m.Receive(1, SUMS._replace(shift=np.full(2, np.nan))), "receive.shift[0] is nan"),
    (m.Receive(1, SUMS._replace(tensor=np.ones(0))), "receive.tensor: got shape (0,), expected (15,)"),
    (m.FinishGame(np.ones(2)), "finish_game.totals: got shape (2,), expected (3,)"),
    (m.Close(3, None, np.full(1, np.nan)), "close.target[0] is nan"),
    (m.Close(3, SYNC._replace(decoder=np.ones(3)), ONE), "close.decoder: got shape (3,), expected (4,)"),
    (m.Close(4, None, ONE), "close.step: got 4, expected one before the present step, 4"),
    (m.Close(-1, None, ONE), "close.step: got -1, expected 0 to"),
    (m.Missed(0, 4), "missed.last: got 4, expected one before the present step, 4"),
    (m.Missed(3, 2), "missed.first: got 3, expected at most 2"),
    (m.Missed(-1, 2), "missed.first: got -1, expected 0 to"),
    (m.LearnLate(0, 4, ONE), "learn_late.step: got 4, expected one before the present step, 4"),
    (m.LearnLate(-1, 3, ONE), "learn_late.number: got -1, expected 0 to"),
    (m.LearnLate(1, 3, np.ones((1, 1))), "learn_late.target: got shape (1, 1), expected (1,)"),
]


@pytest.mark.parametrize("call", GOOD_CALLS, ids=m.kind_of)
def test_a_good_call_is_accepted(call):
    turn = unpack(pack(m.Turn(4, (call,))), (m.Turn,))
    assert c.check_turn(turn, "features", DIMENSIONS) == DIMENSIONS.after(call)


@pytest.mark.parametrize(("call", "words"), BAD_CALLS)
def test_a_bad_call_is_refused_by_name(call, words):
    turn = unpack(pack(m.Turn(4, (call,))), (m.Turn,))
    with pytest.raises(MalformedMessage) as caught:
        c.check_turn(turn, "features", DIMENSIONS)
    assert words in str(caught.value)


@pytest.mark.parametrize(("place", "share"), list(enumerate(PAPER_SHARES)))
def test_an_agent_refuses_what_its_owner_does_not_share(place, share):
    game = "join_game backward receive finish_game"
    private = DIMENSIONS if place > 1 else DIMENSIONS._replace(features=None)
    for call in GOOD_CALLS:
        kind = m.kind_of(call)
        least = "moments" if kind == "view" else "sums" if kind in game.split() else "forecasts"
        told = isinstance(call, m.Adopt | m.Close) and call.sync is not None and call.sync.decoder is not None
        if place >= PAPER_SHARES.index(least) and not (told and place < 2):
            c.check_turn(m.Turn(4, (call,)), share, private)
            continue
        with pytest.raises(MalformedMessage) as caught:
            c.check_turn(m.Turn(4, (m.Missed(0, 3), call)), share, private)
        refused = f"{kind} is for agents that share {least}, this one shares {share}"
        decoder = f"{kind}.decoder: got shape (4,), expected nothing where features are private"
        assert str(caught.value) == (decoder if told else refused)


def test_turns_out_of_place_are_refused():
    begin = m.Begin(1, ONE, 1, 0, 1)
    bad = [
        (m.Turn(-1, ()), DIMENSIONS, "turn.step: got -1, expected 0 to"),
        (m.Turn(4, (m.Missed(0, 3),)), None, "missed before the stream has begun"),
        (m.Turn(0, ()), None, "no call before the stream has begun"),
        (m.Turn(0, (begin._replace(target=np.ones(0)),)), None, "begin.target: got shape (0,), expected (1,)"),
        (m.Turn(0, (begin, m.View())), None, "view in a stream without games: its look-back is 0"),
        (m.Turn(0, (m.View(), begin)), DIMENSIONS, "begin: got it in the middle of a turn, expected it first"),
    ]
    for turn, dimensions, words in bad:
        with pytest.raises(MalformedMessage, match=re.escape(words)):
            c.check_turn(turn, "features", dimensions)
    # How many features there are is known only to who carries it out.
    close = m.Close(3, SYNC._replace(past=None), np.ones(1))
    begun = c.check_turn(m.Turn(4, (begin, close, m.Missed(0, 3))), "features", None)
    assert begun == m.Dimensions(1, 1, m.UNKNOWN, 0)


BAD_HELLOS = [
    ({"version": 1}, "hello.version: got 1, expected 2"),
    ({"name": ""}, "hello.name: got '', expected 1 to 64 letters, digits, - or _"),
    ({"name": "a.b"}, "hello.name: got 'a.b'"),
    ({"name": "a>"}, "hello.name: got 'a>'"),
    ({"name": "a\n"}, "hello.name: got 'a\\n'"),
    ({"name": "ä"}, "hello.name: got 'ä'"),
    ({"name": "a" * 65}, "hello.name: got 'aaa"),
    ({"share": "all"}, "hello.share: got 'all', expected joint or forecasts or sums or moments or features"),
    ({"public_key": b""}, "hello.public_key: got b'', expected 1 to 512 bytes"),
    ({"public_key": b"a" * 513}, "expected 1 to 512 bytes"),
    ({"at": -2}, "hello.at: got -2, expected -1 to"),
    ({"run": -2}, "hello.run: got -2, expected -1 to"),
    ({"at": -1}, "hello.at: got -1 with run 7, expected both or none of them to be -1"),
    ({"run": -1}, "hello.at: got 4 with run -1, expected both or none of them to be -1"),
]


@pytest.mark.parametrize(("change", "words"), BAD_HELLOS)
def test_bad_hellos_are_refused(change, words):
    with pytest.raises(MalformedMessage) as caught:
        c.check_hello(SENDER._replace(**change))
    assert words in str(caught.value)
    assert len(str(caught.value)) < 200


def test_good_hellos_notices_and_records_pass_and_bad_ones_do_not():
    c.check_hello(SENDER)
    c.check_hello(SENDER._replace(share="sums", public_key=b"k", at=-1, run=-1))
    c.check_notice(m.Notice(3, "begins", ("a", "b"), (b"1", b"2")))
    c.check_notice(m.Notice(3, "ends", ()))
    c.check_step_record(m.StepRecord(0, 0, np.array([np.nan, 1.0])), DIMENSIONS)
    for notice, words in [
        (m.Notice(-1, "ends", ()), "notice.step: got -1"),
        (m.Notice(1, "lost", ()), "notice.kind: got 'lost', expected begins or absent or late or ends"),
        (m.Notice(1, "late", ("a", "*")), "notice.names: got '*', expected 1 to 64 letters"),
        (m.Notice(1, "late", ("a", "b"), (b"1",)), "notice.keys: got 1, expected none or one for each of the names"),
        (m.Notice(1, "late", ("a",), (b"1" * 600,)), "notice.keys: got b'111"),
    ]:
        with pytest.raises(MalformedMessage, match=re.escape(words)):
            c.check_notice(notice)
    for record, words in [
        (m.StepRecord(0, -1, np.ones(2)), "step_record.step: got -1"),
        (m.StepRecord(0, 1, np.ones(3)), "step_record.x: got shape (3,), expected (2,)"),
    ]:
        with pytest.raises(MalformedMessage, match=re.escape(words)):
            c.check_step_record(record, DIMENSIONS)


def test_any_reason_can_be_shortened_to_one_that_may_be_sent():
    for text in ("ValueError: bad\nTraceback\t…", "\ud800 \x1b[2J", "é" * 3000, ""):
        short = m.shortened(text)
        turn = m.Turn(1, (FORECASTS,))
        answer(turn, *(() if short else (m.RemoteAnswer(ONE),)), reason=short)
        assert len(short) <= 500
    assert m.shortened("ValueError: bad") == "ValueError: bad"


# The page


def block(language):
    (found,) = re.findall(rf"```{language}\n(.*?)```", PAGE, flags=re.S)
    return found


def test_the_pages_example_is_this():
    data = bytes.fromhex(block("hex"))
    message = m.Turn(7, (m.Close(6, None, np.array([0.5])), m.Forecast(np.array([1.0, 2.5]), False)))
    assert pack(message) == data
    assert f"An example: {len(data)} bytes" in PAGE
    assert msgpack.unpackb(data) == ast.literal_eval(block("python"))
    assert repr(unpack(data, MESSAGES)) == block("text").strip()


def test_the_page_names_every_message_field_call_level_and_limit():
    rows = {cells[1].strip(): line for line in PAGE.splitlines() if len(cells := line.split("|")) > 2}
    for message in MESSAGES:
        assert all(f"`{field}`" in rows[f"`{message.__name__}`"] for field in message._fields)
    for call in CALLS:
        row = rows[f"`{type_name(call)}`"]
        result = m.RESULTS.get(type_name(call))
        for kind in (call, result, *get_type_hints(call).values()):
            assert all(f"`{field}`" in row for field in getattr(kind, "_fields", ()))
        assert hasattr(result, "_fields") <= (f"`{type_name(result)}`" in row if result else False)
    assert all(f"`{field}`" in rows["`join_game`"] for field in m.Masking._fields)
    assert "`refused` with a `reason`" in PAGE
    for level in m.SHARES:
        assert f"`{level}`" in rows
    for kind in m.NOTICES:
        assert f'"{kind}"' in rows["`Notice`"]
    for field, value in LIMITS._asdict().items():
        assert rows[f"`{field}`"].split("|")[2].strip() == str(value)
    assert f"at most {AT_ONCE} missed steps" in PAGE
    assert f"last {MOST_LATE} late labels" in PAGE
    for name in ("MalformedMessage", "Dimensions", "check_hello", "check_turn", "check_reply", "check_notice"):
        assert f"`{name}`" in PAGE
