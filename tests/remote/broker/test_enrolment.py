"""Enrolment: what is written, who is refused, and what a damaged or read-only folder gives. No broker runs here."""

import argparse
import json
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

import nkeys
import pytest

import nashcast.cli.main
from nashcast.cli.elsewhere import enroll as command
from nashcast.cli.main import main
from nashcast.errors import InvalidInput, NashcastError
from nashcast.remote.broker.certificates.keys import check_public_key, make_seed, public_key, read_seed
from nashcast.remote.broker.enrolling import enrolment
from nashcast.remote.broker.files import locked
from nashcast.remote.broker.rules import Settings
from nashcast.remote.broker.running.process import running_broker
from nashcast.remote.broker.running.program import server_program
from nashcast.remote.masking.masks import read_enrolled


@pytest.fixture(autouse=True)
def here(monkeypatch, tmp_path):
    def parser():
        top = argparse.ArgumentParser(prog="nashcast")
        command.add_to(top.add_subparsers(dest="command", required=True))
        return top

    monkeypatch.setattr(nashcast.cli.main, "parser", parser)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def tide(tmp_path):
    enrolment.create(tmp_path / "tide", "tide")
    return tmp_path / "tide"


@pytest.fixture
def new_key(tmp_path):
    """Makes an identity and returns its public key."""
    made = iter(range(100))
    return lambda: make_seed(tmp_path / f"{next(made)}.seed")


def nats_accepts(folder) -> bool:
    checked = subprocess.run(
        [server_program(), "-t", "-c", folder / "nats-server.conf"], capture_output=True, text=True
    )
    return checked.returncode == 0


def test_a_seed_is_private_and_signs_what_its_public_key_verifies(tmp_path):
    public = make_seed(tmp_path / "deep" / "a.seed")
    assert stat.S_IMODE((tmp_path / "deep" / "a.seed").stat().st_mode) == 0o600
    seed = read_seed(tmp_path / "deep" / "a.seed")
    assert public_key(seed) == check_public_key("key", public) == public
    pair = nkeys.from_seed(bytearray(seed.encode()))
    assert pair.verify(b"nonce", pair.sign(b"nonce"))
    with pytest.raises(InvalidInput, match=r"a.seed, which exists. It is kept: pass --overwrite"):
        make_seed(tmp_path / "deep" / "a.seed")
    assert read_seed(tmp_path / "deep" / "a.seed") == seed
    assert make_seed(tmp_path / "deep" / "a.seed", overwrite=True) != public


def test_seeds_that_cannot_be_used(tmp_path):
    path = tmp_path / "a.seed"
    with pytest.raises(InvalidInput, match=r"key: got no file .*a.seed. Make one: nashcast enroll request"):
        read_seed(path)
    make_seed(path)
    path.chmod(0o640)
    with pytest.raises(InvalidInput, match=r"key: got .* of mode 640, which others can read. Run: chmod 600"):
        read_seed(path)
    path.chmod(0o600)
    seed = path.read_text()
    account = nkeys.encode_seed(bytes(32), nkeys.PREFIX_BYTE_ACCOUNT).decode()
    for bad in (
        "",
        "hello",
        seed[:-5],
        seed[:20] + "AAAA" + seed[24:],
        public_key(seed.strip()),
        account,
        "SU" + "é" * 56,
    ):
        path.write_text(bad)
        with pytest.raises(InvalidInput, match=r"which is no seed of a user \(SU…\)"):
            read_seed(path)
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(InvalidInput, match="which is no seed"):
        read_seed(path)


def test_a_federation_and_its_agents(tide, new_key):
    keys = {"desk-1": new_key(), "desk_2": new_key()}
    for name, key in keys.items():
        enrolment.add(tide, name, key)
    found = enrolment.read(tide)
    assert found.federation == "tide"
    assert found.agents == keys
    assert found.hub == public_key(read_seed(tide / "hub.seed"))
    content = json.loads((tide / "enrolment.json").read_text())
    assert content["agents"]["desk-1"]["public_key"] == keys["desk-1"]
    assert content["agents"]["desk-1"]["revoked"] is None
    assert "T" in content["agents"]["desk-1"]["added"]
    assert (
        read_seed(tide / "hub.seed")
        not in (tide / "enrolment.json").read_text() + (tide / "nats-server.conf").read_text()
    )
    assert nats_accepts(tide)


