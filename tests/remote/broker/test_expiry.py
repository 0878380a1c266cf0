"""Certificates that are renewed, expire, or come from a machine with another clock."""

import asyncio
import logging
import shutil
from datetime import UTC, datetime, timedelta

import pytest

import nashcast as nc
from nashcast.cli.main import main
from nashcast.errors import InvalidInput, NashcastError
from nashcast.remote.broker.certificates import certs
from nashcast.remote.broker.certificates.expiry import ExpiryWatch, check_valid
from nashcast.remote.broker.certificates.tls import Credentials
from nashcast.remote.owner.runner import Runner
from support.remote.brokers import broker, found, join, soon

MADE = datetime(2030, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)


@pytest.fixture
def made(tmp_path):
    """An authority, a broker's and a hub's certificate for a year from a known day on, and an agent's for 40 days."""
    certs.make(tmp_path, now=MADE)
    certs.make_agent(tmp_path, "desk-1", days=40, now=MADE)
    return tmp_path


class Clock:
    def __init__(self, now):
        self.now = now

    def __call__(self):
        return self.now


def test_warnings_begin_thirty_days_before_and_are_logged_once_a_day(made, caplog):
    clock = Clock(MADE + 9 * DAY)
    watch = ExpiryWatch(made, ("ca", "desk-1", "nobody"), clock)
    assert watch.days_left() == {"ca": 3641.0, "desk-1": 31.0}
    assert watch.warnings() == []
    clock.now += 2 * DAY
    expected = (
        f"certificate {made}/desk-1.pem expires on 2030-02-10 00:00 UTC, in 29 days. "
        f"Renew it: nashcast certs request desk-1 --folder {made} --overwrite, and have it signed: nashcast certs sign"
    )
    assert watch.warnings() == [expected]
    for hours in (0, 1, 22):
        clock.now += timedelta(hours=hours)
        watch.tell()
    assert [record.getMessage() for record in caplog.records] == [expected]
    clock.now += timedelta(hours=1)
    watch.tell()
    assert len(caplog.records) == 2
    clock.now = MADE + 41 * DAY
    assert watch.days_left()["desk-1"] == -1.0
    assert "desk-1.pem expired on 2030-02-10 00:00 UTC. Renew it" in watch.warnings()[0]
    certs.make_agent(made, "desk-1", overwrite=True, now=clock.now)
    assert watch.warnings() == []


def test_the_authority_and_the_broker_have_remedies_of_their_own(made):
    late = Clock(MADE + 3640 * DAY)
    ca, hub = ExpiryWatch(made, ("ca", "hub"), late).warnings()
    assert ca.endswith(f"in 10 days. Renew it: nashcast certs rotate {made}")
    assert hub.endswith(f"Renew it: nashcast certs {made} --overwrite")


@pytest.mark.parametrize("hours", [-1.1, -0.9, 0.0, 40 * 24 - 0.1, 40 * 24 + 0.1])
def test_clocks_that_differ(made, hours):
    """A certificate is valid from an hour before it was made: the clock of another machine may be behind."""
    now = MADE + timedelta(hours=hours)
    if hours < -1.0:
        words = r"desk-1.pem, which is valid from 2029-12-31 23:00 UTC on, while this machine's clock says .*22:54 UTC"
    elif hours > 40 * 24:
        words = r"desk-1.pem, which expired on 2030-02-10 00:00 UTC. Renew it: nashcast certs request desk-1"
    else:
        assert check_valid(made, "desk-1", now=now).name == "desk-1"
        return
    with pytest.raises(InvalidInput, match=words):
        check_valid(made, "desk-1", now=now)


def test_a_broker_whose_clock_is_ahead_is_refused_with_both_clocks(tmp_path):
    folder = found(tmp_path, "one", tls=True)
    certs.make(folder / "certs", overwrite=True)
    home = home_of(folder, tmp_path / "home")
    certs.make(folder / "certs", overwrite=True, now=datetime.now(UTC) + 2 * DAY)

    async def scenario(running):
        words = (
            r"not valid here: certificate is not yet valid. Set the clock of this machine, which says 20.* or theirs"
        )
        with pytest.raises(NashcastError, match=words):
            await join(running, "one", tls=home)

    with pytest.raises(InvalidInput, match="which is valid from"):
        broker(folder, tls=True).start()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("nashcast.remote.broker.running.server.check_valid", lambda *_: None)
        with broker(folder, tls=True) as running:
            asyncio.run(scenario(running))


