"""Bodies that cannot be used: refused with a message that helps, and nothing is stored."""

import socket

import pytest

from support.service.asking import ONE, ask, refused
from support.service.served import entries

FUZZED = [
    (b"", 400, "text that is not JSON"),
    (b"{", 400, "text that is not JSON"),
    (b"\xff\xfe", 400, "bytes that are no UTF-8"),
    (b'{"x":[1,NaN],"y":[1,1]}', 400, "got NaN, which is not JSON. Pass numbers, or null"),
    (b'{"x":[1,2],"y":[1,-Infinity]}', 400, "got -Infinity"),
    (b'{"x":[1,2],"y":[1,2],"x":[3,4]}', 400, "got the name 'x' twice"),
    (b'{"observations":[{"x":[1,2],"y":[1,2],"y":null}]}', 400, "got the name 'y' twice"),
    (b"[" * 9000, 400, "nested too deeply"),
    (b'{"x":' + b"[" * 5000 + b"]" * 5000 + b',"y":1}', 400, "nested too deeply"),
    (b'{"x":[1,2],"y":[1,' + b"9" * 5000 + b"]}", 400, "not JSON"),
    (b'{"x":[1,2],"y":[1,1e999]}', 422, "y[1]: got Infinity. Pass numbers between -1e+15 and 1e+15"),
    (b'{"x":[1,2],"y":[1,' + b"9" * 400 + b"]}", 422, "y[1]: got a number of many digits"),
    (b'{"x":[1,2],"y":[1,1e16]}', 422, "y[1]: got 1e+16"),
    (b"null", 422, "body: got null. Pass an object."),
    (b"[]", 422, "body: got a list of 0"),
    (b'"x"', 422, "body: got"),
    (b"{}", 422, "x: got nothing. Pass a list of 2 numbers."),
    (b'{"x":[1,2]}', 422, "y: got nothing. Pass the target of this step, or null"),
    (b'{"x":[1],"y":[1,2]}', 422, "x: got 1 numbers. Pass a list of 2."),
    (b'{"x":[1,2,3],"y":[1,2]}', 422, "x: got 3 numbers"),
    (b'{"x":1,"y":[1,2]}', 422, "x: got 1. Pass a list of 2 numbers."),
    (b'{"x":["1",2],"y":[1,2]}', 422, 'x[0]: got "1". Pass a number, or null'),
    (b'{"x":[true,2],"y":[1,2]}', 422, "x[0]: got true"),
    (b'{"x":[[1],2],"y":[1,2]}', 422, "x[0]: got a list of 1"),
    (b'{"x":[1,2],"y":[1,null]}', 422, "y[1]: got null. Pass a number."),
    (b'{"x":[1,2],"y":{"a":1}}', 422, "y: got an object"),
    (b'{"x":[1,2],"y":[1,2],"step":-1}', 422, "step: got -1. Pass a whole number"),
    (b'{"x":[1,2],"y":[1,2],"step":1.5}', 422, "step: got 1.5"),
    (b'{"x":[1,2],"y":[1,2],"step":"1"}', 422, 'step: got "1"'),
    (b'{"x":[1,2],"y":[1,2],"step":true}', 422, "step: got true"),
    (b'{"x":[1,2],"y":[1,2],"step":1e300}', 422, "step: got 1e+300"),
    (b'{"x":[1,2],"y":[1,2],"key":""}', 422, 'key: got "". Pass 1 to 128 visible'),
    (b'{"x":[1,2],"y":[1,2],"key":"a\\u0000"}', 422, "key: got"),
    (b'{"x":[1,2],"y":[1,2],"key":5}', 422, "key: got 5"),
    (b'{"x":[1,2],"y":[1,2],"Y":[1,2]}', 422, "Y: got a name that is not known. Did you mean 'y'?"),
    (b'{"x":[1,2],"y":[1,2],"\\ud800":1}', 422, "a name that is not known"),
    (b'{"observations":[]}', 422, "observations: got a list of 0. Pass a list of at least one."),
    (b'{"observations":{}}', 422, "observations: got an object"),
    (b'{"observations":[{"x":[1,2],"y":[1,2]},{"x":[1,2],"y":[1,"2"]}]}', 422, 'observations[1].y[1]: got "2"'),
    (b'{"observations":[null]}', 422, "observations[0]: got null"),
    (b'{"x":[1,2],"y":[1,2],"step":7}', 409, "step: got 7, but the next step is 1. Post it first."),
    (b'{"x":[1,2],"y":[3,5],"step":0}', 409, "step: got 0, which was accepted with other numbers or another key."),
    (b'{"observations":[{"x":[1,2],"y":[1,2],"step":1},{"x":[1,2],"y":[1,2],"step":3}]}', 409, "next step is 2"),
    (b'{"observations":[{"x":[1,2],"y":[1,2],"step":1},{"x":[1,2],"y":[1,9],"step":1}]}', 409, "step: got 1, which"),
    (b'{"observations":[{"x":[1,2],"y":[1,2],"key":"a"},{"x":[1,2],"y":[1,9],"key":"a"}]}', 409, "key: got 'a'"),
    (b'{"observations":[' + b",".join([b'{"x":[1,2],"y":[1,2]}'] * 2000) + b"]}", 413, "more than 20000 bytes"),
]


