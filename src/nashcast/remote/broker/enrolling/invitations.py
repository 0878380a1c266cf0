"""Invitations: each allows an agent to enrol once, until a given time. Stored in `enrolment.json`."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from nashcast.errors import InvalidInput
from nashcast.remote.broker.certificates import certs
from nashcast.remote.broker.certificates.certs import AUTHORITY, BROKER
from nashcast.remote.broker.certificates.keys import make_seed, public_key, read_seed
from nashcast.remote.broker.enrolling import enrolment
from nashcast.remote.broker.enrolling.enrolment import Enrolment, Invitation
from nashcast.remote.broker.enrolling.join_code import JoinCode, new_code
from nashcast.remote.broker.files import locked, make_folder
from nashcast.remote.broker.names import agent_name
from nashcast.remote.broker.rules import Settings

CERTS, DESK_SEED, HOURS = "certs", "desk.seed", 24.0


class Begin(NamedTuple):
    """Settings of a federation made on first use. hosts: the addresses for agents; without any, this machine.

    federation: its name; None for the folder's.
    """

    hosts: tuple[str, ...] = ()
    port: int = 4222
    federation: str | None = None


def invite(
    folder: str | Path, name: str, *, hours: float = HOURS, approve: bool = False, begin: Begin | None = None,
    now: datetime | None = None,
) -> JoinCode:  # fmt: skip
    """Allow the owner of agent `name` to enrol it once, within so many hours. Creates the federation if there is none.

    approve: only after `nashcast enroll approve`.   begin: settings of a new federation.
    """
    folder, now = Path(folder).expanduser(), now or datetime.now(UTC)
    agent_name(name)
    if not 0.0 < hours <= 24.0 * 365:
        raise InvalidInput("hours", f"{hours:g}", "Pass more than 0, and at most 8760.")
    if not (folder / enrolment.FILE).exists():
        _begin(folder, begin or Begin())
    elif begin is not None and begin != Begin():
        remedy = "Leave out --federation, --port and --host, or choose another folder."
        raise InvalidInput("folder", f"{folder}, which has a federation already", remedy)
    with locked(folder):
        before = enrolment.read(folder)
        _refuse_known(before, name, folder, now)
        code = new_code(_address(before), before.federation, name, _fingerprint(before))
        certificate, _ = code.certificate()
        made = Invitation(
            code.id, name, public_key(code.seed), certificate.decode(), _text(now), _text(now + timedelta(hours=hours)),
            approve,
        )  # fmt: skip
        desk = folder / DESK_SEED
        key = public_key(read_seed(desk)) if desk.exists() else make_seed(desk)
        enrolment.save(folder, before._replace(desk=key, invitations=(*before.invitations, made)), now=now)
    return code


def withdraw(folder: str | Path, name: str) -> Invitation:
    """Withdraw an unused invitation."""
    return _changed(folder, name, ("open", "pending", "approved"), "withdrawn")


def approve(folder: str | Path, name: str) -> Invitation:
    """Approve the request of a waiting agent."""
    return _changed(folder, name, ("pending",), "approved")


def waiting(before: Enrolment, now: datetime | None = None) -> list[Invitation]:
    """Valid invitations that were not used yet."""
    return [each for each in before.invitations if each.valid(now) and each.state in ("open", "pending", "approved")]


def replaced(before: Enrolment, new: Invitation) -> Enrolment:
    return before._replace(invitations=tuple(new if each.id == new.id else each for each in before.invitations))


def _changed(folder: str | Path, name: str, states: tuple[str, ...], state: str) -> Invitation:
    folder = Path(folder).expanduser()
    with locked(make_folder(folder)):
        before = enrolment.read(folder)
        found = [each for each in before.invitations if each.name == name]
        usable = [each for each in found if each.state in states and each.valid()]
        if not usable:
            got = f"{name!r:.80}, which is not invited"
            if found:
                last = found[-1]
                got = f"{name!r:.80}, whose invitation {'is ' + last.state if last.valid() else 'has expired'}"
            known = ", ".join(each.name for each in before.invitations if each.state in states and each.valid())
            raise InvalidInput("agent", got, f"{' or '.join(states).capitalize()} are: {known or 'none'}.")
        new = usable[-1]._replace(state=state)
        enrolment.save(folder, replaced(before, new))
    return new


def _refuse_known(before: Enrolment, name: str, folder: Path, now: datetime) -> None:
    for other in before.agents:
        if other.casefold() == name.casefold():
            remedy = f"Choose another name, or revoke it first: nashcast enroll revoke {folder} {other}"
            raise InvalidInput("agent", f"{name!r}, but {other!r} is enrolled", remedy)
    for each in waiting(before, now):
        if each.name.casefold() == name.casefold():
            remedy = f"Withdraw it first: nashcast enroll withdraw {each.name} --folder {folder}"
            raise InvalidInput("agent", f"{name!r}, but {each.name!r} is invited until {each.expires}", remedy)


def _begin(folder: Path, begin: Begin) -> None:
    make_folder(folder)
    hosts = [*begin.hosts, *(host for host in certs.LOCAL if host not in begin.hosts)]
    where = folder / CERTS
    if not certs.certificate_path(where, BROKER).exists():
        certs.make(where, hosts)
    listen = "0.0.0.0" if begin.hosts else "127.0.0.1"
    name = begin.federation or re.sub(r"[^A-Za-z0-9-]+", "-", folder.resolve().name).strip("-")[:64] or "federation"
    enrolment.create(folder, name, Settings(listen, begin.port, str(where.resolve())))


def _address(before: Enrolment) -> str:
    if before.settings.certificates is None:
        raise InvalidInput(
            "folder", "a federation without TLS",
            "Invitations need certificates: make a federation with `nashcast enroll invite` in another folder.",
        )  # fmt: skip
    hosts = certs.read_certificate(before.settings.certificates, BROKER).hosts
    # Names come before addresses in a certificate, those of this machine last.
    host = min(hosts, key=lambda host: host in certs.LOCAL, default="localhost")
    return f"tls://{f'[{host}]' if ':' in host else host}:{before.settings.port}"


def _fingerprint(before: Enrolment) -> bytes:
    assert before.settings.certificates is not None
    certs.signer(before.settings.certificates)  # without its key no certificate can be signed for a guest
    return bytes.fromhex(certs.read_certificate(before.settings.certificates, AUTHORITY).fingerprint)


def _text(moment: datetime) -> str:
    return moment.isoformat(timespec="seconds")
