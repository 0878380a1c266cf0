"""A broker whose disk is full, really full: steps go on, health says so, and it heals when there is space again."""

import asyncio
import os
import shutil
import subprocess
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

import nashcast as nc
from nashcast.remote import Hub
from nashcast.remote.broker.certificates import certs
from nashcast.remote.broker.enrolling import enrolment
from nashcast.remote.broker.rules import Settings
from nashcast.remote.broker.steps import Bounds, open_steps, read_steps
from nashcast.remote.hub.lookback import input_store
from nashcast.remote.wire.subjects import steps_subject, stream_name
from support.extras import skip_if
from support.remote.brokers import FEDERATION, broker, found, free_port, join
from support.remote.processes.crew import wait_until


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 8 MiB of its own. Needs root."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(disk)]
    missing = "needs root, to mount a small disk"
    if os.geteuid() == 0:
        made = subprocess.run(mount, capture_output=True, text=True, check=False)
        missing = made.stderr and f"cannot mount a small disk: {made.stderr}"
    skip_if(missing)
    yield disk
    subprocess.run(["umount", "-l", str(disk)], check=True)


def fill(path):
    """Until there is no space at all."""
    file = os.open(path, os.O_CREAT | os.O_WRONLY)
    with suppress(OSError):
        while os.write(file, bytes(4096)):
            pass
    os.close(file)
    assert shutil.disk_usage(path.parent).free == 0


def test_a_full_disk_costs_no_steps_and_heals(small_disk, monkeypatch):
    monkeypatch.setattr(input_store, "ANSWER_S", 0.1)
    folder, ballast = found(small_disk / "tide", "nobody", settings=Settings(port=free_port())), small_disk / "ballast"
    with Hub(folder, state=False, game=None, start=0.0, deadline=0.1) as hub:
        federation, t = hub.federation, 0

        def step(times=1):
            nonlocal t
            for _ in range(times):
                # Long inputs: the store's last block has room for short ones.
                federation.predict_one(np.full(2000, float(t)))
                federation.learn_one(np.full(2000, float(t)), 0.0)
                t += 1

        step(3)
        assert (hub.health["warnings"], hub.health["inputs lost"]) == ([], 0)
        fill(ballast)
        step(30)
        (warning,) = hub.health["warnings"]
        assert warning.startswith("the broker stores no inputs (")
        assert warning.endswith("Look at the broker's log, and make space on its disk.")
        # None of them waited for the broker but the one that found it out.
        assert 27 <= hub.health["inputs lost"] <= 30
        ballast.unlink()

        def healed():
            step()
            return not hub.health["warnings"]

        wait_until(healed, "inputs are kept again", 60.0)
        lost, first = hub.health["inputs lost"], t
        step(5)
        assert hub.health["inputs lost"] == lost
        assert first > 33


def test_the_stream_is_bounded_by_default_and_bounds_can_be_changed(tmp_path):
    folder = found(tmp_path, "one", settings=Settings(port=free_port(), stream_bytes=1 << 20, stream_days=2))

    async def scenario(running):
        hub, one = await join(running, "hub"), await join(running, "one")
        context = await open_steps(hub, FEDERATION)
        config = (await context.stream_info(stream_name(FEDERATION))).config
        assert (config.max_bytes, config.max_age, config.max_msgs) == (256 << 20, 30 * 86400.0, -1)
        await hub.close()
        await one.close()

    async def refused(running):
        hub = await join(running, "hub")
        with pytest.raises(Exception, match="insufficient storage resources"):
            await open_steps(hub, FEDERATION)
        context = await open_steps(hub, FEDERATION, Bounds(1 << 20, 2))
        for i in range(30):
            await context.publish(steps_subject(FEDERATION), bytes([i]) * 100_000)
        info = await context.stream_info(stream_name(FEDERATION))
        assert info.state.bytes <= 1 << 20
        one = await join(running, "one")
        kept = [stored.data[0] async for stored in read_steps(one, FEDERATION)]
        assert kept == list(range(30 - len(kept), 30))
        assert 5 <= len(kept) <= 10
        await open_steps(hub, FEDERATION, Bounds(1 << 20, 2, messages=3))  # the bounds of a stream that is there
        assert len([stored async for stored in read_steps(one, FEDERATION)]) == 3
        await hub.close()
        await one.close()

    with broker(folder) as running:
        asyncio.run(refused(running))
    other = found(tmp_path / "other", "one")
    with broker(other) as running:
        asyncio.run(scenario(running))


def test_the_health_of_a_hub_counts_the_days_of_its_certificates(tmp_path):
    folder = found(tmp_path, "one", tls=True)
    certs.make(folder / "certs", overwrite=True, days=20, now=datetime.now(UTC) - timedelta(hours=1))
    settings = enrolment.read(folder).settings._replace(certificates=str(folder / "certs"))
    enrolment.save(folder, enrolment.read(folder)._replace(settings=settings))
    with Hub(folder, state=False, game=nc.LookbackGame(lookback=2), start=0.0) as hub:
        health = hub.health
        assert {name: round(days) for name, days in health["certificate days"].items()} == {
            "ca": 3650, "broker": 20, "hub": 20,
        }  # fmt: skip
        assert len(health["warnings"]) == 2
        assert "hub.pem expires on" in health["warnings"][1]
        certs.make(folder / "certs", overwrite=True)
        assert hub.health["warnings"] == []
