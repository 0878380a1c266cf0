"""A broker that follows its folder by itself: enrolment, revocation, renewed certificates, and operators at once."""

import asyncio
import signal
import socket
import ssl
import subprocess
import sys
from datetime import UTC, datetime, timedelta

import pytest

from nashcast.errors import NashcastError
from nashcast.remote.broker.certificates import certs
from nashcast.remote.broker.certificates.keys import make_seed
from nashcast.remote.broker.enrolling import enrolment
from nashcast.remote.broker.enrolling.invitations import Begin, invite
from nashcast.remote.broker.running.process import running_broker
from support.remote.brokers import broker, found, free_port, join, soon
from support.remote.processes.crew_processes import command, end


async def lets_in(running, name):
    try:
        client = await join(running, name)
    except NashcastError:
        return False
    await client.close()
    return True


async def until(condition, seconds=20.0):
    deadline = asyncio.get_running_loop().time() + seconds
    while not await condition():
        assert asyncio.get_running_loop().time() < deadline
        await asyncio.sleep(0.05)


def test_enrolment_is_followed_without_a_command_and_revocation_survives_a_restart(tmp_path):
    folder = found(tmp_path, "one", "two")

    async def scenario(running):
        one, two = await join(running, "one"), await join(running, "two")
        enrolment.add(folder, "three", make_seed(folder / "three.seed"))  # the file alone: no reload is asked for
        await until(lambda: lets_in(running, "three"))
        enrolment.revoke(folder, "one")
        assert await soon(lambda: one.is_closed)
        assert two.is_connected
        assert two.stats["reconnects"] == 0
        await asyncio.to_thread(running.restart)
        assert await soon(lambda: two.is_connected and two.stats["reconnects"] == 1)
        assert not await lets_in(running, "one")
        assert await lets_in(running, "three")
        await two.close()

    with broker(folder) as running:
        asyncio.run(scenario(running))
    with broker(folder) as running:  # a broker of another program
        assert not asyncio.run(lets_in(running, "one"))


def test_a_renewed_certificate_of_the_broker_is_used_from_the_next_dial_on(tmp_path):
    folder = found(tmp_path, "one", tls=True)
    certs.make(folder / "certs", overwrite=True, days=5)

    def shown(port):
        """The fingerprint of what the broker shows to a stranger."""
        context = ssl.create_default_context(cafile=str(folder / "certs" / "ca.pem"))
        context.load_cert_chain(folder / "certs" / "one.pem", folder / "certs" / "one-key.pem")
        line = socket.create_connection(("127.0.0.1", port))
        with context.wrap_socket(line, server_hostname="localhost") as tls:
            return ssl.DER_cert_to_PEM_cert(tls.getpeercert(binary_form=True)).strip()

    async def scenario(running):
        one = await join(running, "one")
        assert shown(running.port) == (folder / "certs" / "broker.pem").read_text().strip()
        certs.make(folder / "certs", overwrite=True)
        new = (folder / "certs" / "broker.pem").read_text().strip()
        assert await soon(lambda: shown(running.port) == new, 20.0)
        assert one.is_connected
        assert one.stats["reconnects"] == 0
        await one.close()

    with broker(folder, tls=True) as running:
        asyncio.run(scenario(running))


def test_a_broker_about_to_expire_is_in_the_log(tmp_path, caplog):
    folder = found(tmp_path, tls=True)
    certs.make(folder / "certs", overwrite=True, days=20, now=datetime.now(UTC) - timedelta(hours=1))
    with broker(folder, tls=True):
        assert asyncio.run(soon(lambda: "broker.pem expires on" in caplog.text))


@pytest.mark.slow
def test_operators_commands_at_once_do_not_lose_each_others_changes(tmp_path):
    folder = tmp_path / "tide"
    invite(folder, "guest-0", begin=Begin(port=free_port()))
    for i in range(3):
        enrolment.add(folder, f"old-{i}", make_seed(tmp_path / f"old-{i}.seed"))
    keys = [make_seed(tmp_path / f"new-{i}.seed") for i in range(3)]
    commands = [["enroll", "revoke", folder, f"old-{i}"] for i in range(3)]
    commands += [["enroll", "add", folder, f"new-{i}", key] for i, key in enumerate(keys)]
    commands += [["enroll", "invite", f"guest-{i}", "--folder", folder] for i in (1, 2)]
    commands += [["enroll", "withdraw", "guest-0", "--folder", folder]]
    started = [command(*words, log=tmp_path / "commands.log") for words in commands]
    for each in started:
        each.join()
    assert [each.exitcode for each in started] == [0] * len(commands), (tmp_path / "commands.log").read_text()
    end(*started)
    after = enrolment.read(folder)
    assert after.agents == {f"new-{i}": key for i, key in enumerate(keys)}
    assert sum(entry.revoked is not None for entry in after.history) == 3
    assert {each.name: each.state for each in after.invitations} == {
        "guest-0": "withdrawn", "guest-1": "open", "guest-2": "open",
    }  # fmt: skip
    conf = (folder / "nats-server.conf").read_text()
    assert all(f'"agent-new-{i}"' in conf for i in range(3))
    assert "agent-old" not in conf


@pytest.mark.slow
def test_the_command_runs_a_broker_that_follows(tmp_path):
    folder = found(tmp_path / "tide", "one")
    words = [sys.executable, "-m", "nashcast", "broker", str(folder)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as started:
        try:
            assert started.stdout.readline().startswith("broker at nats://127.0.0.1:")
            pid = running_broker(folder)
            again = subprocess.run(words, capture_output=True, text=True, check=False)
            assert (again.returncode, "from which a broker runs already" in again.stderr) == (1, True)
            port = enrolment.read(folder).settings.port
            address = type("Address", (), {"folder": folder, "url": f"nats://127.0.0.1:{port}"})

            async def scenario():
                one = await join(address, "one")
                enrolment.revoke(folder, "one")
                assert await soon(lambda: one.is_closed)

            asyncio.run(scenario())
            assert running_broker(folder) == pid
        finally:
            started.send_signal(signal.SIGTERM)
        assert started.wait(30) == 0
    assert running_broker(folder) is None
