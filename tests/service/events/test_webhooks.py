"""Webhooks against a real receiver: in order, signed, tried again, remembered over restarts, and never in the way."""

import hashlib
import hmac
import json
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from nashcast.errors import InvalidInput
from nashcast.service.events import delivery as delivering
from nashcast.service.events.delivery import Delivery
from nashcast.service.events.webhooks import Webhook, read_webhooks
from nashcast.service.journal.journal import Journal, Recorded
from support.service.served import FILE, Served, drifting


@contextmanager
def receiver(answers=()):
    """Address, and posts as they come: (status, headers, body). answers: statuses of the first ones; None to hang."""
    posts, waiting, release = [], list(answers), threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            status = waiting.pop(0) if waiting else 200
            posts.append((status, dict(self.headers), body))
            if status is None:
                release.wait(60)
                return
            self.send_response(status)
            self.end_headers()

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/hook?team=1", posts
    finally:
        release.set()
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def journal(tmp_path, monkeypatch):
    for name in ("POLL_S", "BACKOFF_S"):
        monkeypatch.setattr(delivering, name, 0.01)
    with_streams = Journal(tmp_path / "journal")
    with_streams.make_stream("load", "identity", {})
    yield with_streams
    with_streams.close()


def happen(journal, *kinds, at=None):
    journal.record([Recorded(1, [], [(at or time.time(), 7, kind, f"{kind} happened") for kind in kinds])])


@contextmanager
def delivering_to(journal, hook):
    found = Delivery(hook, journal.folder)
    found.start()
    while not found._file.exists():
        time.sleep(0.005)
    try:
        yield found
    finally:
        found.stop()
        found.join()


def until(condition, seconds=10.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)


def test_events_come_in_order_signed_and_once(journal):
    happen(journal, "drift")  # before there was a webhook
    with receiver() as (url, posts):
        hook = Webhook(url, secret=b"shared", token="bearer-1", kinds=("drift", "agent gone"))
        with delivering_to(journal, hook) as each:
            happen(journal, "drift", "agent in", "drift over", "agent gone")
            until(lambda: len(posts) == 2)
        assert each.counts == {"delivered": 2, "retried": 0, "dropped": 0}
        happen(journal, "drift")  # while it is stopped
        with delivering_to(journal, hook):
            until(lambda: len(posts) == 3)
        bodies = [json.loads(body) for _, _, body in posts]
        assert [(event["kind"], event["stream"], event["step"]) for event in bodies] == [
            ("drift", "load", 7), ("agent gone", "load", 7), ("drift", "load", 7),
        ]  # fmt: skip
        for _, headers, body in posts:
            sent = dict(part.split("=") for part in headers["X-Nashcast-Signature"].split(","))
            expected = hmac.new(b"shared", sent["t"].encode() + b"." + body, hashlib.sha256).hexdigest()
            assert sent["v1"] == expected
            assert abs(int(sent["t"]) - time.time()) < 60
            assert headers["Authorization"] == "Bearer bearer-1"
        assert len({headers["X-Nashcast-Delivery"] for _, headers, _ in posts}) == 3


def test_what_is_not_taken_is_tried_again_what_is_refused_is_not(journal):
    with receiver([503, 429, 200, 400, 302, 200]) as (url, posts), delivering_to(journal, Webhook(url)) as each:
        happen(journal, "drift", "drift over", "agent gone", "agent back")
        until(lambda: each.counts["delivered"] == 2)
        kinds = [json.loads(body)["kind"] for _, _, body in posts]
        assert kinds == ["drift"] * 3 + ["drift over", "agent gone", "agent back"]
        assert each.counts == {"delivered": 2, "retried": 2, "dropped": 2}
        assert not each.failing


def test_an_address_that_is_away_is_tried_until_events_are_old(journal, monkeypatch):
    with receiver() as (url, _):
        pass  # nothing listens there any more
    with delivering_to(journal, Webhook(url)) as each:
        happen(journal, "drift")
        until(lambda: each.counts["retried"] > 2)
        assert each.failing
        monkeypatch.setattr(delivering, "MAX_AGE_S", 0.0)
        until(lambda: each.counts["dropped"] == 1)


def test_only_streams_that_match_are_told(journal):
    journal.make_stream("noise", "identity", {})
    with receiver() as (url, posts), delivering_to(journal, Webhook(url, streams=("no*",))) as each:
        happen(journal, "drift")
        journal.record([Recorded(2, [], [(time.time(), 1, "drift", "x")])])
        until(lambda: each.counts["delivered"] == 1)
        assert [json.loads(body)["stream"] for _, _, body in posts] == ["noise"]


@pytest.mark.slow
def test_a_receiver_that_hangs_delays_neither_posts_nor_the_end(tmp_path):
    values = drifting().tolist()
    with receiver([None] * 50) as (url, posts):
        (tmp_path / "hooks.toml").write_text(f'[[webhook]]\nurl = "{url}"\n')
        with Served(tmp_path, "--webhooks", str(tmp_path / "hooks.toml"), text=FILE) as served:
            with served.client() as client:
                client.observe_many([(v, v) for v in values], first_step=0)
                until(lambda: posts)
                for t, v in enumerate(values[:50]):
                    client.observe(v, v, step=420 + t)  # answered with its forecast
                assert client.forecast().step == 470
            began = time.monotonic()
            assert served.stop() == 0
            assert time.monotonic() - began < 20
    assert json.loads(posts[0][2])["kind"] == "drift"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[webhook]\nurl = 'http://x'", "no tables [[webhook]]"),
        ("hooks = 3", "keys hooks"),
        ("[[webhook]]\nurl = 'ftp://x'", "webhook[0].url"),
        ("[[webhook]]\nlink = 'http://x'", "unknown key"),
        ("[[webhook]]\nurl = 'http://x'\nkinds = ['rain']", "Pass some of drift"),
        ("[[webhook]]\nurl = 'http://x'\nstreams = 'load'", "webhook[0].streams"),
        ("[[webhook]]\nurl = 'http://x'\nsecret_file = 'none'", "Pass a file that can be read"),
        ("[[webhook]]\nurl = 'http://x'\ntoken_file = 'empty'", "holds no secret"),
        ("[[webhook]]\nurl = 'http://x'\n[[webhook]]\nurl = 'http://x'", "the same url twice"),
    ],
)
def test_what_is_wrong_in_the_file_is_named(tmp_path, text, words):
    (tmp_path / "empty").touch()
    path = tmp_path / "hooks.toml"
    path.write_text(text)
    with pytest.raises(InvalidInput) as refused:
        read_webhooks(path)
    assert words in str(refused.value)


def test_a_host_is_shown_without_what_may_be_secret():
    assert Webhook("https://user:secret@ops.example/T0/B1?key=secret").host == "ops.example"
