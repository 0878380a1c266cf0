"""The HTTP interface of a real process: who gets in, what is refused and how."""

import json
import re
import socket
import ssl
import time
from pathlib import Path

import pytest

from nashcast import Client, InvalidInput
from nashcast.cli.main import main
from nashcast.client import ServiceRefused
from nashcast.service.http.access.rates import Rates
from nashcast.service.http.server import Address, bind, check_address
from support.service.asking import ONE, SCOPES, ask, refused
from support.service.served import MEMBERS, Served, series


@pytest.mark.parametrize(
    ("token", "status", "code"),
    [
        (None, 401, "token_missing"),
        ("nashcast_guess", 401, "token_unknown"),
        ("expired", 401, "token_expired"),
        ("revoked", 401, "token_revoked"),
        ("\xff\xfe", 401, "token_unknown"),
    ],
)
def test_without_a_valid_token_nobody_gets_in(served, token, status, code):
    for method, path in (
        ("GET", f"{ONE}/forecast"),
        ("POST", f"{ONE}/observations"),
        ("GET", "/metrics"),
        ("GET", "/v1/x"),
    ):
        assert refused(served, method, path, token=token)[:2] == (status, code)
    _, headers, _ = ask(served, "GET", f"{ONE}/forecast", token=token)
    assert headers["www-authenticate"].startswith("Bearer")
    assert f"refused {status} {code}: GET '{ONE}/forecast' by unknown caller from 127.0.0.1" in served.log()


def test_other_ways_to_pass_a_token_do_not_count(served):
    secret = served.secrets["boss"]
    for headers in ({"Authorization": secret}, {"Authorization": f"Basic {secret}"}, {"Cookie": f"token={secret}"}):
        assert ask(served, "GET", f"{ONE}/forecast", token=None, headers=headers)[0] == 401
    assert ask(served, "GET", f"{ONE}/forecast?token={secret}", token=None)[0] == 401
    assert secret not in served.log()


ASKED = [
    ("GET", "/v1/streams", "read"),
    ("GET", "/v1/events", "read"),
    ("GET", ONE, "read"),
    ("PUT", ONE, "admin"),
    ("DELETE", ONE, "admin"),
    ("GET", f"{ONE}/forecast", "read"),
    ("GET", f"{ONE}/agents", "read"),
    ("GET", f"{ONE}/status", "read"),
    ("GET", f"{ONE}/history", "read"),
    ("GET", f"{ONE}/log", "read"),
    ("GET", f"{ONE}/events", "read"),
    ("GET", f"{ONE}/savepoints", "read"),
    ("GET", "/metrics", "read"),
    ("POST", f"{ONE}/observations", "write"),
    ("POST", f"{ONE}/labels", "write"),
    ("POST", f"{ONE}/savepoints", "admin"),
    ("POST", f"{ONE}/savepoints/x/restore", "admin"),
    ("DELETE", f"{ONE}/savepoints/x", "admin"),
]


@pytest.mark.parametrize(("method", "path", "needed"), ASKED)
def test_each_path_needs_its_scope(served, method, path, needed):
    for token in ("reader", "poster", "writer"):
        if needed in SCOPES[token]:
            continue
        status, code, message = refused(served, method, path, token=token)
        assert (status, code) == (403, "scope")
        assert f"this needs the scope {needed}; the token has" in message


def test_only_health_and_the_document_are_answered_to_everybody(served):
    for path in ("/healthz", "/readyz", "/v1/openapi.json"):
        assert ask(served, "GET", path, token=None)[0] == 200
    documented = json.loads(ask(served, "GET", "/v1/openapi.json", token=None)[2])["paths"]
    asked = {path.replace("/x", "/{name}").replace("/federation", "/{stream}") for _, path, _ in ASKED}
    asked |= {"/healthz", "/readyz", "/v1/openapi.json"}
    assert documented.keys() == asked


def test_pages_of_other_origins_are_refused(served):
    for origin in ("http://evil.example", "null", f"http://127.0.0.1:{served.port + 1}", "http://localhost"):
        status, code, _ = refused(served, "GET", f"{ONE}/forecast", headers={"Origin": origin})
        assert (status, code) == (403, "other_origin")
    status, headers, _ = ask(served, "GET", f"{ONE}/forecast", headers={"Origin": served.url})
    assert status == 200
    assert not [name for name in headers if name.lower().startswith("access-control")]
    assert ask(served, "OPTIONS", f"{ONE}/forecast", headers={"Origin": served.url})[0] == 405


