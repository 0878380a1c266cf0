"""The broker, with the real server: who may do what, coming and going, TLS, and never an orphan."""

import asyncio
import logging
import os
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
from datetime import UTC, datetime, timedelta

import nats
import pytest

from nashcast.cli.elsewhere.enroll import run_revoke
from nashcast.errors import InvalidInput, NashcastError
from nashcast.remote.broker.certificates import certs
from nashcast.remote.broker.certificates.keys import make_seed, read_seed
from nashcast.remote.broker.certificates.tls import tls_context
from nashcast.remote.broker.enrolling import enrolment
from nashcast.remote.broker.rules import Settings
from nashcast.remote.broker.running.server import EmbeddedBroker, connect, reload_broker, running_broker
from nashcast.remote.broker.steps import Bounds, Stored, open_steps, read_steps
from nashcast.remote.wire.subjects import ask_subject, everybody_subject, steps_subject, stream_name, tell_subject
from support.remote.brokers import FEDERATION, alive, broker, found, intruder, join, settle, soon

AGENTS = ("one", "two", "three")
ASK = {name: ask_subject(FEDERATION, name) for name in AGENTS}
TELL = {name: tell_subject(FEDERATION, name) for name in AGENTS}
ALL, STEPS, STREAM = everybody_subject(FEDERATION), steps_subject(FEDERATION), stream_name(FEDERATION)


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    """One broker without TLS for all that only asks who may do what."""
    with broker(found(tmp_path_factory.mktemp("tide"), *AGENTS)) as started:
        yield started


@pytest.fixture(scope="module")
def secure(tmp_path_factory):
    with broker(found(tmp_path_factory.mktemp("secure"), *AGENTS, tls=True), tls=True) as started:
        yield started


async def answering(client, name):
    """Let an agent answer every question with its name."""

    async def answer(message):
        await message.respond(name.encode())

    await client.subscribe(ASK[name], cb=answer)
    await settle(client)


async def listening(client, subject):
    """What comes in on a subject from now on."""
    heard = []

    async def hear(message):
        heard.append(message.data)

    await client.subscribe(subject, cb=hear)
    await settle(client)
    return heard


def test_everything_that_should_pass_does(running):
    async def scenario():
        hub, one, two = [await join(running, name) for name in ("hub", "one", "two")]
        await answering(one, "one")
        await answering(two, "two")
        assert (await hub.request(ASK["one"], b"?")).data == b"one"
        assert (await hub.request(ASK["two"], b"?")).data == b"two"
        told = []

        async def welcome(message):
            told.append((message.subject, message.data))
            if message.reply:
                await message.respond(b"welcome")

        await hub.subscribe(tell_subject(FEDERATION, "*"), cb=welcome)
        heard = [await listening(one, ALL), await listening(two, ALL)]
        await settle(hub)
        assert (await one.request(TELL["one"], b"hello")).data == b"welcome"
        await two.publish(TELL["two"], b"notice")
        await hub.publish(ALL, b"step 1")
        assert await soon(lambda: len(told) == 2 and heard == [[b"step 1"], [b"step 1"]])
        assert sorted(told) == [(TELL["one"], b"hello"), (TELL["two"], b"notice")]
        for client in (hub, one, two):
            await client.close()

    asyncio.run(scenario())


def test_who_is_away_is_known_at_once(running):
    async def scenario():
        hub = await join(running, "hub")
        with pytest.raises(nats.errors.NoRespondersError):
            await hub.request(ASK["one"], b"?", timeout=20)
        one = await join(running, "one")  # connected, but not yet listening
        with pytest.raises(nats.errors.NoRespondersError):
            await hub.request(ASK["one"], b"?", timeout=20)
        await one.close()
        await hub.close()

    asyncio.run(scenario())


