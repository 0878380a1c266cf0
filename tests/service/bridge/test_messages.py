"""Payloads as rows, and the keys that make a message count once."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nashcast.service.bridge.messages import MOST_BYTES, BadMessage, read_rows, short


def rows(value, own_id=None, address="a.b"):
    return read_rows(json.dumps(value).encode(), address, own_id)


def test_a_number_is_input_and_target():
    assert rows(21.5, "7") == ([{"x": 21.5, "y": 21.5, "key": "7"}], False)


def test_keys_come_from_the_payload_then_the_message_then_the_time():
    one = {"x": [1.0], "y": [2.0]}
    assert rows(one | {"key": "k", "time": 5}, "id") == ([one | {"key": "k", "time": 5}], False)
    assert rows(one | {"step": 3}, "id") == ([one | {"step": 3}], False)
    assert rows(one | {"time": 5}, "id")[0][0]["key"] == "id"
    timed = rows(one | {"time": 5})[0][0]["key"]
    assert timed == rows(one | {"time": 5})[0][0]["key"]
    assert timed != rows(one | {"time": 6})[0][0]["key"]
    assert timed != rows(one | {"time": 5}, address="a.c")[0][0]["key"]
    assert "key" not in rows(one)[0][0]
    assert [row["key"] for row in rows([one, one], "id")[0]] == ["id/0", "id/1"]


def test_a_target_without_an_input_is_late():
    assert rows([{"step": 3, "y": 1.0}]) == ([{"step": 3, "y": 1.0}], True)


@pytest.mark.parametrize(
    ("payload", "words"),
    [
        (b"", "not JSON"),
        (b"\xff\xfe", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"true", "no object"),
        (b"[]", "no object"),
        (b'"21"', "no object"),
        (b'{"x": 1}', "an object with x"),
        (b'{"x": 1, "y": 2, "z": 3}', "an object with x, y, z"),
        (b'{"y": 2}', "without its step"),
        (b'[{"x": 1, "y": 2}, {"y": 2, "step": 1}]', "in one message"),
        (b" " * (MOST_BYTES + 1), "at most"),
    ],
)
def test_what_is_no_observation_is_named(payload, words):
    with pytest.raises(BadMessage, match=words):
        read_rows(payload, "a", None)


@given(st.text())
def test_keys_are_what_the_service_takes(text):
    key = short(text)
    assert 1 <= len(key) <= 128
    assert all("!" <= c <= "~" for c in key)
    assert key == short(text)


@given(st.binary(max_size=200))
def test_no_payload_raises_anything_else(payload):
    try:
        found, _ = read_rows(payload, "a", "id")
        assert all("y" in row for row in found)
    except BadMessage:
        pass
