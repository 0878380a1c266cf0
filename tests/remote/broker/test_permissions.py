"""Credentials, tried while a federation runs over TLS: nobody gets at what is another's, and nobody is disturbed."""

import asyncio
import shutil
import socket
import ssl
import threading

import nats
import numpy as np
import pytest

import nashcast as nc
from nashcast.errors import NashcastError
from nashcast.remote.broker.certificates import certs
from nashcast.remote.broker.certificates.keys import make_seed, read_seed
from nashcast.remote.broker.certificates.tls import tls_context
from nashcast.remote.broker.enrolling import enrolment
from nashcast.remote.hub.hub import Hub
from nashcast.remote.wire.subjects import ask_subject, everybody_subject, steps_subject, stream_name, tell_subject
from support.remote import spies
from support.remote.brokers import FEDERATION, broker, found, join, settle, soon
from support.remote.elsewhere import make_stream
from support.remote.parties import agents_running, run, said

MEMBERS = {i: name for i, name in enumerate(spies.NAMES) if name != "dan"}  # dan is the one who does harm
SHARES = ("sums",) * 4


class Attempts:
    """Everything that is tried, one after the other, while the others work."""

    def __init__(self, running, elsewhere):
        self.running, self.folder, self.elsewhere = running, running.folder, elsewhere
        self.caught, self.refused, self.said = [], [], []

    async def all(self):
        await self.with_valid_credentials()
        await self.with_a_stolen_key()
        await self.revoked()
        await self.strangers()

    async def with_valid_credentials(self):
        async def remember(error):
            self.said.append(str(error))

        async def catch(message):
            self.caught.append((message.subject, message.data))

        client = await nats.connect(
            self.running.url, nkeys_seed_str=read_seed(self.folder / "dan.seed"), error_cb=remember,
            tls=tls_context(self.folder / "certs", "dan"), tls_handshake_first=True, allow_reconnect=False,
            inbox_prefix="_INBOX_dan",
        )  # fmt: skip
        for subject in to_hear():
            for queue in ("", "workers"):  # as one of a group one would get messages instead of their owner
                await client.subscribe(subject, queue=queue, cb=catch)
                self.refused.append(("Subscription", subject))
        for subject in to_say():
            await client.publish(subject, b"forged", reply=ask_subject(FEDERATION, "ada"))
            self.refused.append(("Publish", subject))
        # What it may do: it is itself no trouble.
        await client.subscribe(ask_subject(FEDERATION, "dan"))
        await client.subscribe(everybody_subject(FEDERATION))
        await settle(client)
        assert await soon(lambda: len(self.said) >= len(self.refused))
        await asyncio.sleep(0.5)  # steps go by: whatever could be heard would be
        assert client.is_connected
        await client.close()

    async def with_a_stolen_key(self):
        """Of one that is there: an identity connects once."""
        for name in ("ada", "hub"):
            with pytest.raises(NashcastError, match=f"already has a connection of '{name}'"):
                await join(self.running, name)

    async def revoked(self):
        client = await join(self.running, "eve")
        await client.subscribe(everybody_subject(FEDERATION))
        enrolment.revoke(self.folder, "eve")
        await asyncio.to_thread(self.running.reload)
        assert await soon(lambda: client.is_closed)
        with pytest.raises(NashcastError, match="or it was revoked"):
            await join(self.running, "eve")

    async def strangers(self):
        make_seed(self.elsewhere / "stranger.seed")
        with pytest.raises(NashcastError, match="does not know the key"):
            await join(self.running, "dan", seed_file=self.elsewhere / "stranger.seed")
        certs.make(self.elsewhere / "other")
        certs.make_agent(self.elsewhere / "other", "dan")
        mixed = self.elsewhere / "mixed"
        mixed.mkdir()
        shutil.copy(self.folder / "certs" / "ca.pem", mixed)
        for file in ("dan.pem", "dan-key.pem"):
            shutil.copy(self.elsewhere / "other" / file, mixed)
        with pytest.raises(NashcastError, match="refuses the certificate of 'dan': unknown ca"):
            await join(self.running, "dan", tls=mixed)
        bare = ssl.create_default_context(cafile=self.folder / "certs" / "ca.pem")
        assert await self.shut_out(tls=bare, tls_handshake_first=True)
        said_to_plain = await asyncio.to_thread(plainly, self.running.port)
        assert b"INFO" not in said_to_plain
        assert b"PONG" not in said_to_plain

    async def shut_out(self, **options):
        async def ignore(_):
            pass

        client = nats.NATS()
        try:
            seed = read_seed(self.folder / "dan.seed")
            await client.connect(
                self.running.url, nkeys_seed_str=seed, allow_reconnect=False, error_cb=ignore, **options
            )
        except (OSError, nats.errors.Error):
            return True
        finally:
            await client.close()
        return False


