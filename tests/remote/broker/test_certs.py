"""`nashcast certs`: what the certificates say, what is refused, and that TLS agrees with both."""

import argparse
import json
import socket
import ssl
import stat
import threading
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding

import nashcast.cli.main
from nashcast.cli.elsewhere import certs as command
from nashcast.cli.main import main
from nashcast.errors import InvalidInput, NashcastError
from nashcast.remote.broker import files
from nashcast.remote.broker.certificates import certs
from nashcast.remote.broker.certificates.tls import tls_context


@pytest.fixture(autouse=True)
def here(monkeypatch, tmp_path):
    def parser():
        top = argparse.ArgumentParser(prog="nashcast")
        command.add_to(top.add_subparsers(dest="command", required=True))
        return top

    monkeypatch.setattr(nashcast.cli.main, "parser", parser)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("certs")
    certs.make(folder)
    certs.make_agent(folder, "desk-1")
    return folder


def shaken(server_name, server_folder, client_context, host="localhost"):
    """Shake hands with a server that shows the certificate `server_name`; returns what each side made of it."""
    served = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=server_folder / "ca.pem")
    served.load_cert_chain(
        certs.certificate_path(server_folder, server_name), certs.key_path(server_folder, server_name)
    )
    served.verify_mode = ssl.CERT_REQUIRED
    ours, theirs = socket.socketpair()
    seen = []

    def serve():
        try:
            with served.wrap_socket(theirs, server_side=True) as secure:
                secure.sendall(b"welcome")
                seen.append(dict(part[0] for part in secure.getpeercert()["subject"])["commonName"])
        except OSError as error:
            seen.append(error)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        with client_context.wrap_socket(ours, server_hostname=host) as secure:
            said = secure.recv(16)
    except OSError as error:
        said = error
    thread.join()
    ours.close()
    theirs.close()
    return said, seen[0]


def test_the_authority_the_broker_and_the_hub(made):
    by_name = {each.name: each for each in certs.read_all(made)}
    assert list(by_name) == ["ca", "broker", "desk-1", "hub"]
    assert by_name["broker"].hosts == ("localhost", "127.0.0.1", "::1")
    assert by_name["hub"].hosts == by_name["ca"].hosts == ()
    now = datetime.now(UTC)
    for name, days in [("ca", 3650), ("broker", 365), ("hub", 365), ("desk-1", 365)]:
        assert abs(by_name[name].expires - now - timedelta(days=days)) < timedelta(hours=1)
        assert not by_name[name].expired
    assert len({each.fingerprint for each in by_name.values()}) == 4


def test_keys_are_private_and_certificates_are_not(made):
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in made.iterdir()}
    assert {mode for name, mode in modes.items() if name.endswith("-key.pem")} == {0o600}
    assert {mode for name, mode in modes.items() if not name.endswith("-key.pem")} == {0o644}


def test_tls_accepts_them_on_both_sides(made):
    for host in certs.LOCAL:
        assert shaken("broker", made, tls_context(made, "desk-1"), host) == (b"welcome", "desk-1")


def test_a_client_cannot_pass_for_the_broker(made):
    said, seen = shaken("hub", made, tls_context(made, "desk-1"))
    assert isinstance(said, ssl.SSLCertVerificationError)
    assert "purpose" in said.verify_message
    assert isinstance(seen, OSError)


def test_another_host_and_another_authority_are_refused(made, tmp_path):
    said, _ = shaken("broker", made, tls_context(made, "hub"), "example.org")
    assert "Hostname mismatch" in said.verify_message
    certs.make(tmp_path / "other")
    said, _ = shaken("broker", made, tls_context(tmp_path / "other", "hub"))
    assert isinstance(said, ssl.SSLCertVerificationError)


def test_hosts_of_ones_own(tmp_path):
    certs.make(tmp_path, ["broker.example.org", "10.1.2.3"])
    assert certs.read_certificate(tmp_path, "broker").hosts == ("broker.example.org", "10.1.2.3")
    for bad in ["", "a b", "nats://x", "x:4222", "-x", "*", "a..b", "x" * 254, "é"]:
        with pytest.raises(InvalidInput, match=r"host: got .* Pass a host name or an IP address"):
            certs.make(tmp_path, [bad], overwrite=True)
    with pytest.raises(InvalidInput, match="host: got none"):
        certs.make(tmp_path, [], overwrite=True)


