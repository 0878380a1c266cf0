"""Invitations: one string, used once, from both sides and from a thief's."""

import asyncio
import json
import re
import ssl
import stat
import threading
from datetime import UTC, datetime, timedelta

import pytest

from nashcast.errors import InvalidInput, NashcastError
from nashcast.remote.broker.certificates import certs
from nashcast.remote.broker.certificates.keys import make_seed, public_key
from nashcast.remote.broker.enrolling import enrolment, invitations
from nashcast.remote.broker.enrolling.invitations import Begin, approve, invite, withdraw
from nashcast.remote.broker.enrolling.join_code import new_code, read_code, verified
from nashcast.remote.broker.enrolling.join_messages import (
    Asked,
    Said,
    Spoilt,
    pack_reply,
    pack_request,
    read_reply,
    read_request,
)
from nashcast.remote.broker.running.process import reload_broker
from nashcast.remote.hub.desk import Desk, broker_and_desk
from nashcast.remote.owner import join as owner_join
from nashcast.remote.owner.join import join
from support.remote.brokers import free_port

DAY = timedelta(days=1)


@pytest.fixture
def tide(tmp_path):
    """The operator's folder, which the first invitation makes."""
    return tmp_path / "tide"


def invited(folder, name="desk-1", **options):
    begin = None if (folder / enrolment.FILE).exists() else Begin(port=free_port())
    return invite(folder, name, begin=begin, **options)


def states(folder):
    return {each.name: each.state for each in enrolment.read(folder).invitations}


# The string.


def test_the_string_says_where_to_and_comes_back_whole(tide):
    code = invited(tide)
    port, folder = enrolment.read(tide).settings.port, tide / "certs"
    assert re.fullmatch(rf"tls://localhost:{port}/tide/desk-1/[a-z2-7]{{84}}", code.text)
    assert read_code(f"  {code.text[:50]}\n {code.text[50:]} ") == code
    assert code.fingerprint.hex() == certs.read_certificate(folder, "ca").fingerprint
    assert len(code.secret) == 16
    assert code.secret.hex() not in (tide / enrolment.FILE).read_text()  # the operator keeps no secret of it
    assert code.seed not in (tide / enrolment.FILE).read_text()


def test_what_is_mistyped_is_refused_and_not_repeated(tide):
    text = invited(tide).text
    wrong = [text[:-1], text + "a", text.replace("desk-1", "desk-2"), text.replace("localhost", "localhosd")]
    wrong += [text[:-i] + ("a" if text[-i] != "a" else "b") + text[len(text) - i + 1 :] for i in range(1, 84)]
    for each in wrong:
        with pytest.raises(
            InvalidInput, match=r"whose checksum is wrong: a letter was mistyped or lost. Copy"
        ) as caught:
            read_code(each)
        assert each[-20:] not in str(caught.value)
    for each in ("", "hello", "tls://localhost:4222/tide", text[10:], text.replace("tls:", "nats:")):
        with pytest.raises(InvalidInput, match=r"characters that are no invitation. Pass all of what `nashcast enroll"):
            read_code(each)


def test_both_sides_make_the_same_certificate_to_the_byte():
    """Pinned: another release of cryptography must make it too, or the broker would not know the guest."""
    code = new_code("tls://localhost:4222", "tide", "desk-1", bytes(32))._replace(secret=bytes(range(16)))
    certificate, _ = code.certificate()
    assert code.id == "4761b43aaba152d8"
    assert certificate == code.certificate()[0]
    found = certs._x509().x509.load_pem_x509_certificate(certificate)
    assert certs._x509().fingerprint(found) == "2f61373cb0423f9c78f1066a854dfd0aa91c80795178912e5149bd57332ec103"


# The messages.


@pytest.fixture
def authority(tmp_path):
    certs.make(tmp_path / "certs")
    return certs.signer(tmp_path / "certs")