def forbidden_to_hear(name):
    others = [other for other in AGENTS if other != name]
    yield from (ASK[other] for other in others)
    yield from (tell_subject(FEDERATION, each) for each in (*AGENTS, "*"))
    yield from (f"_INBOX_{other}.>" for other in (*others, "hub"))
    yield from (ask_subject(FEDERATION, "*"), f"nc.{FEDERATION}.hub.inbox.>", STEPS, "nc.*.all", "nc.other.all")
    yield from (f"nc.{FEDERATION}.>", f"nc.{FEDERATION}.*", "nc.>", ">", "*", "*.>", "$SYS.>", "$JS.>", "$JS.API.>")
    yield from ("$SRV.>", "_INBOX.>", "_R_.>", "$MQTT.>", "$NRG.>", "$KV.>")


def forbidden_to_say(name):
    others = [other for other in AGENTS if other != name]
    yield from (ASK[each] for each in AGENTS)
    yield from (TELL[other] for other in others)
    yield from (ALL, STEPS, f"nc.{FEDERATION}.hub.inbox.x", f"nc.{FEDERATION}.other", "nc.other.all", "other")
    yield from (f"_INBOX_{other}.x" for other in (*AGENTS, "hub"))
    yield from ("$SYS.REQ.SERVER.PING", "$SYS.REQ.ACCOUNT.PING.CONNZ", "$SYS.REQ.USER.INFO", "$JS.API.INFO")
    yield from (
        f"$JS.API.STREAM.{verb}.{STREAM}" for verb in ("INFO", "DELETE", "PURGE", "UPDATE", "CREATE", "MSG.GET")
    )
    yield from (f"$JS.API.STREAM.MSG.DELETE.{STREAM}", "$JS.API.STREAM.NAMES", "$JS.API.STREAM.LIST")
    yield from (f"$JS.API.CONSUMER.CREATE.{STREAM}.x", f"$JS.API.CONSUMER.DURABLE.CREATE.{STREAM}.x")
    yield from (f"$JS.API.CONSUMER.MSG.NEXT.{STREAM}.x", "$JS.ACK.x", "$JS.API.DIRECT.GET.other")


@pytest.mark.parametrize("name", AGENTS)
def test_an_agent_hears_and_says_nothing_beyond_its_own(running, name):
    """Every subject is tried; each time the broker refuses aloud, and nothing arrives anywhere."""

    async def scenario():
        others = [other for other in AGENTS if other != name]
        hub = await join(running, "hub")
        await open_steps(hub, FEDERATION)
        messages = (await hub.jetstream().stream_info(STREAM)).state.messages
        hub_heard = await listening(hub, f"nc.{FEDERATION}.>")
        clients = {other: await join(running, other) for other in others}
        heard = {
            other: [await listening(client, s) for s in (ASK[other], ALL, f"_INBOX_{other}.>")]
            for other, client in clients.items()
        }
        async with intruder(running, name) as bad:
            caught = []

            async def catch(message):
                caught.append((message.subject, message.data))

            for subject in forbidden_to_hear(name):
                await bad.client.subscribe(subject, cb=catch)
                assert await bad.heard("permissions violation for subscription", f'"{subject}"'), subject
            for subject in forbidden_to_say(name):
                await bad.client.publish(subject, b"forged")
                assert await bad.heard("permissions violation for publish", f'"{subject}"'), subject
            await settle(bad.client, hub, *clients.values())
            assert [hub_heard, *(part for parts in heard.values() for part in parts)] == [[]] * 7
            for other in others:
                await answering(clients[other], other)
                await hub.request(ASK[other], b"secret")
                await clients[other].publish(TELL[other], b"secret")
            await hub.publish(ALL, b"public")
            assert await soon(lambda: all(parts[1] == [b"public"] for parts in heard.values()))
            await settle(hub, bad.client, *clients.values())
            assert caught == []
        assert (await hub.jetstream().stream_info(STREAM)).state.messages == messages
        for client in (hub, *clients.values()):
            await client.close()

    asyncio.run(scenario())