@pytest.mark.parametrize(
    "path",
    [
        "/v1/../metrics", "/v1/%2e%2e/metrics", "//v1/forecast", "/v1//forecast", f"{ONE}/forecast/",
        f"{ONE}/forecast%00",
        f"{ONE}/forecast;x", "/v1\\forecast", "/V1/forecast", f"{ONE}/savepoints/..%2f..%2fetc/restore",
        "/../etc/passwd",
        f"{ONE}/savepoints/%E2%80%AE/restore", "/.", f"{ONE}/forecast%0d%0aX:y", "/healthz/../v1/forecast",
    ],
)  # fmt: skip
def test_path_tricks_lead_nowhere(served, path):
    for token in (None, "boss"):
        status, _, content = ask(served, "GET", path, token=token)
        assert status in (401, 404, 405), content
    assert ask(served, "GET", path)[0] in (404, 405)


def test_headers_have_an_end(served):
    with socket.create_connection(("127.0.0.1", served.port), timeout=20) as line:
        line.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\nX-A: ")
        answer = b""
        try:
            for _ in range(10_000):
                line.sendall(b"a" * 4096)
                time.sleep(0.001)
        except (ConnectionResetError, BrokenPipeError):
            answer = b"cut of"
    assert answer == b"cut of"
    assert ask(served, "GET", "/healthz")[0] == 200


def test_answers_carry_headers_that_keep_browsers_careful(served):
    _, headers, _ = ask(served, "GET", f"{ONE}/forecast")
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cache-control"] == "no-store"
    assert headers["content-security-policy"].startswith("default-src 'none'")
    assert "server" not in headers


def test_a_token_added_or_revoked_while_it_runs_counts_within_a_second(served):
    secret = served.token("temp", "read")
    deadline = time.monotonic() + 10
    while ask(served, "GET", f"{ONE}/forecast", token=secret)[0] != 200:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert main(["serve", "token", "revoke", "temp", "--journal", str(served.journal)]) == 0
    while ask(served, "GET", f"{ONE}/forecast", token=secret)[0] == 200:
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_secrets_are_neither_logged_nor_stored(served):
    for name, secret in served.secrets.items():
        ask(served, "GET", f"{ONE}/agents", token=name)
        ask(served, "POST", f"{ONE}/observations", {"token": secret}, token=name)
    files = [path for path in served.folder.rglob("*") if path.is_file()]
    assert len(files) > 4
    for path in files:
        content = path.read_bytes()
        for secret in served.secrets.values():
            assert secret.encode() not in content, path
    assert (served.journal / "tokens.json").stat().st_mode & 0o077 == 0


def test_metrics_are_what_prometheus_reads(served):
    status, headers, content = ask(served, "GET", "/metrics", token="reader")
    assert (status, headers["content-type"].startswith("text/plain; version=0.0.4")) == (200, True)
    lines = content.decode().splitlines()
    for line in lines:
        assert re.fullmatch(r'# (HELP|TYPE) .+|nashcast_[a-z_]+(\{([a-z]+="[^"]*",?)+\})? -?[0-9.e+-]+', line), line
    assert 'nashcast_step{stream="federation"} 0' in lines
    assert 'nashcast_agent_in{stream="federation",agent="linear"} 1' in lines


def test_rates():
    now = [0.0]
    rates = Rates(10.0, 5.0, clock=lambda: now[0])
    assert [rates.wait("a") for _ in range(5)] == [0.0] * 5
    assert rates.wait("a") == pytest.approx(0.1)
    assert rates.wait("b") == 0.0
    now[0] = 0.1
    assert rates.wait("a") == 0.0
    assert rates.wait("a") > 0


def test_without_tokens_only_this_machine_is_served(tmp_path):
    with Served(tmp_path, "--rate", "30") as served:
        assert served.url.startswith("http://127.0.0.1:")
        served.secrets = {}
        assert ask(served, "GET", f"{ONE}/agents", token=None)[0] == 200
        assert refused(served, "GET", f"{ONE}/agents", token=None, headers={"Host": "evil.example"})[1] == "other_host"
        assert refused(served, "GET", f"{ONE}/forecast", token=None)[:2] == (404, "no_forecast")
        statuses = [ask(served, "GET", f"{ONE}/agents", token=None) for _ in range(200)]
        slowed = [headers for status, headers, _ in statuses if status == 429]
        assert slowed
        assert slowed[0]["retry-after"] == "1"
        # The service is bound to loopback alone.
        listening = {line.split()[1] for line in Path("/proc/net/tcp").read_text().splitlines()[1:]}
        assert f"0100007F:{served.port:04X}" in listening
        assert f"00000000:{served.port:04X}" not in listening