def test_nothing_in_between_can_change_a_message(authority, tmp_path):
    _, key = authority
    pem = (tmp_path / "certs" / "ca.pem").read_text()
    fingerprint = bytes.fromhex(certs.read_certificate(tmp_path / "certs", "ca").fingerprint)
    code = new_code("tls://localhost:4222", "tide", "desk-1", fingerprint)
    guest, asked, said = public_key(code.seed), Asked("U", "csr", False), Said("enrolled", pem, certificate="mine")
    request = pack_request(code, asked)
    assert read_request(request, guest) == asked
    reply = pack_reply(request, said, key)
    assert read_reply(reply, request, code) == said
    assert pack_request(code, asked) != request  # a nonce: an old reply does not answer it
    for changed, words in (
        (request.replace(b"csr", b"CSR"), "not signed with this invitation"),
        (b"{", "none that this nashcast reads"),
        (b"[" * 10_000, "none that this nashcast reads"),
    ):
        with pytest.raises(Spoilt, match=words):
            read_request(changed, guest)
    other = new_code("tls://localhost:4222", "tide", "desk-1", bytes(32))
    stranger = certs._x509().new_key()
    for changed, to, who, words in (
        (reply.replace(b"mine", b"hers"), request, code, "not signed by the invitation's authority"),
        (reply, pack_request(code, asked), code, "is to another request"),
        (reply, request, other, "another authority than the invitation's"),
        (pack_reply(request, said, stranger), request, code, "not signed by the invitation's authority"),
    ):
        with pytest.raises(Spoilt, match=words):
            read_reply(changed, to, who)
    body = json.dumps({"v": 2, "public_key": "U", "request": "", "done": False})
    signed = code.signed(b"nashcast join request 1\n" + body.encode())
    assert verified(guest, b"nashcast join request 1\n" + body.encode(), signed)
    with pytest.raises(Spoilt, match="version 2; this nashcast reads 1"):
        read_request(json.dumps({"body": body, "signature": signed.hex()}).encode(), guest)


# The desk, without a broker.


class Guest:
    """An owner's side of the messages."""

    def __init__(self, code, folder, name="desk-1"):
        self.code, self.folder = code, folder
        self.key = make_seed(folder / "guest.seed", overwrite=True)
        _, path = certs.request(name, folder, overwrite=True)
        self.request = path.read_text()

    def asks(self, desk, *, done=False, now=None):
        sent = pack_request(self.code, Asked(self.key, self.request, done))
        return read_reply(desk.answer(self.code.id, sent, now), sent, self.code)


def test_an_invitation_works_once_and_a_thief_of_a_used_string_gets_nothing(tide, tmp_path):
    code = invited(tide)
    desk, owner = Desk(tide, "tls://localhost:1"), Guest(code, tmp_path / "owner")
    first = owner.asks(desk)
    assert first.state == "enrolled"
    assert enrolment.read(tide).agents == {"desk-1": owner.key}
    assert owner.asks(desk) == first  # a reply that got lost is given again, to the same keys
    thief = Guest(code, tmp_path / "thief")
    for done in (False, True):
        said = thief.asks(desk, done=done)
        assert (said.state, said.certificate) == ("refused", "")
        assert "has expired, was used, or was withdrawn" in said.reason
    assert enrolment.read(tide).agents == {"desk-1": owner.key}
    assert owner.asks(desk, done=True).state == "closed"
    assert [owner.asks(desk).state, thief.asks(desk).state] == ["refused", "refused"]
    conf = (tide / "nats-server.conf").read_text()
    assert code.id not in conf
    assert "trusted.pem" not in conf
    with pytest.raises(InvalidInput, match=r"agent: got 'desk-1', but 'desk-1' is enrolled. .* revoke it first"):
        invite(tide, "desk-1")


def test_invitations_expire_are_withdrawn_and_may_be_made_again(tide, tmp_path):
    now = datetime.now(UTC)
    code = invited(tide, hours=24.0, now=now)
    desk, guest = Desk(tide, "tls://localhost:1"), Guest(code, tmp_path / "owner")
    assert guest.asks(desk, now=now + DAY).state == "refused"
    with pytest.raises(InvalidInput, match=r"'desk-1' is invited until 20.* Withdraw it first: nashcast enroll"):
        invite(tide, "Desk-1")
    withdraw(tide, "desk-1")
    assert code.id not in (tide / "nats-server.conf").read_text()
    assert guest.asks(desk).state == "refused"
    for name, words in (("desk-1", "whose invitation has expired"), ("desk-2", "which is not invited")):
        with pytest.raises(InvalidInput, match=words):
            withdraw(tide, name)
    again = invited(tide, now=now)
    assert again.secret != code.secret
    assert Guest(again, tmp_path / "owner").asks(desk, now=now + 0.9 * DAY).state == "enrolled"
    old = invite(tide, "desk-2", now=now - 2 * DAY)
    assert old.id not in (tide / "nats-server.conf").read_text() or reload_broker(tide) is False
    invite(tide, "desk-2")  # the old one is over