def permissions(conf: str, public: str) -> tuple[set[str], set[str]]:
    """What a user may publish and subscribe to, by the configuration's own words."""
    part = conf[conf.index(f'nkey: "{public}"') :]
    publish, subscribe = re.findall(r"(?:publish|subscribe): \{ allow: \[(.*)\] \}", part)[:2]
    return set(json.loads(f"[{publish}]")), set(json.loads(f"[{subscribe}]"))


def test_the_rights_of_an_agent_are_these_and_no_others(tide, new_key):
    one, two = new_key(), new_key()
    enrolment.add(tide, "one", one)
    enrolment.add(tide, "two", two)
    conf = (tide / "nats-server.conf").read_text()
    publish, subscribe = permissions(conf, one)
    read = "$JS.API.DIRECT.GET.nashcast-tide"
    assert publish == {"nc.tide.agent.one.tell", read, f"{read}.nc.tide.steps", "_R_.>"}
    assert subscribe == {"nc.tide.agent.one.ask", "nc.tide.all", "_INBOX_one.>"}
    account = conf[conf.index('"agent-one" {') : conf.index('"agent-two" {')]
    assert set(re.findall(r'subject: "(.*?)"', account)) == publish - {"_R_.>"} | {"nc.tide.all"}
    assert "max_connections: 1," in account


def test_a_revoked_name_may_come_back_but_not_its_key(tide, new_key):
    old, new = new_key(), new_key()
    enrolment.add(tide, "desk-1", old)
    enrolment.revoke(tide, "desk-1")
    assert enrolment.read(tide).agents == {}
    assert old not in (tide / "nats-server.conf").read_text()
    for name in ("desk-1", "desk-2"):
        with pytest.raises(InvalidInput, match=r"public key: got one that is revoked as 'desk-1'. Have its owner make"):
            enrolment.add(tide, name, old)
    enrolment.add(tide, "desk-1", new)
    found = enrolment.read(tide)
    assert found.agents == {"desk-1": new}
    assert [(entry.name, entry.revoked is None) for entry in found.history] == [("desk-1", False), ("desk-1", True)]
    with pytest.raises(InvalidInput, match="revoked as 'desk-1'"):
        enrolment.add(tide, "desk-3", old)
    enrolment.revoke(tide, "desk-1")
    with pytest.raises(InvalidInput, match=r"agent: got 'desk-1', which is revoked already. Enrolled are: nobody"):
        enrolment.revoke(tide, "desk-1")


def test_duplicates(tide, new_key):
    key = new_key()
    enrolment.add(tide, "desk-1", key)
    with pytest.raises(
        InvalidInput, match=r"agent: got 'desk-1', but 'desk-1' is enrolled. Choose another name, or revoke"
    ):
        enrolment.add(tide, "desk-1", new_key())
    with pytest.raises(InvalidInput, match="agent: got 'DESK-1', but 'desk-1' is enrolled"):
        enrolment.add(tide, "DESK-1", new_key())
    with pytest.raises(InvalidInput, match="public key: got one that is enrolled as 'desk-1'"):
        enrolment.add(tide, "desk-2", key)
    with pytest.raises(InvalidInput, match=r"public key: got the hub's own. Pass the agent's"):
        enrolment.add(tide, "desk-2", enrolment.read(tide).hub)
    assert enrolment.read(tide).agents == {"desk-1": key}


BAD_NAMES = [
    "",
    "*",
    ">",
    "a.b",
    "a b",
    "a\n",
    "../x",
    "/etc",
    "-x",
    "a*",
    "a>",
    'a"',
    "é",
    "x" * 65,
    "$SYS",
    "a\0",
    None,
    3,
]


