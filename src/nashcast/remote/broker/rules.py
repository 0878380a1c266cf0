r"""The broker's rules: the permissions of each party, as a configuration of nats-server.

Every party has an account of its own, a space of subjects that no other account sees; only listed messages pass between
two accounts. So an agent cannot address another's subjects; it cannot direct the broker's replies to another party; and
a second connection of an identity is refused by its account's limit.

| | hub | agent NAME of federation F |
|---|---|---|
| `nc.F.agent.NAME.ask` | asks | subscribes, and replies while the question is open (`_R_.>`) |
| `nc.F.agent.NAME.tell` | subscribes | publishes, and may ask for a reply |
| `nc.F.all` | publishes | subscribes |
| `nc.F.steps`, kept in a stream | publishes | reads one by one or in batches: `$JS.API.DIRECT.GET.STREAM` |
| `_INBOX_NAME.>` | | subscribes, for replies to itself; no other account has it |

A guest with an open invitation ID may only send requests to the desk, on `nc.F.join.ID`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from nashcast.remote.broker.certificates.certs import AUTHORITY, BROKER, certificate_path, key_path
from nashcast.remote.broker.names import HUB
from nashcast.remote.wire.subjects import ask_subject, everybody_subject, steps_subject, stream_name, tell_subject

CONF, LOG, PID, STORE = "nats-server.conf", "nats-server.log", "nats-server.pid", "jetstream"
# The authority's certificate and those of guests with open invitations.
TRUSTED = "trusted.pem"
DESK = "desk"
# Bytes of the longest message of a guest.
_REQUEST = 16384
# The broker's own prefix for replies to requests from another account.
REPLIES = "_R_.>"
# Limit per agent, which needs four.
_SUBSCRIPTIONS = 64
# How long a request is open; one answer passes.
_OPEN = 'response_type: single, response_threshold: "2m"'


class Settings(NamedTuple):
    """certificates: the folder `nashcast certs` wrote, for TLS on both sides; None for a broker without TLS.

    max_payload: bytes of the longest message.   stream_bytes, stream_days: limits of the durable stream of steps; the
    oldest are dropped first.
    """

    host: str = "127.0.0.1"
    port: int = 4222
    certificates: str | None = None
    max_payload: int = 1 << 20
    max_connections: int = 1024
    stream_bytes: int = 256 << 20
    stream_days: int = 30


class Guests(NamedTuple):
    """desk: its public key, None if no agent was ever invited.   keys: of the guests, by invitation."""

    desk: str | None = None
    keys: Mapping[str, str] = {}


class Parties(NamedTuple):
    """The public keys of all parties that may connect."""

    hub: str
    agents: Mapping[str, str]
    guests: Guests = Guests()


def join_subject(federation: str, invitation: str) -> str:
    """Guest to desk: requests."""
    return f"nc.{federation}.join.{invitation}"


def broker_conf(folder: Path, federation: str, parties: Parties, settings: Settings) -> str:
    """The configuration file."""
    folder, (hub, agents, guests) = folder.resolve(), parties
    lines = [
        "# Written by nashcast from enrolment.json; changes made here are lost. Change it with: nashcast enroll.",
        f"server_name: {_quoted(f'nashcast-{federation}')}",
        f"host: {_quoted(settings.host)}",
        f"port: {settings.port}",
        f"max_payload: {settings.max_payload}",
        f"max_connections: {settings.max_connections}",
        "# A dead connection is detected within 15 s; only then can its identity connect again.",
        'ping_interval: "4s"',
        "ping_max: 2",
        f"pid_file: {_quoted(folder / PID)}",
        f"log_file: {_quoted(folder / LOG)}",
        "logfile_size_limit: 16777216",
        "logfile_max_num: 4",
        "jetstream {",
        f" store_dir: {_quoted(folder / STORE)}",
        ' sync_interval: "10s"',
        " # Twice the stream's bound, which is reserved: a hub may have created the stream with another bound.",
        f" max_file_store: {2 * settings.stream_bytes}",
        "}",
    ]
    if settings.certificates is not None:
        certificates = Path(settings.certificates)
        trusted = folder / TRUSTED if guests.keys else certificate_path(certificates.resolve(), AUTHORITY)
        lines += _tls(certificates, trusted)
    lines += ["accounts {", *_hub_account(federation, hub, agents)]
    if guests.desk is not None:
        lines += _desk_account(federation, guests.desk)
    for invitation, public_key in guests.keys.items():
        lines += _guest_account(federation, invitation, public_key)
    for name, public_key in agents.items():
        lines += _agent_account(federation, name, public_key)
    return "\n".join([*lines, "}", ""])


def read_stream_subjects(federation: str) -> tuple[str, str]:
    """The subjects for reading the stream: a message or batch by number, and the last one."""
    by_number = f"$JS.API.DIRECT.GET.{stream_name(federation)}"
    return by_number, f"{by_number}.{steps_subject(federation)}"


def account(name: str) -> str:
    """The account of an agent; never the hub's, whatever the name."""
    return f"agent-{name}"


