"""Attacks: silent connections, slow headers, costly bodies, races over tokens. Each is bounded, others go on."""

import os
import resource
import socket
import stat
import subprocess
import sys
import time

import pytest

from nashcast import Client
from nashcast.service.http.access.connections import ConnectionLimit
from nashcast.service.http.access.tokens import TokenFile
from nashcast.service.http.bodies import BadJson, parse_json
from support.service.asking import ONE
from support.service.served import Served


def test_silent_connections_from_one_address_leave_room_for_others_and_little_in_the_log(tmp_path):
    with Served(tmp_path, "--per-address", "40", "--connections", "60") as served:
        lines = [socket.create_connection(("127.0.0.1", served.port)) for _ in range(45)]
        with Client(served.url, retries=0) as refused, pytest.raises(Exception, match="does not answer"):
            refused.streams()
        # Another address has its own share.
        other = socket.create_connection(("127.0.0.1", served.port), source_address=("127.0.0.2", 0))
        other.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert other.recv(12) == b"HTTP/1.1 200"
        other.close()
        for line in lines:
            line.close()
        with Client(served.url) as client:
            assert [row["name"] for row in client.streams()] == ["federation"]
        assert len(served.log()) < 3000


@pytest.mark.slow
def test_headers_that_never_end_are_given_up_within_ten_seconds(tmp_path):
    with Served(tmp_path) as served, socket.create_connection(("127.0.0.1", served.port), timeout=15) as line:
        line.sendall(b"GET /healthz HTTP/1.1\r\nX-Slow: ")
        began = time.monotonic()
        assert line.recv(1) == b""
        assert time.monotonic() - began < 10


def test_a_name_that_comes_twice_among_very_many_is_found():
    body = b"{" + b",".join(b'"%d":1' % (i % 20_000) for i in range(20_001)) + b"}"
    assert len(body) > 160_000
    with pytest.raises(BadJson, match="the name '0' twice"):
        parse_json(body)


def test_open_files_are_raised_to_what_the_system_allows(tmp_path):
    low = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (256, 4096))  # noqa: E731
    with Served(tmp_path, preexec_fn=low) as served, served.client() as client:
        client.observe(1.0, 1.0)
        soft, _ = resource.prlimit(served.process.pid, resource.RLIMIT_NOFILE)
        assert soft == 4096
    served = Served(
        tmp_path, wait=False, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (128, 128))
    )  # fmt: skip
    assert served._gone() == 1
    assert "a limit of 128 open files. Allow at least 216: ulimit -n." in served.log()


def test_connections_are_counted_by_address():
    limit = ConnectionLimit(3, 2)
    assert [limit.enter("a"), limit.enter("a"), limit.enter("a")] == [True, True, False]
    assert [limit.enter("b"), limit.enter("b")] == [True, False]
    limit.leave("a")
    assert limit.enter("b")
    assert (limit.total, limit.refused) == (3, 2)


RACE = """
import sys
from nashcast.service.http.access.tokens import TokenFile
for name in sys.argv[2:]:
    TokenFile(sys.argv[1]).revoke(name)
"""


@pytest.mark.slow
def test_no_revocation_is_lost_in_a_race(tmp_path):
    path = tmp_path / "tokens.json"
    names = [f"t{i}" for i in range(24)]
    for name in names:
        TokenFile(path).add(name, ["read"])
    racing = [subprocess.Popen([sys.executable, "-c", RACE, str(path), *names[i::4]], env=os.environ) for i in range(4)]
    assert [each.wait(60) for each in racing] == [0] * 4
    assert {token.state(time.time()) for token in TokenFile(path).all()} == {"revoked"}


def test_only_the_owner_may_read_what_is_kept(tmp_path):
    with Served(tmp_path, "--token-file", str(tmp_path / "journal" / "tokens.json")) as served:
        served.token("a")
        with served.client() as client:
            client.observe_many([(float(v), float(v)) for v in range(50)], first_step=0)
    for path in (tmp_path / "journal").rglob("*"):
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path


@pytest.mark.slow
def test_a_slow_body_does_not_keep_others_waiting(tmp_path):
    with Served(tmp_path) as served, socket.create_connection(("127.0.0.1", served.port), timeout=20) as slow:
        slow.sendall(
            f"POST {ONE}/observations HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            "Content-Length: 1000\r\n\r\n{".encode()
        )
        with served.client() as client:
            assert client.observe(1.0, 1.0).step == 1
        slow.settimeout(15)
        assert slow.recv(12) == b"HTTP/1.1 408"