@pytest.mark.parametrize("name", BAD_NAMES)
def test_bad_names(tide, new_key, name):
    before = (tide / "enrolment.json").read_bytes()
    key = new_key()
    with pytest.raises(InvalidInput, match=r"agent: got .*Pass a name of 1 to 64 letters, digits, '-' and '_'"):
        enrolment.add(tide, name, key)
    with pytest.raises(InvalidInput, match=r"federation: got .*Pass a name of 1 to 64 letters, digits and '-'"):
        enrolment.create(tide.parent / "other", name)
    with pytest.raises(InvalidInput, match=r"agent: got .* which is not enrolled"):
        enrolment.revoke(tide, name)
    assert (tide / "enrolment.json").read_bytes() == before
    assert not (tide.parent / "other").exists()


def test_the_hubs_name_is_its_own(tide, new_key):
    for name in ("hub", "HUB"):
        with pytest.raises(InvalidInput, match="That is the hub's name"):
            enrolment.add(tide, name, new_key())


def test_bad_public_keys(tide, new_key, tmp_path):
    good = new_key()
    swapped = good[:10] + ("A" if good[10] != "A" else "B") + good[11:]
    account = nkeys.from_seed(bytearray(nkeys.encode_seed(bytes(32), nkeys.PREFIX_BYTE_ACCOUNT))).public_key.decode()
    for bad in (
        "",
        "hello",
        good[:-1],
        good + "A",
        good.lower(),
        swapped,
        account,
        f" {good}",
        f"{good}\n",
        "U" * 56,
        None,
        7,
    ):
        with pytest.raises(
            InvalidInput, match=r"public key: got .*Pass what `nashcast enroll request` printed: U and 55"
        ):
            enrolment.add(tide, "desk-1", bad)
    assert enrolment.read(tide).agents == {}


def test_a_seed_is_refused_and_not_repeated(tide, new_key, tmp_path, capsys):
    new_key()
    seed = read_seed(tmp_path / "0.seed")
    assert main(["enroll", "add", str(tide), "desk-1", seed]) == 1
    said = capsys.readouterr().err
    assert "what looks like a seed" in said
    assert seed not in said
    assert seed not in (tide / "enrolment.json").read_text()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda c: c.pop("agents"), "no entry 'agents'"),
        (lambda c: c.pop("hub"), "no entry 'hub'"),
        (lambda c: c.update(hub="UABC"), "hub: got 'UABC'"),
        (lambda c: c.update(federation="a.b"), "federation: got 'a.b'"),
        (lambda c: c.update(agents=[]), "'list' object"),
        (lambda c: c["agents"].update({"a.>": c["agents"]["desk-1"]}), "agent: got 'a.>'"),
        (lambda c: c["agents"].update({"other": c["agents"]["desk-1"]}), "a key or a name that is there twice"),
        (lambda c: c["agents"]["desk-1"].update(public_key='U"} ]'), "'desk-1': got"),
        (lambda c: c["agents"]["desk-1"].update(rights="all"), "unexpected keyword argument 'rights'"),
        (lambda c: c["agents"]["desk-1"].update(revoked=3), "a time that is no text"),
        (lambda c: c["broker"].update(port="4222\n}"), "port: got"),
        (lambda c: c["broker"].update(host='x" '), "host: got"),
        (lambda c: c["broker"].update(max_payload=-1), "max_payload: got -1"),
        (lambda c: c["broker"].update(max_connections=True), "max_connections: got True"),
        (lambda c: c["broker"].update(certificates="a\nb"), "certificates: got"),
    ],
)
def test_what_is_damaged_never_becomes_a_rule(tide, new_key, change, words):
    enrolment.add(tide, "desk-1", new_key())
    content = json.loads((tide / "enrolment.json").read_text())
    change(content)
    (tide / "enrolment.json").write_text(json.dumps(content))
    conf = (tide / "nats-server.conf").read_bytes()
    for attempt in (
        lambda: enrolment.read(tide),
        lambda: enrolment.add(tide, "desk-2", new_key()),
        lambda: enrolment.revoke(tide, "desk-1"),
    ):
        with pytest.raises(InvalidInput) as error:
            attempt()
        assert str(error.value).startswith(f"enrolment: got {tide / 'enrolment.json'}")
        assert words in str(error.value)
        assert str(error.value).endswith("Put it right, or back from a copy.")
    assert (tide / "nats-server.conf").read_bytes() == conf