def _hub_account(federation: str, hub: str, agents: Mapping[str, str]) -> list[str]:
    exports = [f"{{ stream: {_quoted(everybody_subject(federation))} }}"]
    exports += [f"{{ service: {_quoted(tell_subject(federation, '*'))} }}"]
    # A batch is many replies to one request.
    exports += [f"{{ service: {_quoted(s)}, response_type: stream }}" for s in read_stream_subjects(federation)]
    imports = [_import("service", account(name), ask_subject(federation, name)) for name in agents]
    everything = f"nc.{federation}.>"
    return [
        f" {_quoted(HUB)} {{",
        "  jetstream: enabled",
        "  limits { max_connections: 1 }",
        *_listed("exports", exports),
        *_listed("imports", imports),
        *_user(hub, [everything, "$JS.API.>", "$JS.ACK.>", REPLIES], [everything, f"_INBOX_{HUB}.>"]),
        " }",
    ]


def _agent_account(federation: str, name: str, public_key: str) -> list[str]:
    ask, tell, everybody = (
        ask_subject(federation, name),
        tell_subject(federation, name),
        everybody_subject(federation),
    )
    reads = read_stream_subjects(federation)
    imports = [_import("stream", HUB, everybody)] + [_import("service", HUB, subject) for subject in (tell, *reads)]
    return [
        f" {_quoted(account(name))} {{",
        f"  limits {{ max_connections: 1, max_subscriptions: {_SUBSCRIPTIONS} }}",
        *_listed("exports", [f"{{ service: {_quoted(ask)}, accounts: [{_quoted(HUB)}], {_OPEN} }}"]),
        *_listed("imports", imports),
        *_user(public_key, [tell, *reads, REPLIES], [ask, everybody, f"_INBOX_{name}.>"]),
        " }",
    ]


def _desk_account(federation: str, public_key: str) -> list[str]:
    asked = join_subject(federation, "*")
    return [
        f" {_quoted(DESK)} {{",
        "  limits { max_connections: 1 }",
        *_listed("exports", [f"{{ service: {_quoted(asked)}, {_OPEN} }}"]),
        *_user(public_key, [REPLIES], [asked]),
        " }",
    ]


def _guest_account(federation: str, invitation: str, public_key: str) -> list[str]:
    ask = join_subject(federation, invitation)
    return [
        f" {_quoted(f'invitation-{invitation}')} {{",
        f"  limits {{ max_connections: 1, max_subscriptions: 4, max_payload: {_REQUEST} }}",
        *_listed("imports", [_import("service", DESK, ask)]),
        *_user(public_key, [ask], [f"_INBOX_{invitation}.>"]),
        " }",
    ]


def _import(kind: str, of: str, subject: str) -> str:
    return f"{{ {kind}: {{ account: {_quoted(of)}, subject: {_quoted(subject)} }} }}"


def _user(public_key: str, publish: list[str], subscribe: list[str]) -> list[str]:
    return [
        "  users [ {",
        f"   nkey: {_quoted(public_key)}",
        "   permissions {",
        f"    publish: {{ allow: [{', '.join(map(_quoted, publish))}] }}",
        f"    subscribe: {{ allow: [{', '.join(map(_quoted, subscribe))}] }}",
        "   }",
        "  } ]",
    ]


def _tls(folder: Path, trusted: Path) -> list[str]:
    folder = folder.expanduser().resolve()
    return [
        "tls {",
        f" cert_file: {_quoted(certificate_path(folder, BROKER))}",
        f" key_file: {_quoted(key_path(folder, BROKER))}",
        f" ca_file: {_quoted(trusted)}",
        " verify: true",
        ' min_version: "1.3"',
        " # TLS before anything else, against downgrade attacks. Not auto: the server would send first after 50 ms,",
        " # and agents may be far away or busy.",
        " handshake_first: true",
        " timeout: 5",
        "}",
    ]


def _listed(name: str, entries: list[str]) -> list[str]:
    return [f"  {name} [", *(f"   {entry}" for entry in entries), "  ]"] if entries else []


def _quoted(text: object) -> str:
    """A text for the configuration: quoted and escaped; non-ASCII letters are left unchanged."""
    return json.dumps(str(text), ensure_ascii=False)