def test_the_broker_and_the_hub_cannot_be_made_to_write_to_somebody_else(running):
    """Replies go where the asker says: an asker must not be able to name another's subject."""

    async def scenario():
        hub, two = await join(running, "hub"), await join(running, "two")
        context = await open_steps(hub, FEDERATION)
        await context.publish(STEPS, b"x")
        heard = [await listening(two, subject) for subject in (ASK["two"], ALL, "_INBOX_two.>")]
        asked = []

        async def welcome(message):
            asked.append(message.data)
            await message.respond(b"welcome")

        await hub.subscribe(TELL["one"], cb=welcome)
        hub_heard = await listening(hub, f"nc.{FEDERATION}.hub.>")
        async with intruder(running, "one") as bad:
            for reply in (ASK["two"], ALL, "_INBOX_two.x", f"nc.{FEDERATION}.hub.x", TELL["two"]):
                await bad.client.publish(f"$JS.API.DIRECT.GET.{STREAM}", b'{"seq": 1}', reply=reply)
                await bad.client.publish(TELL["one"], b"hello", reply=reply)
            assert await soon(lambda: len(asked) == 5)
            await settle(bad.client, hub, two)
        assert heard == [[], [], []]
        assert hub_heard == []
        await hub.close()
        await two.close()

    asyncio.run(scenario())


def test_nobody_answers_for_another(running):
    """The reply's address is known to one only; even to one who learns it, it is an address in another's space."""

    async def scenario():
        hub, two = await join(running, "hub"), await join(running, "two")
        questions = []

        async def keep(message):
            questions.append(message)

        await two.subscribe(ASK["two"], cb=keep)
        await settle(two)
        asked = asyncio.create_task(hub.request(ASK["two"], b"?", timeout=20))
        assert await soon(lambda: questions)
        async with intruder(running, "one") as bad:
            await bad.client.publish(questions[0].reply, b"forged")
            await settle(bad.client)
        assert not asked.done()
        await questions[0].respond(b"honest")
        assert (await asked).data == b"honest"
        await hub.close()
        await two.close()

    asyncio.run(scenario())


def test_a_question_is_answered_once(running):
    async def scenario():
        hub, one = await join(running, "hub"), await join(running, "one")

        async def chatter(message):
            for answer in (b"first", b"second"):
                await message.respond(answer)

        await one.subscribe(ASK["one"], cb=chatter)
        heard = await listening(hub, f"nc.{FEDERATION}.hub.inbox.x")
        await settle(one)
        for _ in range(2):
            await hub.publish(ASK["one"], b"?", reply=f"nc.{FEDERATION}.hub.inbox.x")
        assert await soon(lambda: len(heard) == 2)
        await settle(one, hub)
        assert heard == [b"first", b"first"]
        await hub.close()
        await one.close()

    asyncio.run(scenario())


def test_an_identity_connects_once(running):
    async def scenario():
        for name in ("one", "hub"):
            first = await join(running, name)
            with pytest.raises(
                NashcastError, match=rf"already has a connection of '{name}'. Stop the other one, or wait"
            ):
                await join(running, name)
            assert first.is_connected
            waiting = asyncio.create_task(join(running, name, patience=20.0))
            await asyncio.sleep(0.1)
            assert not waiting.done()
            await first.close()
            second = await waiting
            assert second.is_connected
            await second.close()

    asyncio.run(scenario())


def test_a_key_that_is_not_enrolled_gets_in_nowhere(running, tmp_path):
    public = make_seed(tmp_path / "stranger.seed")

    async def scenario():
        for name in ("one", "stranger", "hub"):
            with pytest.raises(NashcastError, match="does not know the key") as error:
                await join(running, name, seed_file=tmp_path / "stranger.seed", patience=20.0)
            assert f"nashcast enroll add FOLDER {name} {public}" in str(error.value)
        for options in ({}, {"user": "one", "password": "one"}, {"token": "x"}):
            assert "Authorization Violation" in str(await refusal(running, **options))

    asyncio.run(scenario())