def home_of(folder, home, name="one"):
    """The files of an agent at its owner's."""
    home.mkdir()
    for file in ("ca.pem", f"{name}.pem", f"{name}-key.pem"):
        shutil.copy(folder / "certs" / file, home)
    return home


def test_an_authority_is_rotated_under_agents_that_run(tmp_path, caplog):
    """Old and new are trusted for a while; whoever has renewed its files comes back with them at the next dial."""
    caplog.set_level(logging.INFO, "nashcast.remote")
    folder = found(tmp_path, "one", "two", tls=True)
    operator = folder / "certs"
    homes = {name: home_of(folder, tmp_path / name, name) for name in ("one", "two")}

    async def scenario(running):
        clients = {name: await join(running, name, tls=homes[name]) for name in homes}

        async def back(*names):
            reconnects = {name: clients[name].stats["reconnects"] for name in names}
            await asyncio.to_thread(running.restart)
            return await soon(lambda: all(clients[n].stats["reconnects"] > reconnects[n] for n in names))

        old = certs.authorities(operator)[0].fingerprint
        assert [each.fingerprint == old for each in certs.rotate(operator)] == [False, True]
        assert await back("one", "two")  # with certificates of the old authority, to a broker of the old one
        with pytest.raises(InvalidInput, match=r"broker.pem, which an old one signed. Renew it from the new one first"):
            certs.retire(operator)
        shutil.copy(operator / "ca.pem", homes["one"])
        certs.make(operator, overwrite=True)
        for name in homes:
            certs.make_agent(operator, name, overwrite=True)
        for file in ("one.pem", "one-key.pem"):
            shutil.copy(operator / file, homes["one"])
        assert [each.fingerprint for each in certs.retire(operator)] == [old]
        assert await back("one")
        assert not clients["two"].is_connected
        await clients["one"].close()
        for file in ("ca.pem", "two.pem", "two-key.pem"):  # at last; nothing is started again for it
            shutil.copy(operator / file, homes["two"])
        assert await soon(lambda: clients["two"].is_connected)
        await clients["two"].close()

    with broker(folder, tls=True) as running:
        asyncio.run(scenario(running))
    said = [record.getMessage() for record in caplog.records]
    assert sum("one: certificates of" in line for line in said) == 1


def test_files_that_are_half_written_are_not_used(tmp_path, caplog):
    folder = tmp_path
    certs.make(folder)
    certs.make_agent(folder, "desk-1")
    credentials = Credentials(folder, "desk-1")
    before = credentials.context
    assert not credentials.refresh()
    key = (folder / "desk-1-key.pem").read_bytes()
    (folder / "desk-1-key.pem").write_bytes(b"half")
    assert not credentials.refresh()
    assert credentials.context is before
    assert "the files for TLS have changed and are not used" in caplog.text
    (folder / "desk-1-key.pem").write_bytes(key)
    assert credentials.refresh()
    assert credentials.context is not before


def test_the_commands_rotate_and_retire_and_renewal_keeps_the_hosts(made, capsys):
    certs.make(made, ["hub.example.org"], overwrite=True)
    assert main(["certs", str(made), "--overwrite"]) == 0
    assert certs.read_certificate(made, "broker").hosts == ("hub.example.org",)
    assert main(["certs", "rotate", str(made)]) == 0
    assert f"nashcast certs retire {made}" in capsys.readouterr().out
    assert main(["certs", "retire", str(made)]) == 1
    assert "which an old one signed" in capsys.readouterr().err
    for command in (["certs", str(made), "--overwrite"], ["certs", str(made), "--agent", "desk-1", "--overwrite"]):
        assert main(command) == 0
    assert main(["certs", "retire", str(made)]) == 0
    assert "dropped the authority" in capsys.readouterr().out
    assert main(["certs", "retire", str(made)]) == 0
    assert "trusts one authority" in capsys.readouterr().out


def test_an_agent_knows_how_long_its_certificate_lasts(tmp_path):
    folder = found(tmp_path, "one", tls=True)
    certs.make_agent(folder / "certs", "one", days=3, overwrite=True)
    agent = nc.Agent(nc.encoders.Persistence(), name="one")
    runner = Runner(agent, "tls://localhost:1/tide", key=folder / "one.seed", certs=folder / "certs")
    health = runner.health()
    assert {name: round(days) for name, days in health["certificate days"].items()} == {"one": 3, "ca": 3650}
    assert len(health["warnings"]) == 1
    without = Runner(agent, "nats://localhost:1/tide", key=folder / "one.seed")
    assert without.health() == {"certificate days": {}, "warnings": []}
