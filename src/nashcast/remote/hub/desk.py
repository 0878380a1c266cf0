"""The desk: answers requests that carry an invitation, and enrols the agents."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Any, Self

from nashcast.errors import NashcastError
from nashcast.remote.broker.certificates import certs
from nashcast.remote.broker.certificates.keys import check_public_key
from nashcast.remote.broker.connect import connect
from nashcast.remote.broker.enrolling import enrolment
from nashcast.remote.broker.enrolling.enrolment import Enrolment, Invitation
from nashcast.remote.broker.enrolling.invitations import DESK_SEED, replaced
from nashcast.remote.broker.enrolling.join_messages import Asked, Said, Spoilt, pack_reply, read_request
from nashcast.remote.broker.files import locked
from nashcast.remote.broker.names import HUB
from nashcast.remote.broker.rules import join_subject
from nashcast.remote.broker.running.process import reload_broker
from nashcast.remote.broker.running.server import EmbeddedBroker, broker_url, lasting_broker
from nashcast.remote.hub.event_loop import Loop

log = logging.getLogger("nashcast.remote")
# Interval between attempts to open the desk, and between searches for expired invitations.
RETRY_S, SWEEP_S = 2.0, 30.0
UNUSABLE = (
    "the invitation has expired, was used, or was withdrawn. Ask the operator for another: nashcast enroll invite"
)


class Desk:
    """folder: of the federation.   url: of its broker.   tls: certificates, if not those that the folder names.

    A context manager. It opens in the background, as soon as an agent was invited and no other desk is open.
    """

    def __init__(self, folder: str | Path, url: str, tls: str | Path | None = None):
        self._folder, self._url, self._tls = Path(folder).expanduser(), url, tls
        self._loop: Loop | None = None
        self._client: Any = None

    def __enter__(self) -> Self:
        self._loop = Loop("nashcast desk")
        self._loop.start(self._serve())
        return self

    def __exit__(self, *_) -> None:
        loop, self._loop = self._loop, None
        if loop is not None:
            with suppress(Exception):  # the connection may be broken already
                if self._client is not None:
                    loop.run(self._client.close(), 5.0)
            loop.close()

    def answer(self, invitation: str, data: bytes, now: datetime | None = None) -> bytes | None:
        """The reply to a guest; None if no guest can have sent this. Changes are in the folder when this returns."""
        with locked(self._folder):
            before = enrolment.read(self._folder)
            found = [each for each in before.invitations if each.id == invitation]
            if not found or before.settings.certificates is None:
                return None
            _, key = certs.signer(before.settings.certificates)
            authority = certs.authority_pem(before.settings.certificates).decode()
            try:
                asked = read_request(data, found[0].public_key)
                after, said = self._decided(before, found[0], asked, now)
            except (Spoilt, NashcastError) as error:
                log.warning("desk: %s is refused: %s", found[0].name, error)
                after, said = before, Said("refused", "", str(error))
            if after != before:
                enrolment.save(self._folder, after)
        return pack_reply(data, said._replace(authority=authority), key)

    def _decided(
        self, before: Enrolment, guest: Invitation, asked: Asked, now: datetime | None
    ) -> tuple[Enrolment, Said]:
        request = (check_public_key("public key", asked.public_key), asked.request)
        if not guest.valid(now) or guest.request not in (None, request):
            raise Spoilt(UNUSABLE)
        if guest.state == "used":
            if asked.done:
                return replaced(before, guest._replace(state="closed")), Said("closed", "")
            return before, self._enrolled(before, guest.name)
        if guest.state == "pending" or (guest.state == "open" and guest.approve):
            new = guest._replace(state="pending", request=request)
            if guest.state == "open":
                log.warning(
                    "desk: %s waits for approval, with the public key %s: nashcast enroll approve %s --folder %s",
                    guest.name, request[0], guest.name, self._folder,
                )  # fmt: skip
            return replaced(before, new), Said("pending", "")
        after = enrolment.with_agent(before, guest.name, request[0], self._folder)
        assert before.settings.certificates is not None
        pem, where = asked.request.encode(), before.settings.certificates
        certs.sign_pem(where, pem, "one", name=guest.name, overwrite=True)
        log.info("desk: %s is enrolled, with the public key %s", guest.name, request[0])
        return replaced(after, guest._replace(state="used", request=request)), self._enrolled(before, guest.name)

    def _enrolled(self, before: Enrolment, name: str) -> Said:
        assert before.settings.certificates is not None
        path = certs.certificate_path(before.settings.certificates, name)
        return Said("enrolled", "", certificate=path.read_text())

    async def _serve(self) -> None:
        told = ""
        while True:
            try:
                found = enrolment.read(self._folder)
                if found.desk is not None:
                    tls = self._tls or found.settings.certificates
                    self._client = await connect(
                        self._url, seed_file=self._folder / DESK_SEED, name=HUB, tls=tls, patience=0.0
                    )
                    await self._client.subscribe(join_subject(found.federation, "*"), cb=self._asked)
                    log.info("desk: invitations to %s are answered", found.federation)
                    await self._sweep()
            except NashcastError as error:
                if str(error) != told:
                    log.info("desk: not open: %s", error)
                told = str(error)
            await asyncio.sleep(RETRY_S)

    async def _asked(self, message: Any) -> None:
        invitation, data = message.subject.rpartition(".")[2], message.data
        before = self._state()
        try:
            reply = await asyncio.to_thread(self.answer, invitation, data)
            changed = self._state() != before
            closed = changed and not any(e.id == invitation and e.valid() for e in self._read().invitations)
            if changed and not closed:
                await asyncio.to_thread(reload_broker, self._folder)  # before the agent dials
            if reply is not None:
                await message.respond(reply)
            if closed:
                await self._client.flush()
                await asyncio.to_thread(reload_broker, self._folder)  # after the reply: this disconnects the guest
        except Exception as error:  # an error with one guest must not close the desk for others
            log.warning("desk: a guest was not answered: %s", error)

    async def _sweep(self) -> None:
        """Remove expired invitations from the broker, for as long as the connection is open."""
        open_before = {each.id for each in self._read().invitations if each.valid()}
        while not self._client.is_closed:
            await asyncio.sleep(SWEEP_S)
            open_now = {each.id for each in self._read().invitations if each.valid()}
            if open_before - open_now:
                await asyncio.to_thread(reload_broker, self._folder)
            open_before = open_now

    def _read(self) -> Enrolment:
        return enrolment.read(self._folder)

    def _state(self) -> int:
        return (self._folder / enrolment.FILE).stat().st_mtime_ns


@contextmanager
def broker_and_desk(folder: str | Path, url: str | None = None, tls: str | Path | None = None) -> Iterator[str]:
    """The address of a federation's broker; its desk is open while this context is.

    url: of a running broker; by default one that runs from the folder on this machine, started if there is none.
    """
    folder = Path(folder).expanduser()
    settings = enrolment.read(folder).settings
    if url is None and lasting_broker(folder) is not None:
        url = broker_url(settings)
    if url is not None:
        with Desk(folder, url, tls):
            yield url
        return
    with EmbeddedBroker(folder, port=settings.port, tls=tls) as broker, Desk(folder, broker.url, tls):
        yield broker.url