async def refusal(running, **options) -> Exception | None:
    """Why somebody who connects in a way of his own does not get in."""

    async def ignore(_):
        pass

    client = nats.NATS()
    try:
        await client.connect(running.url, allow_reconnect=False, error_cb=ignore, **options)
    except (OSError, nats.errors.Error) as error:
        return error
    finally:
        await client.close()


def test_a_broker_that_is_not_there(tmp_path, running):
    async def scenario():
        seed = running.folder / "one.seed"
        with pytest.raises(
            NashcastError, match=r"the broker at nats://127.0.0.1:1 cannot be reached: .* Check the address"
        ):
            await connect("nats://127.0.0.1:1", seed_file=seed, name="one", patience=0)
        for bad in ("http://x", "x", "", "nats://", "nats://x:port", "nats://x:99999"):
            with pytest.raises(InvalidInput, match=rf"url: got '{bad}'. Pass nats://HOST:PORT or tls://HOST:PORT"):
                await connect(bad, seed_file=seed, name="one", patience=0)
        with pytest.raises(InvalidInput, match="key: got no file"):
            await connect(running.url, seed_file=tmp_path / "none", name="one")

    asyncio.run(scenario())


def test_the_stream_is_read_in_order_from_anywhere(running):
    async def scenario():
        hub, one = await join(running, "hub"), await join(running, "one")
        context = await open_steps(hub, FEDERATION)
        before = (await context.stream_info(STREAM)).state.last_seq
        for step in range(600):
            await hub.publish(STEPS, b"%d" % step)
        await settle(hub)
        assert await soon_stored(context, before + 600)
        all_of_it = [stored async for stored in read_steps(one, FEDERATION, before + 1)]
        assert all_of_it == [Stored(before + 1 + step, b"%d" % step) for step in range(600)]
        for batch in (1, 7, 10_000):
            assert [s async for s in read_steps(one, FEDERATION, before + 591, batch=batch)] == all_of_it[-10:]
        assert [s async for s in read_steps(one, FEDERATION, before + 601)] == []
        assert (await one.jetstream().get_msg(STREAM, seq=before + 1, direct=True)).data == b"0"
        assert (await one.jetstream().get_last_msg(STREAM, STEPS, direct=True)).data == b"599"
        await hub.close()
        await one.close()

    asyncio.run(scenario())


async def soon_stored(context, last):
    for _ in range(500):
        if (await context.stream_info(STREAM)).state.last_seq >= last:
            return True
        await asyncio.sleep(0.01)
    return False


def test_only_the_latest_steps_are_kept_if_so_wished(tmp_path):
    async def scenario(running):
        hub, one = await join(running, "hub"), await join(running, "one")
        with pytest.raises(NashcastError, match="there is no stream yet"):
            assert [s async for s in read_steps(one, FEDERATION)]
        context = await open_steps(hub, FEDERATION, Bounds(messages=3))
        for step in range(5):
            await context.publish(STEPS, b"%d" % step)
        await open_steps(hub, FEDERATION, Bounds(messages=3))
        assert [s.data async for s in read_steps(one, FEDERATION)] == [b"2", b"3", b"4"]
        await hub.close()
        await one.close()

    with broker(found(tmp_path, "one")) as running:
        asyncio.run(scenario(running))


def test_long_messages_are_refused(tmp_path):
    enrolment.create(tmp_path, FEDERATION, Settings(max_payload=2048))
    with EmbeddedBroker(tmp_path) as running:

        async def scenario():
            hub = await join(running, "hub")
            assert hub.max_payload == 2048
            with pytest.raises(nats.errors.MaxPayloadError):
                await hub.publish(ALL, bytes(2049))
            await hub.close()

        asyncio.run(scenario())