def test_files_that_are_no_enrolment(tide, tmp_path, new_key):
    for text, words in [
        ("", "no JSON"),
        ("{", "no JSON"),
        ("[]", "of format 'none'. This nashcast reads format 1"),
        ('{"format": 2}', "of format 2. This nashcast reads format 1"),
    ]:
        (tide / "enrolment.json").write_text(text)
        with pytest.raises(InvalidInput, match=words):
            enrolment.read(tide)
    (tide / "enrolment.json").write_bytes(b"\xff\xff")
    with pytest.raises(InvalidInput, match="no JSON"):
        enrolment.read(tide)
    with pytest.raises(InvalidInput, match=r"nowhere, without enrolment.json. Make one: nashcast enroll create"):
        enrolment.add(tmp_path / "nowhere", "desk-1", new_key())
    assert not (tmp_path / "nowhere").exists()


def test_a_folder_is_made_once_and_an_interrupted_one_is_finished(tide):
    hub = enrolment.read(tide).hub
    with pytest.raises(InvalidInput, match=r"which has an enrolment.json. Choose another folder"):
        enrolment.create(tide, "tide")
    (tide / "enrolment.json").unlink()
    assert enrolment.create(tide, "tide").hub == hub


@contextmanager
def nobody():
    """Without the right to write everywhere, which the root user has."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def test_a_read_only_folder_is_left_as_it_was(new_key):
    folder = Path(tempfile.mkdtemp())
    try:
        enrolment.create(folder, "tide")
        key = new_key()
        enrolment.add(folder, "desk-1", key)
        folder.chmod(0o555)
        for path in folder.iterdir():
            path.chmod(0o444)
        before = {path.name: path.read_bytes() for path in folder.iterdir()}
        with nobody():
            with pytest.raises(NashcastError, match=r"cannot write .*Permission denied. Choose a folder that can be"):
                enrolment.revoke(folder, "desk-1")
            with pytest.raises(NashcastError, match=r"cannot write .*Permission denied"):
                make_seed(folder / "a.seed")
            with pytest.raises(NashcastError, match=r"cannot write .*Permission denied"):
                enrolment.create(folder / "deeper", "tide")
            assert enrolment.read(folder).agents == {"desk-1": key}
        assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    finally:
        folder.chmod(0o700)
        shutil.rmtree(folder)


def test_many_at_once_and_none_is_lost(tide, new_key):
    keys = {f"desk-{i}": new_key() for i in range(6)}
    program = "import sys; from nashcast.remote.broker.enrolling.enrolment import add; add(*sys.argv[1:])"
    running = [subprocess.Popen([sys.executable, "-c", program, tide, *pair]) for pair in keys.items()]
    assert [process.wait() for process in running] == [0] * 6
    assert enrolment.read(tide).agents == keys
    conf = (tide / "nats-server.conf").read_text()
    assert all(f'nkey: "{key}"' in conf for key in keys.values())


def test_a_command_does_not_wait_for_ever(tide):
    with locked(tide), pytest.raises(NashcastError, match="is being changed by another command"), locked(tide, 0.05):
        pass


def test_settings_and_strange_folders_reach_the_broker(tmp_path, new_key):
    folder = tmp_path / 'é "quoted" $HOME \\ #'
    enrolment.create(folder, "tide", Settings(host="0.0.0.0", port=5222, max_payload=2048, max_connections=9))
    conf = (folder / "nats-server.conf").read_text()
    for line in ('host: "0.0.0.0"', "port: 5222", "max_payload: 2048", "max_connections: 9"):
        assert line in conf.splitlines()
    assert nats_accepts(folder)
    for bad, words in [
        (Settings(port=0), "port: got 0. Pass a whole number from 1 to 65535"),
        (Settings(port=65536), "port: got 65536"),
        (Settings(host="a b"), "host: got 'a b'"),
        (Settings(max_payload=1), "max_payload: got 1"),
        (Settings(max_connections=1), "max_connections: got 1"),
    ]:
        with pytest.raises(InvalidInput, match=words):
            enrolment.create(tmp_path / "bad", "tide", bad)
    assert not (tmp_path / "bad").exists()


def test_nobody_elses_process_is_taken_for_the_broker(tide, new_key):
    hung_up = []
    before = signal.signal(signal.SIGHUP, lambda *_: hung_up.append(1))
    try:
        for pid in (str(os.getpid()), "1", "999999999", "0", "-1", "none", ""):
            (tide / "nats-server.pid").write_text(pid)
            assert running_broker(tide) is None
        (tide / "nats-server.pid").write_text(str(os.getpid()))
        assert main(["enroll", "add", str(tide), "desk-1", new_key()]) == 0
    finally:
        signal.signal(signal.SIGHUP, before)
    assert not hung_up


def test_the_command(tmp_path, capsys):
    def ran(*words):
        assert main(["enroll", *words]) == 0
        return capsys.readouterr().out

    assert "tide/hub.seed: the hub's identity" in ran("create", "tide", "--federation", "tide", "--port", "5222")
    shown = ran("request", "desk-1", "--key", "home/desk-1.seed")
    key = re.search(r"nashcast enroll add FOLDER desk-1 (U\w+)", shown)[1]
    assert "desk-1 is enrolled. No broker runs from tide on this machine" in ran("add", "tide", "desk-1", key)
    second = json.loads(ran("request", "desk-2", "--key", "home/desk-2.seed", "--json"))["public_key"]
    added = json.loads(ran("add", "tide", "desk-2", "home/desk-2.seed.pub", "--json"))
    assert added == {"name": "desk-2", "enrolled": True, "broker_follows": False}
    (tmp_path / "enrolled.toml").write_text(ran("list", "tide", "--toml"))
    assert read_enrolled(tmp_path / "enrolled.toml") == {"desk-1": key, "desk-2": second}
    assert "desk-2 is revoked" in ran("revoke", "tide", "desk-2")
    listed = ran("list", "tide").splitlines()
    assert "federation tide; broker not running here" in listed[0]
    assert [line.split()[0] for line in listed[1:]] == ["name", "hub", "desk-1", "desk-2"]
    assert [line.split()[-1] == "–" for line in listed[2:]] == [True, True, False]
    shown = json.loads(ran("list", "tide", "--json"))
    assert [agent["revoked"] is None for agent in shown["agents"]] == [True, False]
    assert shown["broker"] is None


def test_the_command_refuses(capsys, tide, new_key):
    def said(*words):
        assert main(["enroll", *words]) == 1
        return capsys.readouterr().err

    assert said("list", "nowhere").startswith("nashcast: folder: got nowhere, without enrolment.json")
    assert said("request", "a.b", "--key", "k").startswith("nashcast: agent: got 'a.b'")
    assert said("add", str(tide), "a", "none.pub").startswith("nashcast: public key: got none.pub, which cannot be")
    assert said("create", "x", "--federation", "a b").startswith("nashcast: federation: got 'a b'")
    assert said("create", "x", "--federation", "f", "--certs", "none").startswith("nashcast: certificate: got")
    assert said("revoke", str(tide), "desk-1").startswith("nashcast: agent: got 'desk-1', which is not enrolled")
    for words in (["enroll"], ["enroll", "add", "tide"], ["enroll", "request", "a"], ["enroll", "create", "x"]):
        with pytest.raises(SystemExit) as ended:
            main(words)
        assert ended.value.code == 2


def test_without_the_package(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "nkeys", None)
    with pytest.raises(InvalidInput, match=r"no package nkeys. Install it: pip install 'nashcast\[remote\]'"):
        make_seed(tmp_path / "a.seed")