def test_approval_is_for_the_keys_that_were_shown(tide, tmp_path):
    code = invited(tide, approve=True)
    desk, owner = Desk(tide, "tls://localhost:1"), Guest(code, tmp_path / "owner")
    with pytest.raises(InvalidInput, match=r"whose invitation is open. Pending are: none"):
        approve(tide, "desk-1")
    assert owner.asks(desk).state == owner.asks(desk).state == "pending"
    assert Guest(code, tmp_path / "thief").asks(desk).state == "refused"
    assert approve(tide, "desk-1").request == (owner.key, owner.request)
    assert Guest(code, tmp_path / "thief").asks(desk).state == "refused"
    assert enrolment.read(tide).agents == {}
    assert owner.asks(desk).state == "enrolled"


def test_requests_that_make_no_sense_enrol_nobody(tide, tmp_path):
    code = invited(tide)
    desk = Desk(tide, "tls://localhost:1")
    assert desk.answer("0" * 16, b"?") is None
    owner = Guest(code, tmp_path / "owner", name="desk-9")
    for change, words in (
        ({}, "request: got one for 'desk-9'. Ask for 'desk-1'."),
        ({"request": "hello"}, "which cannot be signed"),
        ({"key": "hello"}, "public key: got 'hello'"),
        ({"key": enrolment.read(tide).hub}, "the hub's own"),
    ):
        guest = Guest(code, tmp_path / "owner")
        guest.request = change.get("request", guest.request if change else owner.request)
        guest.key = change.get("key", guest.key)
        said = guest.asks(desk)
        assert said.state == "refused"
        assert words in said.reason
    assert states(tide) == {"desk-1": "open"}
    assert enrolment.read(tide).agents == {}


def test_the_first_invitation_makes_a_federation_with_defaults(tmp_path):
    folder = tmp_path / "north sea_2"
    code = invite(folder, "desk-1", begin=Begin(("hub.example.org",), 4333))
    found = enrolment.read(folder)
    assert (found.federation, found.settings.host, found.settings.port) == ("north-sea-2", "0.0.0.0", 4333)
    assert code.url == "tls://hub.example.org:4333"
    assert set(certs.LOCAL) < set(certs.read_certificate(folder / "certs", "broker").hosts)
    for name in ("desk.seed", "hub.seed", "certs/ca-key.pem", "certs/broker-key.pem"):
        assert stat.S_IMODE((folder / name).stat().st_mode) == 0o600
    with pytest.raises(InvalidInput, match=r"which has a federation already. Leave out --federation"):
        invite(folder, "desk-2", begin=Begin(port=1))
    for hours in (0.0, -1.0, 1e9):
        with pytest.raises(InvalidInput, match="hours: got"):
            invite(folder, "desk-2", hours=hours)
    plain = tmp_path / "plain"
    enrolment.create(plain, "plain")
    with pytest.raises(InvalidInput, match="a federation without TLS"):
        invite(plain, "desk-1")
    (folder / "certs" / "ca-key.pem").unlink()
    with pytest.raises(InvalidInput, match=r"without the key of its ca.pem"):
        invite(folder, "desk-2")


# With a broker.


def test_from_an_invitation_to_a_connected_agent(tide, tmp_path):
    home = tmp_path / "home"
    code = invited(tide)
    said = []
    with broker_and_desk(tide):
        joined = join(code.text, home, wait=60.0, say=said.append)
        assert joined == (f"{code.url}/tide", "desk-1", home / "desk-1.seed", home)
        assert states(tide) == {"desk-1": "closed"}
        assert join(code.text, home) == joined  # nothing is asked any more
        with pytest.raises(NashcastError, match="does not take the invitation: the invitation has expired, was used"):
            join(code.text, tmp_path / "thief", wait=60.0)
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    files = {path.name: stat.S_IMODE(path.stat().st_mode) for path in home.iterdir() if path.suffix != ".csr"}
    assert files == dict.fromkeys(
        ["desk-1.seed", "desk-1-key.pem", "desk-1.pem", "ca.pem", "desk-1.joined"], 0o600
    )  # fmt: skip
    for secret in ("desk-1.seed", "desk-1-key.pem"):
        assert not list(tide.rglob(secret))  # it never left
    assert said[-1].startswith("desk-1 is enrolled in tide, and was connected to tls://localhost:")
    with pytest.raises(InvalidInput, match="in which 'desk-1' joined with another invitation"):
        join(new_code(code.url, "tide", "desk-1", code.fingerprint).text, home)


class Interrupted(Exception):
    pass


def interrupt(line):
    if "waiting for approval" in line:
        raise Interrupted