def test_revoking_shuts_out_one_and_disturbs_nobody(tmp_path, caplog):
    """The others are busy meanwhile: an open question, a subscription and the hub's own connection go on."""
    folder = found(tmp_path, "one", "two")
    caplog.set_level(logging.INFO, "nashcast.remote")

    async def scenario(running):
        noted = []

        async def note():
            noted.append("closed")

        hub, two = await join(running, "hub"), await join(running, "two")
        one = await join(running, "one", on_close=note)
        await answering(one, "one")
        heard, count = await listening(two, ALL), 0

        async def slowly(message):
            await asyncio.sleep(0.3)
            await message.respond(b"two")

        await two.subscribe(ASK["two"], cb=slowly)
        await settle(two)
        asked = asyncio.create_task(hub.request(ASK["two"], b"?", timeout=20))
        await settle(hub)
        enrolment.revoke(folder, "one")
        began = time.monotonic()
        running.reload()
        while not one.is_reconnecting and not one.is_closed:
            assert time.monotonic() - began < 1.0
            await hub.publish(ALL, b"%d" % count)
            count += 1
            await asyncio.sleep(0)
        assert await soon(lambda: one.is_closed and noted == ["closed"])
        assert (await asked).data == b"two"
        with pytest.raises(nats.errors.NoRespondersError):
            await hub.request(ASK["one"], b"?")
        with pytest.raises(NashcastError, match="or it was revoked"):
            await join(running, "one")
        assert await soon(lambda: len(heard) == count)
        assert heard == [b"%d" % i for i in range(count)]
        assert two.stats["reconnects"] == hub.stats["reconnects"] == 0
        await hub.close()
        await two.close()

    with broker(folder) as running:
        asyncio.run(scenario(running))
    said = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert any("does not know the key of 'one', or it was revoked" in line for line in said)
    assert all(line.startswith("one: ") for line in said)


def test_who_is_added_while_it_runs_has_all_rights_at_once(tmp_path):
    folder = found(tmp_path, "one")

    async def scenario(running):
        hub, one = await join(running, "hub"), await join(running, "one")
        await answering(one, "one")
        context = await open_steps(hub, FEDERATION)
        await context.publish(STEPS, b"x")
        told = await listening(hub, tell_subject(FEDERATION, "*"))
        for _ in range(2):  # the second time under a name that was there before
            enrolment.add(folder, "two", make_seed(folder / "two.seed", overwrite=True))
            running.reload()
            two = await join(running, "two")
            await answering(two, "two")
            heard = await listening(two, ALL)
            assert (await hub.request(ASK["two"], b"?")).data == b"two"
            assert (await hub.request(ASK["one"], b"?")).data == b"one"
            await two.publish(TELL["two"], b"hello")
            await hub.publish(ALL, b"step")
            assert await soon(lambda heard=heard: told[-1:] == [b"hello"] and heard == [b"step"])
            assert [s.data async for s in read_steps(two, FEDERATION)] == [b"x"]
            told.clear()
            enrolment.revoke(folder, "two")
            running.reload()
            assert await soon(lambda two=two: two.is_closed)
        assert one.stats["reconnects"] == hub.stats["reconnects"] == 0
        await hub.close()
        await one.close()

    with broker(folder) as running:
        asyncio.run(scenario(running))


def test_the_command_reaches_a_running_broker(tmp_path, capsys):
    folder = found(tmp_path, "one")

    async def scenario(running):
        one = await join(running, "one")
        chosen = type("Chosen", (), {"folder": str(folder), "name": "one", "json": False})
        run_revoke(chosen)
        assert await soon(lambda: one.is_closed)

    with broker(folder) as running:
        assert running_broker(folder) == running.pid
        asyncio.run(scenario(running))
    assert "one is revoked. The broker is reloaded: one is refused from now on." in capsys.readouterr().out
    assert running_broker(folder) is None
    assert not reload_broker(folder)


def test_rules_that_cannot_be_read_leave_the_old_ones(tmp_path):
    folder = found(tmp_path, "one", tls=True)

    async def scenario(running):
        one = await join(running, "one")
        (folder / "certs" / "broker.pem").write_text("hello")
        with pytest.raises(NashcastError, match=r"the broker keeps its old rules: .*See .*nats-server.log"):
            running.reload()
        await settle(one)
        assert one.is_connected
        await one.close()

    with broker(folder, tls=True) as running:
        asyncio.run(scenario(running))