def test_nothing_is_overwritten_unasked_and_the_authority_never(tmp_path):
    first = certs.make(tmp_path)
    content = {path: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(InvalidInput, match=r"with broker.pem, broker-key.pem, hub.pem, hub-key.pem. They are kept"):
        certs.make(tmp_path)
    assert content == {path: path.read_bytes() for path in tmp_path.iterdir()}
    again = certs.make(tmp_path, overwrite=True)
    assert [old.fingerprint == new.fingerprint for old, new in zip(first, again, strict=True)] == [True, False, False]
    assert shaken("broker", tmp_path, tls_context(tmp_path, "hub"))[0] == b"welcome"


def test_a_request_is_signed_without_its_key_leaving_home(made, tmp_path):
    home = tmp_path / "home"
    key, wanted = certs.request("desk-2", home)
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    signed = certs.sign(made, wanted, days=30)
    assert abs(signed.expires - datetime.now(UTC) - timedelta(days=30)) < timedelta(hours=1)
    assert not certs.key_path(made, "desk-2").exists()
    assert b"PRIVATE" not in wanted.read_bytes()
    for name in ("ca.pem", "desk-2.pem"):
        (home / name).write_bytes((made / name).read_bytes())
    assert shaken("broker", made, tls_context(home, "desk-2")) == (b"welcome", "desk-2")
    with pytest.raises(InvalidInput, match=r"desk-2.csr, which exists"):
        certs.request("desk-2", home)
    with pytest.raises(InvalidInput, match=r"with desk-2.pem"):
        certs.make_agent(made, "desk-2")
    (made / "desk-2.pem").unlink()


def wish(path, name="desk-9", key=None, names=None, extensions=()):
    """A request that asks for whatever one likes."""
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, each) for each in names or [name]])
    built = x509.CertificateSigningRequestBuilder().subject_name(subject)
    for extension in extensions:
        built = built.add_extension(extension, critical=True)
    path.write_bytes(
        built.sign(key or ec.generate_private_key(ec.SECP256R1()), hashes.SHA256()).public_bytes(Encoding.PEM)
    )
    return path


def test_nothing_but_name_and_key_of_a_request_counts(made, tmp_path):
    greedy = [
        x509.BasicConstraints(ca=True, path_length=None),
        x509.SubjectAlternativeName([x509.DNSName("localhost")]),
    ]
    signed = certs.sign(made, wish(tmp_path / "greedy.csr", extensions=greedy))
    found = x509.load_pem_x509_certificate(signed.path.read_bytes())
    assert not found.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    assert signed.hosts == ()
    signed.path.unlink()


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("../ca", "agent: got '../ca'. Pass a name of 1 to 64 letters, digits, '-' and '_'"),
        ("a.b", "agent: got 'a.b'"),
        ("*", "agent: got"),
        ("a b", "agent: got 'a b'"),
        ("-x", "not beginning with '-'"),
        ("x" * 65, "agent: got"),
        ("hub", "That is the hub's name"),
        ("CA", "Certificates use that file name themselves"),
        ("broker", "Certificates use that file name themselves"),
        ("desk-1-key", "Certificates use that file name themselves"),
    ],
)
def test_bad_names(made, tmp_path, name, words):
    before = sorted(made.iterdir())
    attempts = [lambda: certs.make_agent(made, name), lambda: certs.request(name, tmp_path)]
    if len(name) <= 64:  # a request cannot hold a longer one
        attempts.append(lambda: certs.sign(made, wish(tmp_path / "w.csr", name)))
    for attempt in attempts:
        with pytest.raises(InvalidInput) as error:
            attempt()
        assert words in str(error.value)
    assert sorted(made.iterdir()) == before
    assert not list(tmp_path.glob("*.pem"))


def test_bad_requests(made, tmp_path):
    def refused(path, words):
        with pytest.raises(InvalidInput, match=words):
            certs.sign(made, path)

    refused(tmp_path / "none.csr", "request: got .*No such file.* Pass the .csr file")
    (tmp_path / "text.csr").write_text("hello")
    refused(tmp_path / "text.csr", "request: got .*cannot be signed")
    good = wish(tmp_path / "good.csr").read_text().splitlines()
    good[3] = good[3][::-1]
    (tmp_path / "bent.csr").write_text("\n".join(good))
    refused(tmp_path / "bent.csr", "request: got .*cannot be signed")
    refused(wish(tmp_path / "two.csr", names=["desk-8", "desk-9"]), "it has 2 names")
    weak = rsa.generate_private_key(65537, 1024)
    refused(wish(tmp_path / "weak.csr", key=weak), "its key is neither P-256")
    refused(wish(tmp_path / "odd.csr", key=ec.generate_private_key(ec.SECP256K1())), "its key is neither P-256")


def test_a_request_altered_on_its_way_is_refused(made, tmp_path):
    asked = x509.load_pem_x509_csr(wish(tmp_path / "w.csr", "desk-8").read_bytes())
    raw = asked.public_bytes(Encoding.DER).replace(b"desk-8", b"desk-9")
    altered = x509.load_der_x509_csr(raw)
    (tmp_path / "altered.csr").write_bytes(altered.public_bytes(Encoding.PEM))
    with pytest.raises(InvalidInput, match="its signature is wrong"):
        certs.sign(made, tmp_path / "altered.csr")