def test_addresses_that_would_be_unsafe_are_refused(tmp_path):
    for address, tokens, words in (
        (Address("0.0.0.0"), False, "0.0.0.0 without tokens. Leave out --no-auth"),
        (Address("0.0.0.0"), True, "without TLS, which would send tokens in the clear"),
        (Address("::", tls_cert=tmp_path), True, "Pass both --tls-cert and --tls-key"),
        (Address(tls_cert=tmp_path / "a", tls_key=tmp_path / "b"), True, "no file"),
    ):
        with pytest.raises(InvalidInput, match=words):
            check_address(address, tokens=tokens)
    check_address(Address("0.0.0.0", plain_http=True), tokens=True)
    check_address(Address("::1"), tokens=False)


def test_answers_are_sent_at_once():
    """Asyncio turns off waiting for acknowledgements only on sockets that are named as TCP."""
    with bind(Address(port=0)) as listener:
        assert listener.proto == socket.IPPROTO_TCP


def test_tls_by_files(tmp_path):
    pytest.importorskip("cryptography")
    cert, key = certificate(tmp_path)
    with Served(tmp_path, "--tls-cert", str(cert), "--tls-key", str(key)) as served:
        assert served.url.startswith("https://")
        url = f"https://localhost:{served.port}"
        with Client(url, ca_file=str(cert)).stream("federation") as client:
            assert client.observe(1.0, 2.0).step == 1
        with Client(url, retries=0) as stranger, pytest.raises(ServiceRefused, match="CERTIFICATE_VERIFY_FAILED"):
            stranger.streams()


def certificate(folder: Path) -> tuple[Path, Path]:
    from datetime import UTC, datetime, timedelta

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name.from_rfc4514_string("CN=localhost")
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), False)
        .add_extension(x509.BasicConstraints(True, 0), True)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    (folder / "cert.pem").write_bytes(made.public_bytes(pem))
    kind, secret = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    (folder / "key.pem").write_bytes(key.private_bytes(pem, kind, secret))
    assert ssl.create_default_context(cafile=folder / "cert.pem")
    return folder / "cert.pem", folder / "key.pem"


def test_the_event_stream_tells_what_happens_and_ends_with_the_token(tmp_path):
    from nashcast.service.http.access.tokens import TokenFile

    tokens = TokenFile(tmp_path / "journal" / "tokens.json")
    secret = tokens.add("all", ["admin"])
    values = series(40)
    with Served(tmp_path, "--readers", "2", tokens=True) as served, served.client(secret) as client:
        client.observe(values[0], values[0], step=0)
        stream = client.events()
        kind, hello = next(stream)
        assert (kind, hello["step"], hello["agents"]) == ("hello", 0, MEMBERS)
        for step in range(1, 40):
            client.observe(values[step], None if step == 20 else values[step], step=step)
        client.label(20, values[20])
        targets, forecasts = {}, {}
        while 20 not in targets or targets[20]["target"] is None or 39 not in targets:
            kind, data = next(stream)
            assert (kind, data["skipped"]) == ("steps", 0)
            targets |= {row["step"]: row for row in data["targets"]}
            forecasts |= {row["step"]: row["forecast"] for row in data["forecasts"]}
        assert (targets[20]["target"], targets[20]["late"]) == ([values[20]], True)
        assert [targets[step]["target"] for step in range(21, 40)] == [[value] for value in values[21:]]
        history = {row["step"]: row["forecast"] for row in client.history(2)}
        assert history == forecasts
        second = client.events()
        next(second)
        third = client.events()
        with pytest.raises(ServiceRefused, match="the event stream has too many readers"):
            next(third)
        stream.close()
        other = served.token("other", "write")
        tokens.revoke("all")
        time.sleep(1.5)
        with served.client(other) as poster:
            poster.observe(1.0, 1.0, step=40)
        with pytest.raises(ServiceRefused, match="the token is revoked"):
            list(second)
