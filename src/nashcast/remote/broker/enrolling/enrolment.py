"""The enrolled agents of a federation: `enrolment.json` in the operator's folder, and the broker's rules from it.

Any party can make an identity; only an enrolled one can connect, under one name and with the rights of that name.
"""

from __future__ import annotations

import json
import re
import string
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from nashcast.errors import InvalidInput, NashcastError
from nashcast.remote.broker.certificates.certs import authority_pem
from nashcast.remote.broker.certificates.keys import check_public_key, make_seed, read_seed
from nashcast.remote.broker.certificates.keys import public_key as public_key_of
from nashcast.remote.broker.files import locked, write_whole
from nashcast.remote.broker.names import agent_name, federation_name
from nashcast.remote.broker.rules import CONF, TRUSTED, Guests, Parties, Settings, broker_conf

FORMAT = 1
# States of an invitation in which its guest may connect.
OPEN = ("open", "pending", "approved", "used")
FILE, HUB_SEED = "enrolment.json", "hub.seed"
_PEM = frozenset(string.ascii_letters + string.digits + "+/=- \n")


class Enrolled(NamedTuple):
    """added, revoked: times in ISO 8601, UTC; revoked is None for an agent that may take part."""

    name: str
    public_key: str
    added: str
    revoked: str | None = None


class Invitation(NamedTuple):
    """Lets an owner enrol an agent of this name: see `invitations`. Nothing in it is secret.

    id: in subjects and accounts.   public_key, certificate: of the guest.   approve: whether the operator approves the
    request first.   state: open, pending (waits for approval), approved, used (enrolled; receipt of the certificate not
    confirmed yet), closed or withdrawn.   request: the agent's own public key and its certificate request, once
    received.
    """

    id: str
    name: str
    public_key: str
    certificate: str
    made: str
    expires: str
    approve: bool = False
    state: str = "open"
    request: tuple[str, str] | None = None

    def valid(self, now: datetime | None = None) -> bool:
        """Whether a guest can connect to the broker with it."""
        now = now or datetime.now(UTC)
        return self.state in OPEN and datetime.fromisoformat(self.expires) > now


class Enrolment(NamedTuple):
    """hub: its public key.   history: all agents ever enrolled, the latest of a name last.   settings: of the broker.

    desk: the public key of the desk, once an agent was invited.
    """

    federation: str
    hub: str
    history: tuple[Enrolled, ...] = ()
    settings: Settings = Settings()
    desk: str | None = None
    invitations: tuple[Invitation, ...] = ()

    @property
    def agents(self) -> dict[str, str]:
        """The public keys of enrolled agents, by name."""
        return {entry.name: entry.public_key for entry in self.history if entry.revoked is None}


def create(folder: str | Path, federation: str, settings: Settings | None = None) -> Enrolment:
    """Create a federation without agents: its folder, the hub's identity and the broker's configuration."""
    folder = Path(folder).expanduser()
    federation_name(federation)
    checked = check_settings(settings or Settings())
    if (folder / FILE).exists():
        raise InvalidInput(
            "folder", f"{folder}, which has an {FILE}", "Choose another folder, or add agents to this one."
        )
    # An existing seed was made by an interrupted call.
    seed = folder / HUB_SEED
    hub = public_key_of(read_seed(seed)) if seed.exists() else make_seed(seed)
    with locked(folder):
        return save(folder, Enrolment(federation, hub, (), checked))


def read(folder: str | Path) -> Enrolment:
    """The enrolment in a folder, all of it checked: names and keys become the broker's rules."""
    path = Path(folder).expanduser() / FILE
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        remedy = f"Make one: nashcast enroll create {folder} --federation NAME."
        raise InvalidInput("folder", f"{folder}, without {FILE}", remedy) from None
    except OSError as error:
        raise NashcastError(f"cannot read {path}: {error.strerror}.") from None
    except ValueError as error:
        raise _damaged(path, f"no JSON, {error}") from None
    return _checked(path, content)


def save(folder: str | Path, enrolment: Enrolment, *, now: datetime | None = None) -> Enrolment:
    """Write it, and the broker's configuration. To change an enrolment, hold `locked(folder)` from reading to here."""
    folder = Path(folder).expanduser()
    latest = {entry.name: entry for entry in enrolment.history}
    former = [entry for entry in enrolment.history if entry is not latest[entry.name]]
    content = {
        "format": FORMAT,
        "federation": enrolment.federation,
        "hub": enrolment.hub,
        "agents": {name: _without_name(entry) for name, entry in latest.items()},
        "former": [entry._asdict() for entry in former],
        "broker": enrolment.settings._asdict(),
    }
    if enrolment.desk is not None:
        content |= {"desk": enrolment.desk, "invitations": [each._asdict() for each in enrolment.invitations]}
    write_whole(folder / FILE, json.dumps(content, indent=1) + "\n", overwrite=True)
    write_conf(folder, enrolment, now)
    return enrolment


def write_conf(folder: Path, enrolment: Enrolment, now: datetime | None = None) -> Path:
    """Write the broker's rules, and the certificates that it trusts while invitations are open."""
    open_now = [each for each in enrolment.invitations if each.valid(now)]
    guests = Guests(enrolment.desk, {each.id: each.public_key for each in open_now})
    certificates = enrolment.settings.certificates
    if open_now and certificates is not None:
        trusted = authority_pem(certificates).decode()
        write_whole(folder / TRUSTED, trusted + "".join(each.certificate for each in open_now), overwrite=True)
    parties = Parties(enrolment.hub, enrolment.agents, guests)
    return write_whole(
        folder / CONF, broker_conf(folder, enrolment.federation, parties, enrolment.settings), overwrite=True
    )