@pytest.mark.parametrize(("body", "status", "words"), FUZZED)
def test_bodies_that_cannot_be_used_are_refused_with_a_message_and_nothing_is_stored(served, body, status, words):
    got, _, message = refused(served, "POST", f"{ONE}/observations", body)
    assert (got, words in message) == (status, True), message
    assert len(entries(served.journal)) == 1


def test_labels_and_save_points_are_checked_too(served):
    for path, body, status, words in (
        (f"{ONE}/labels", {"step": 0, "y": [3, 5]}, 409, "another target than the one that step 0 has"),
        (f"{ONE}/labels", {"step": 5, "y": [3, 5]}, 409, "the last observation is of step 0"),
        (f"{ONE}/labels", {"y": [3, 5]}, 422, "step: got nothing"),
        (f"{ONE}/labels", {"step": 0, "y": None}, 422, "y: got null"),
        (
            f"{ONE}/labels",
            {"labels": [{"step": 0, "y": [3, 4], "x": 1}]},
            422,
            "labels[0].x: got a name that is not",
        ),
        (f"{ONE}/savepoints", {"name": "../x"}, 422, "small letters, digits and dashes"),
        (f"{ONE}/savepoints", {"name": "A"}, 422, 'name: got "A"'),
        (f"{ONE}/savepoints", {}, 422, "name: got null"),
    ):
        got, _, message = refused(served, "POST", path, body)
        assert (got, words in message) == (status, True), message
    assert ask(served, "POST", f"{ONE}/labels", {"step": 0, "y": [3, 4]})[0] == 200  # known already, and the same
    assert len(entries(served.journal)) == 1
    for query in ("from=-1", "limit=0", "limit=1001", "every=0", "to=x", "from=1e3", "from=", "from=99999999999999999"):
        assert refused(served, "GET", f"{ONE}/history?{query}")[0] == 422


def test_a_body_must_be_announced_as_json_and_stay_below_the_limit(served):
    body = b'{"x":[1,2],"y":[1,2]}'
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"):
        assert refused(served, "POST", f"{ONE}/observations", body, headers={"Content-Type": kind})[0] == 415
    with socket.create_connection(("127.0.0.1", served.port), timeout=20) as line:  # without saying how long
        head = f"POST {ONE}/observations HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {served.secrets['boss']}\r\n"
        line.sendall(f"{head}Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n".encode())
        line.sendall((b"%x\r\n" % 30_000) + b" " * 30_000 + b"\r\n0\r\n\r\n")
        assert line.recv(12) == b"HTTP/1.1 413"
    assert len(entries(served.journal)) == 1