def test_pending_until_approved_and_interrupted_it_goes_on(tide, tmp_path, monkeypatch):
    monkeypatch.setattr(owner_join, "RETRY_S", 0.05)
    code, said = invited(tide, approve=True), []

    def approving(line):
        said.append(line)
        if "waiting for approval" in line:
            approve(tide, "desk-1")

    with broker_and_desk(tide):
        with pytest.raises(Interrupted):
            join(code.text, tmp_path / "home", wait=60.0, say=interrupt)
        key = (tmp_path / "home" / "desk-1.seed").read_text()
        assert states(tide) == {"desk-1": "pending"}
        join(code.text, tmp_path / "home", wait=60.0, say=approving)
    assert (tmp_path / "home" / "desk-1.seed").read_text() == key
    assert sum("waiting for approval. The operator runs: nashcast enroll approve desk-1" in line for line in said) == 1


def test_a_hub_that_starts_later_is_waited_for(tide, tmp_path, monkeypatch):
    monkeypatch.setattr(owner_join, "RETRY_S", 0.05)
    code, said = invited(tide), []
    came = threading.Event()

    def note(line):
        said.append(line)
        if line.startswith("no answer from the hub yet ("):
            came.set()

    options = {"wait": 60.0, "say": note}
    worker = threading.Thread(target=join, args=(code.text, tmp_path / "home"), kwargs=options, daemon=True)
    worker.start()
    assert came.wait(30.0)
    with broker_and_desk(tide):
        worker.join(60.0)
    assert not worker.is_alive()
    assert states(tide) == {"desk-1": "closed"}


@pytest.mark.parametrize("arrives", [False, True])
def test_a_goodbye_that_is_lost_is_said_again(tide, tmp_path, monkeypatch, arrives):
    """Lost on the way there, or on the way back: then the broker shuts the guest out, and that is an answer too."""
    monkeypatch.setattr(owner_join, "RETRY_S", 0.05)
    code, exchange, lost = invited(tide), owner_join._exchange, []

    async def losing(code, asked):
        if asked.done and not lost:
            lost.append(True)
            if arrives:
                await exchange(code, asked)
            raise owner_join._NoAnswer("lost")
        return await exchange(code, asked)

    monkeypatch.setattr(owner_join, "_exchange", losing)
    with broker_and_desk(tide):
        join(code.text, tmp_path / "home", wait=60.0)
    assert lost
    assert states(tide) == {"desk-1": "closed"}


def test_nobody_answers(tide, tmp_path):
    with pytest.raises(
        NashcastError, match=r"'desk-1' was not let in within 0 s: no answer .* The same command goes on"
    ):
        join(invited(tide).text, tmp_path / "home", wait=0.0)


def test_a_guest_may_ask_the_desk_and_nothing_else(tide):
    import nats

    code, errors = invited(tide), []
    other = invite(tide, "desk-2")

    async def remember(error):
        errors.append(str(error).lower())

    async def scenario():
        client = await nats.connect(
            code.url, nkeys_seed_str=code.seed, tls=owner_join._guest_context(code), tls_handshake_first=True,
            allow_reconnect=False, error_cb=remember, inbox_prefix=f"_INBOX_{code.id}",
        )  # fmt: skip
        subjects = ["nc.tide.all", "nc.tide.agent.desk-1.ask", f"nc.tide.join.{other.id}", "nc.tide.join.*", ">"]
        for subject in subjects:
            await client.subscribe(subject)
        for subject in ("nc.tide.steps", f"nc.tide.join.{other.id}", "$JS.API.INFO"):
            await client.publish(subject, b"?")
        await client.flush()
        await client.flush()
        assert sum("permissions violation" in error for error in errors) == len(subjects) + 3
        await client.close()
        stranger = new_code(code.url, "tide", "desk-1", code.fingerprint)
        options = {"tls": owner_join._guest_context(stranger), "tls_handshake_first": True, "allow_reconnect": False}
        with pytest.raises((ssl.SSLError, OSError)):  # the certificate of another invitation
            await nats.connect(code.url, nkeys_seed_str=code.seed, error_cb=remember, **options)

    with broker_and_desk(tide):
        asyncio.run(scenario())


def test_damaged_invitations_never_become_rules(tide):
    code = invited(tide)
    path = tide / enrolment.FILE
    content = json.loads(path.read_text())
    for change in (
        {"id": 'x" } ]'}, {"state": "welcome"}, {"certificate": "hello"}, {"certificate": "-----BEGIN {}"},
        {"public_key": "U"}, {"expires": "soon"}, {"approve": 1}, {"name": "a b"}, {"more": 1},
    ):  # fmt: skip
        path.write_text(json.dumps({**content, "invitations": [{**content["invitations"][0], **change}]}))
        with pytest.raises(InvalidInput, match=r"enrolment.json: .*Put it right, or back from a copy"):
            enrolment.read(tide)
    path.write_text(json.dumps(content))
    assert invitations.waiting(enrolment.read(tide))[0].id == code.id