def client_folder(secure, path, authority, certificate):
    """TLS files of agent one, the authority's and its own taken from different folders."""
    path.mkdir()
    shutil.copy(authority / "ca.pem", path)
    for name in ("one.pem", "one-key.pem"):
        shutil.copy(certificate / name, path)
    return path


def expired(folder, path):
    """A certificate of agent one from the right authority that was valid until yesterday."""
    path = client_folder(None, path, folder, folder)
    shutil.copy(folder / "ca-key.pem", path)
    certs.make_agent(path, "one", days=1, overwrite=True, now=datetime.now(UTC) - timedelta(days=2))
    return path


def test_tls_on_both_sides(secure, tmp_path, caplog):
    ours, other = secure.folder / "certs", tmp_path / "other"
    certs.make(other)
    certs.make_agent(other, "one")
    refused = [
        (client_folder(secure, tmp_path / "a", ours, other), "refuses the certificate of 'one': unknown ca"),
        (client_folder(secure, tmp_path / "b", other, ours), "has a certificate that is not valid here"),
        (expired(ours, tmp_path / "c"), r"one.pem, which expired on 20.* Renew it: nashcast certs request one"),
        (None, r"is not valid here: .* Pass tls="),
    ]

    async def scenario():
        for url in (secure.url, secure.url.replace("127.0.0.1", "localhost"), secure.url.replace("tls:", "nats:")):
            client = await connect(url, seed_file=secure.folder / "one.seed", name="one", tls=ours, patience=0)
            await answering(client, "one")
            await client.close()
        for folder, words in refused:
            with pytest.raises(NashcastError, match=words):
                await join(secure, "one", tls=folder, patience=20.0)
        bare = ssl.create_default_context(cafile=ours / "ca.pem")
        seed = read_seed(secure.folder / "one.seed")
        # Who waits for the broker to speak first waits in vain: nothing is said without TLS.
        for first in (True, False):
            assert isinstance(await refusal(secure, nkeys_seed_str=seed, tls=bare, tls_handshake_first=first), OSError)

    asyncio.run(scenario())
    assert "eof_received" not in caplog.text
    # Who waits for the broker to speak first hears nothing at all.
    assert secure.log.read_text().count("client didn't provide a certificate") == 1


def test_a_client_far_away_may_take_its_time_to_begin_tls(secure):
    """A broker that also speaks without TLS gives up waiting for it after 50 ms."""
    context = tls_context(secure.folder / "certs", "one")
    with socket.create_connection(("127.0.0.1", secure.port), 10.0) as plain:
        time.sleep(0.2)
        with context.wrap_socket(plain, server_hostname="127.0.0.1") as line:
            assert line.recv(4).startswith(b"INFO")


def test_with_tls_nothing_is_said_to_a_broker_without(running, tmp_path):
    """One in between who says that there is no TLS here gets nothing."""
    certs.make(tmp_path)
    certs.make_agent(tmp_path, "one")

    async def scenario():
        with pytest.raises(NashcastError, match=r"do not agree on TLS: .* Check that both sides use it"):
            await join(running, "one", tls=tmp_path)

    asyncio.run(scenario())


def test_a_broker_does_not_start_with_an_expired_certificate(tmp_path):
    folder = found(tmp_path, tls=True)
    certs.make(folder / "certs", overwrite=True, days=1, now=datetime.now(UTC) - timedelta(days=2))
    words = r"certs/broker.pem, which expired on 20.* UTC. Renew it: nashcast certs .*/certs --overwrite"
    with pytest.raises(InvalidInput, match=words):
        broker(folder, tls=True).start()