def to_hear():
    yield from (ask_subject(FEDERATION, each) for each in ("ada", "bob", "*"))
    yield from (tell_subject(FEDERATION, each) for each in ("ada", "*"))
    yield from (steps_subject(FEDERATION), "_INBOX_hub.>", "_INBOX_ada.>", "_R_.>", "$JS.API.>", "$SYS.>")
    yield from (">", "nc.>", f"nc.{FEDERATION}.>", f"nc.{FEDERATION}.agent.*.*", "*.*.agent.ada.ask")


def to_say():
    yield from (ask_subject(FEDERATION, each) for each in ("ada", "dan"))
    yield from (tell_subject(FEDERATION, "ada"), everybody_subject(FEDERATION), steps_subject(FEDERATION))
    yield from ("_INBOX_hub.x.1.0", "_INBOX_ada.x", f"$JS.API.STREAM.DELETE.{stream_name(FEDERATION)}")
    yield from (f"$JS.API.STREAM.PURGE.{stream_name(FEDERATION)}", f"$JS.API.CONSUMER.CREATE.{stream_name(FEDERATION)}")
    yield from ("$SYS.REQ.SERVER.PING", "$JS.API.INFO")


def plainly(port):
    """What the broker says to one who talks to it without TLS."""
    with socket.create_connection(("127.0.0.1", port), timeout=10) as line:
        data = b""
        try:
            line.sendall(b'CONNECT {"verbose":false}\r\nPING\r\nSUB > 1\r\n')
            while more := line.recv(4096):
                data += more
        except ConnectionError:
            pass
        return data


def test_nothing_that_is_tried_gets_in_or_disturbs_the_run(tmp_path):
    folder, elsewhere = found(tmp_path / "f", *spies.NAMES, "eve", tls=True), tmp_path / "elsewhere"
    elsewhere.mkdir()
    X, Y = make_stream(1, steps=5000)
    settings = {"game": nc.LookbackGame(lookback=2, placement="spread"), "start": 0.25, "seed": 3}
    names = list(MEMBERS.values())
    failure = []

    def attempt():
        try:
            asyncio.run(attempts.all())
        except BaseException as error:
            failure.append(error)

    with broker(folder, tls=True) as running:
        attempts = Attempts(running, elsewhere)
        with (
            Hub(folder, agents=names, url=running.url, certs=folder / "certs", deadline=60.0, **settings) as hub,
            agents_running(folder, hub.url, "support.remote.spies:make_agents", [SHARES], MEMBERS, tls=True),
        ):
            assert hub.wait_for_agents(60.0) == [], said(folder, names)
            trying = threading.Thread(target=attempt)
            trying.start()
            rows = []
            while trying.is_alive() or len(rows) < 20:
                t = hub.federation.step
                rows.append([part[0] for part in run(hub, X[t : t + 1], Y[t : t + 1])])
            trying.join()
            assert hub._bus.client.stats["reconnects"] == 0
            health = hub.federation.health
            stored = hub._bus.run(hub._kept._stream.stream_info(stream_name(FEDERATION))).state.messages
        log = running.log.read_text()
    if failure:
        raise failure[0]
    steps = len(rows)
    twin = nc.paper_federation([agent for agent in spies.make_agents(SHARES) if agent.name in names], **settings)
    for got, expected in zip(zip(*rows, strict=True), twin.replay(X[:steps], Y[:steps])[:3], strict=True):
        np.testing.assert_array_equal(np.array(got), expected)
    assert health == twin.health
    assert stored == steps
    assert attempts.caught == []
    for kind, subject in attempts.refused:
        assert any(f"{kind} Violation" in line and f'"{subject}"' in line for line in log.splitlines()), (kind, subject)
    assert all("lost" not in (folder / f"{name}.err").read_text() for name in names)
    for words in ("authentication error", "maximum account active connections", "TLS handshake error"):
        assert words.lower() in log.lower(), words