def test_days(made, tmp_path):
    for bad in (0, -1, 36501, 1.5, True):
        with pytest.raises(InvalidInput, match=r"days: got .* Pass a whole number from 1 to 36500"):
            certs.make(tmp_path / str(bad), days=bad)
    with pytest.raises(InvalidInput, match=r"days: got 4000, but the authority has 36\d\d left. Pass at most 36"):
        certs.make_agent(made, "desk-7", days=4000)


def test_folders_without_an_authority_or_its_key(made, tmp_path):
    with pytest.raises(InvalidInput, match=r"certificate: got .*ca.pem: No such file.* Make it: nashcast certs FOLDER"):
        certs.make_agent(tmp_path, "desk-1")
    (tmp_path / "ca.pem").write_bytes((made / "ca.pem").read_bytes())
    with pytest.raises(InvalidInput, match=r"folder: got .* without the key of its ca.pem"):
        certs.make_agent(tmp_path, "desk-1")
    certs.make(tmp_path / "other")
    (tmp_path / "ca-key.pem").write_bytes((tmp_path / "other" / "ca-key.pem").read_bytes())
    with pytest.raises(InvalidInput, match=r"folder: got .* without the key of its ca.pem"):
        certs.make_agent(tmp_path, "desk-1")
    (tmp_path / "ca.pem").write_text("hello")
    with pytest.raises(InvalidInput, match=r"certificate: got .*ca.pem, which is none"):
        certs.read_all(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(NashcastError, match=r"cannot write .*file.* Choose a folder that can be written"):
        certs.make(tmp_path / "file" / "certs")


def test_tls_folders_that_cannot_be_used(made, tmp_path):
    with pytest.raises(InvalidInput, match=r"tls: got no file .*nobody.pem. Pass a folder with ca.pem, nobody.pem"):
        tls_context(made, "nobody")
    for name in ("ca.pem", "hub.pem"):
        (tmp_path / name).write_bytes((made / name).read_bytes())
    (tmp_path / "hub-key.pem").write_bytes((made / "desk-1-key.pem").read_bytes())
    (tmp_path / "hub-key.pem").chmod(0o644)
    with pytest.raises(InvalidInput, match=r"key: got .* of mode 644, which others can read. Run: chmod 600"):
        tls_context(tmp_path, "hub")
    (tmp_path / "hub-key.pem").chmod(0o600)
    with pytest.raises(InvalidInput, match=r"tls: got .*cannot be used.* must belong together"):
        tls_context(tmp_path, "hub")


def test_a_failed_write_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(files.os, "fsync", lambda _: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(NashcastError, match="No space left on device"):
        certs.request("desk-1", tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_without_the_package(monkeypatch, tmp_path):
    monkeypatch.setitem(__import__("sys").modules, "cryptography", None)
    with pytest.raises(InvalidInput, match=r"no package cryptography. Install it: pip install 'nashcast\[remote\]'"):
        certs.make(tmp_path)


def test_the_command(capsys, tmp_path):
    assert main(["certs", "pki", "--host", "broker.example.org", "--host", "10.0.0.1", "--days", "10"]) == 0
    out = capsys.readouterr().out
    assert "pki/broker.pem  valid until" in out
    assert "for broker.example.org, 10.0.0.1" in out
    assert main(["certs", "pki"]) == 1
    assert capsys.readouterr().err.startswith("nashcast: folder: got pki with broker.pem")
    assert main(["certs", "pki", "--agent", "desk-1", "--json"]) == 0
    (made,) = json.loads(capsys.readouterr().out)["certificates"]
    assert made["name"] == "desk-1"
    assert datetime.fromisoformat(made["expires"]) > datetime.now(UTC)
    assert main(["certs", "request", "desk-2", "--folder", "home"]) == 0
    assert "home/desk-2.csr: send this" in capsys.readouterr().out
    assert main(["certs", "sign", "pki", "home/desk-2.csr", "--days", "3"]) == 0
    assert "Send pki/desk-2.pem and pki/ca.pem back" in capsys.readouterr().out
    assert main(["certs", "show", "pki", "--json"]) == 0
    names = [each["name"] for each in json.loads(capsys.readouterr().out)["certificates"]]
    assert names == ["ca", "broker", "desk-1", "desk-2", "hub"]
    assert main(["certs", "request", "desk-3", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["request"] == "desk-3.csr"


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["pki", "more"],
        ["request"],
        ["request", "a", "b"],
        ["sign", "pki"],
        ["show"],
        ["show", "pki", "--days", "3"],
        ["request", "a", "--days", "3"],
        ["request", "a", "--host", "x"],
        ["sign", "pki", "a.csr", "--agent", "a"],
        ["pki", "--folder", "x"],
        ["pki", "--agent", "a", "--host", "x"],
        ["pki", "--days", "soon"],
    ],
)
def test_misuse(capsys, words):
    with pytest.raises(SystemExit) as ended:
        main(["certs", *words])
    assert ended.value.code == 2
    assert "nashcast certs request NAME" in capsys.readouterr().err