def test_killed_and_started_again_on_the_same_port_and_store(tmp_path, caplog):
    folder = found(tmp_path, "one")
    caplog.set_level(logging.INFO, "nashcast.remote")

    async def scenario(running):
        noted = []

        async def note():
            noted.append("back")

        hub, one = await join(running, "hub"), await join(running, "one", on_reconnect=note)
        await answering(one, "one")
        context = await open_steps(hub, FEDERATION)
        await context.publish(STEPS, b"before")
        url, pid = running.url, running.pid
        os.kill(pid, signal.SIGKILL)
        assert await soon(lambda: not running.running and not hub.is_connected)
        with pytest.raises(NashcastError, match=r"has ended: see .*nats-server.log. Start it again"):
            running.reload()
        await asyncio.to_thread(running.restart)
        assert (running.url, running.pid != pid) == (url, True)
        assert await soon(lambda: hub.is_connected and one.is_connected and noted == ["back"])
        await settle(one, hub)
        assert (await hub.request(ASK["one"], b"?")).data == b"one"
        await context.publish(STEPS, b"after")
        assert [s.data async for s in read_steps(one, FEDERATION)] == [b"before", b"after"]
        await hub.close()
        await one.close()

    with broker(folder) as running:
        asyncio.run(scenario(running))
    said = [record.getMessage() for record in caplog.records]
    assert sum("one: connected to" in line and "again" in line for line in said) == 1
    assert sum(line.startswith("one: ") for line in said) < 10


def test_one_broker_to_a_folder_and_to_a_port(tmp_path, running):
    with pytest.raises(InvalidInput, match=r"from which a broker runs already. Stop it first, or use it"):
        EmbeddedBroker(running.folder).start()
    assert running.running
    assert running.start() is running
    with pytest.raises(NashcastError, match=r"nats-server has ended at once: .*address already in use"):
        EmbeddedBroker(found(tmp_path / "other"), port=running.port).start()
    with pytest.raises(InvalidInput, match=r"without enrolment.json. Make one: nashcast enroll create"):
        EmbeddedBroker(tmp_path / "nothing").start()
    assert not (tmp_path / "nothing").exists()
    never = EmbeddedBroker(tmp_path / "other")
    never.stop()
    for attempt in (lambda: never.pid, lambda: never.url):
        with pytest.raises(NashcastError, match="has not been started"):
            attempt()


def test_an_enrolment_of_ones_own(tmp_path, running):
    given = enrolment.read(running.folder)
    with EmbeddedBroker(tmp_path / "copy", enrolment=given) as copy:
        assert enrolment.read(tmp_path / "copy") == given
        assert copy.url != running.url
    with EmbeddedBroker(tmp_path / "copy", enrolment=given):
        pass
    with pytest.raises(InvalidInput, match=r"enrolment: got another than that in .* Change it with"):
        EmbeddedBroker(tmp_path / "copy", enrolment=given._replace(history=())).start()
    assert enrolment.read(tmp_path / "copy") == given


PARENT = """
import os, sys, time
from nashcast.remote.broker.running.server import EmbeddedBroker
running = EmbeddedBroker(sys.argv[1]).start()
child = os.fork() if sys.argv[2] == "fork" else None
if child != 0:
    print(running.pid, running._keeper.pid, child or 0, flush=True)
if sys.argv[2] == "raise":
    raise SystemExit("done")
time.sleep(60)
"""


@pytest.mark.parametrize("end", ["kill", "fork", "raise", "keeper"])
def test_no_orphans(tmp_path, end):
    """However the program dies, and even if what watches over the broker is killed, the broker goes too."""
    command = [sys.executable, "-c", PARENT, found(tmp_path), end]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as parent:
        pid, keeper, child = map(int, parent.stdout.readline().split())
        try:
            if end in ("kill", "fork"):
                assert alive(pid)
                parent.kill()
            elif end == "keeper":
                os.kill(keeper, signal.SIGKILL)
            assert asyncio.run(soon(lambda: not alive(pid)))
        finally:
            parent.kill()
            if child:
                os.kill(child, signal.SIGKILL)


def test_a_thread_that_started_it_may_end(tmp_path):
    running = broker(found(tmp_path))
    thread = threading.Thread(target=running.start)
    thread.start()
    thread.join()
    try:
        time.sleep(0.3)
        assert alive(running.pid)
    finally:
        running.stop()
    assert not running.running