def add(folder: str | Path, name: str, public_key: str) -> Enrolment:
    """Enrol an agent. A revoked name can be enrolled again with another key; a revoked key cannot."""
    folder = Path(folder).expanduser()
    agent_name(name)
    check_public_key("public key", public_key)
    read(folder)
    with locked(folder):
        return save(folder, with_agent(read(folder), name, public_key, folder))


def with_agent(before: Enrolment, name: str, public_key: str, folder: Path) -> Enrolment:
    """The enrolment with one more agent, if its name and key are free. folder: for messages."""
    there = [other for other in before.agents if other.casefold() == name.casefold()]
    if there:
        remedy = f"Choose another name, or revoke it first: nashcast enroll revoke {folder} {there[0]}"
        raise InvalidInput("agent", f"{name!r}, but {there[0]!r} is enrolled", remedy)
    if public_key == before.hub:
        raise InvalidInput("public key", "the hub's own", "Pass the agent's: each has its own.")
    for entry in before.history:
        if entry.public_key == public_key:
            state = "enrolled" if entry.revoked is None else "revoked"
            remedy = "Have its owner make another identity: nashcast enroll request."
            raise InvalidInput("public key", f"one that is {state} as {entry.name!r}", remedy)
    return before._replace(history=(*before.history, Enrolled(name, public_key, _now())))


def revoke(folder: str | Path, name: str) -> Enrolment:
    """Revoke an agent; effective once the broker has read its configuration again."""
    folder = Path(folder).expanduser()
    read(folder)
    with locked(folder):
        before = read(folder)
        if name not in before.agents:
            known = ", ".join(before.agents) or "nobody"
            was = any(entry.name == name for entry in before.history)
            got = f"{name!r:.80}, which is revoked already" if was else f"{name!r:.80}, which is not enrolled"
            raise InvalidInput("agent", got, f"Enrolled are: {known}.")
        history = (e._replace(revoked=_now()) if e.name == name and e.revoked is None else e for e in before.history)
        return save(folder, before._replace(history=tuple(history)))


def check_settings(settings: Settings) -> Settings:
    """The settings, if a broker can run with them."""
    host, port, certificates, max_payload, max_connections, stream_bytes, stream_days = settings
    if not isinstance(host, str) or not host or not host.isprintable() or set(host) & set(' "\\/'):
        raise InvalidInput("host", f"{host!r:.80}", "Pass the address to listen on, such as 127.0.0.1 or 0.0.0.0.")
    _whole("port", port, 1, 65535)
    _whole("max_payload", max_payload, 1024, 64 << 20)
    _whole("max_connections", max_connections, 2, 1_000_000)
    _whole("stream_bytes", stream_bytes, 1 << 20, 1 << 50)
    _whole("stream_days", stream_days, 1, 36500)
    if certificates is not None and (not isinstance(certificates, str) or not certificates.isprintable()):
        raise InvalidInput("certificates", f"{certificates!r:.80}", "Pass the folder that `nashcast certs` wrote.")
    return settings


def _checked(path: Path, content: Any) -> Enrolment:
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        got = content.get("format") if isinstance(content, dict) else "none"
        raise InvalidInput("enrolment", f"{path} of format {got!r:.40}", f"This nashcast reads format {FORMAT}.")
    try:
        settings = check_settings(Settings(**content["broker"]))
        former = [Enrolled(**entry) for entry in content["former"]]
        history = (*former, *(Enrolled(name, **entry) for name, entry in content["agents"].items()))
        invited = tuple(_invitation(each) for each in content.get("invitations", ()))
        federation, desk = federation_name(content["federation"]), content.get("desk")
        whole = Enrolment(federation, content["hub"], history, settings, desk, invited)
        keys = [] if desk is None else [check_public_key("desk", desk)]
        keys += [check_public_key("hub", whole.hub), *(check_public_key(repr(e.name), e.public_key) for e in history)]
        active = [agent_name(entry.name).casefold() for entry in history if entry.revoked is None]
    except KeyError as error:
        raise _damaged(path, f"no entry {error}") from None
    except (TypeError, AttributeError, ValueError) as error:
        raise _damaged(path, str(error)) from None
    if len(set(keys)) < len(keys) or len(set(active)) < len(active):
        raise _damaged(path, "a key or a name that is there twice")
    if not all(isinstance(e.added, str) and isinstance(e.revoked, str | None) for e in history):
        raise _damaged(path, "a time that is no text")
    return whole


def _invitation(content: dict[str, Any]) -> Invitation:
    """Read an invitation; raises if it is damaged, so that it never becomes a rule."""
    request = content["request"]
    given: dict[str, Any] = {**content, "request": None if request is None else tuple(request)}
    each = Invitation(**given)
    agent_name(each.name)
    check_public_key(repr(each.name), each.public_key)
    right = re.fullmatch("[0-9a-f]{16}", each.id) and isinstance(each.approve, bool)
    if not right or each.state not in (*OPEN, "closed", "withdrawn"):
        raise TypeError(f"an invitation {each.id!r:.40} in the state {each.state!r:.40}")
    datetime.fromisoformat(each.expires)
    if each.certificate.count("-----BEGIN") != 1 or not set(each.certificate) <= _PEM:
        raise TypeError(f"an invitation {each.id!r:.40} without a certificate")
    return each


def _without_name(entry: Enrolled) -> dict:
    return {key: value for key, value in entry._asdict().items() if key != "name"}


def _damaged(path: Path, what: str) -> InvalidInput:
    return InvalidInput("enrolment", f"{path}: {what.rstrip('.')}", "Put it right, or back from a copy.")


def _whole(argument: str, value: Any, least: int, most: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise InvalidInput(argument, f"{value!r:.40}", f"Pass a whole number from {least} to {most}.")


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
