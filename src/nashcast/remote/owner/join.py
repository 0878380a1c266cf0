"""The owner's side of enrolment by invitation. Private keys are generated here and never sent."""

from __future__ import annotations

import asyncio
import json
import ssl
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from nashcast.errors import InvalidInput, NashcastError
from nashcast.remote.broker.certificates import certs
from nashcast.remote.broker.certificates.certs import AUTHORITY, certificate_path
from nashcast.remote.broker.certificates.expiry import check_valid
from nashcast.remote.broker.certificates.keys import make_seed, public_key, read_seed
from nashcast.remote.broker.connect import connect
from nashcast.remote.broker.enrolling.join_code import JoinCode, read_code
from nashcast.remote.broker.enrolling.join_messages import Asked, Said, pack_request, read_reply
from nashcast.remote.broker.files import make_folder, needed, write_whole
from nashcast.remote.broker.rules import join_subject

# Timeouts of a connection and of one answer, interval between requests, and timeout of the agent's first connection.
DIAL_S, ANSWER_S, RETRY_S, FIRST_S = 5, 10.0, 1.0, 30.0
# Attempts to confirm the enrolment to the desk.
GOODBYES = 5
Say = Callable[[str], None]


class Joined(NamedTuple):
    """What an agent needs to connect: see `serve_agent`."""

    hub: str
    name: str
    key: Path
    certs: Path


def join(text: str, folder: str | Path | None = None, *, wait: float = 600.0, say: Say = lambda line: None) -> Joined:
    """Enrol the agent that an invitation names, and connect for the first time.

    folder: of its files; named after the agent by default.   wait: seconds, for the hub and for its approval.   say:
    called with progress messages. After an interruption, the same call resumes; for an enrolled agent it returns at
    once.
    """
    code = read_code(text)
    folder = Path(code.name if folder is None else folder).expanduser()
    make_folder(folder)
    folder.chmod(0o700)
    joined = Joined(f"{code.url}/{code.federation}", code.name, folder / f"{code.name}.seed", folder)
    marker = folder / f"{code.name}.joined"
    if _is_joined(marker, code):
        return joined
    asked = _own_files(folder, code)
    say(f"{joined.key}: the identity of {code.name}, secret, stays here; its public key is {asked.public_key}")
    asyncio.run(_asked_for(code, asked, folder, wait, say))
    asyncio.run(_first_time(joined, code))
    write_whole(marker, json.dumps({"hub": joined.hub, "invitation": code.id}) + "\n", private=True, overwrite=True)
    say(f"{code.name} is enrolled in {code.federation}, and was connected to {code.url}")
    return joined


def _is_joined(marker: Path, code: JoinCode) -> bool:
    try:
        found = json.loads(marker.read_text())["invitation"]
    except (OSError, ValueError, LookupError, TypeError):
        return False
    if found != code.id:
        remedy = "Leave the invitation out, or join in another folder: --folder."
        raise InvalidInput("folder", f"{marker.parent}, in which {code.name!r} joined with another invitation", remedy)
    return True


def _own_files(folder: Path, code: JoinCode) -> Asked:
    """Generate the agent's keys, or use those of an interrupted call."""
    seed, request = folder / f"{code.name}.seed", folder / f"{code.name}.csr"
    key = public_key(read_seed(seed)) if seed.exists() else make_seed(seed)
    if not request.exists() or not certs.key_path(folder, code.name).exists():
        certs.request(code.name, folder, overwrite=True)
    return Asked(key, request.read_text(), False)


async def _asked_for(code: JoinCode, asked: Asked, folder: Path, wait: float, say: Say) -> None:
    """Ask the desk until it has sent the certificate, and store it."""
    until, told = time.monotonic() + wait, ""
    while True:
        try:
            said = await _exchange(code, asked)
        except _NoAnswer as error:
            said, why = None, f"no answer from the hub yet ({error})"
        else:
            why = f"waiting for approval. The operator runs: nashcast enroll approve {code.name} --folder FOLDER"
        if said is not None and said.state == "refused":
            raise NashcastError(f"the hub of {code.federation} refuses {code.name!r}: {said.reason}")
        if said is not None and said.state == "enrolled":
            break
        if why != told:
            say(why)
        told = why
        if time.monotonic() > until:
            remedy = "The same command goes on where it was."
            raise NashcastError(f"{code.name!r} was not let in within {wait:g} s: {why}. {remedy}")
        await asyncio.sleep(RETRY_S)
    write_whole(certificate_path(folder, AUTHORITY), said.authority, private=True, overwrite=True)
    write_whole(certificate_path(folder, code.name), said.certificate, private=True, overwrite=True)
    check_valid(folder, code.name)


async def _first_time(joined: Joined, code: JoinCode) -> None:
    """Connect as the agent, over verified TLS; then close the invitation."""
    until = time.monotonic() + FIRST_S
    url = joined.hub.rpartition("/")[0]
    while True:
        try:
            client = await connect(url, seed_file=joined.key, name=joined.name, tls=joined.certs, patience=5.0)
            await client.close()
            break
        except InvalidInput:
            raise
        except NashcastError:  # a broker on another machine reloads its rules a moment later
            if time.monotonic() > until:
                raise
            await asyncio.sleep(RETRY_S)
    key, request = public_key(read_seed(joined.key)), (joined.certs / f"{joined.name}.csr").read_text()
    for _ in range(GOODBYES):  # the broker may be reloading its rules; an invitation left open expires
        try:
            await _exchange(code, Asked(key, request, True))
        except _NoAnswer:
            await asyncio.sleep(RETRY_S)
        except NashcastError:  # refused: it was closed before, and the answer was lost
            return
        else:
            return


class _NoAnswer(Exception):
    """The broker or the desk does not answer."""


async def _exchange(code: JoinCode, asked: Asked) -> Said:
    """Send one request to the desk.

    The broker is not verified here: the desk's reply is signed, and the request contains no secret.
    """
    nats = needed("nats")
    from nats.errors import Error

    dialling = True

    async def failed(error: Exception) -> None:
        if dialling:  # else nats-py would retry for ever
            raise error

    try:
        client: Any = await nats.connect(
            code.url, name=code.id, nkeys_seed_str=code.seed, inbox_prefix=f"_INBOX_{code.id}",
            tls=_guest_context(code), tls_handshake_first=True, allow_reconnect=False, connect_timeout=DIAL_S,
            error_cb=failed,
        )  # fmt: skip
        dialling = False
    except ssl.SSLError as error:
        if "ALERT" in str(error).upper():
            reason = "the invitation has expired, was used, or was withdrawn. Ask its operator for another."
            raise NashcastError(f"the broker at {code.url} does not take the invitation: {reason}") from None
        raise _NoAnswer(str(error)) from None
    except (Error, OSError, TimeoutError) as error:
        raise _NoAnswer(str(error) or type(error).__name__) from None
    try:
        request = pack_request(code, asked)
        reply = await client.request(join_subject(code.federation, code.id), request, timeout=ANSWER_S)
        return read_reply(reply.data, request, code)
    except (Error, TimeoutError) as error:
        raise _NoAnswer(str(error) or type(error).__name__) from None
    finally:
        with suppress(Exception):  # the connection may be broken already
            await asyncio.wait_for(client.close(), 2.0)


def _guest_context(code: JoinCode) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    certificate, key = code.certificate()
    with tempfile.TemporaryDirectory() as folder:  # ssl reads files only; the folder is private to this user
        paths = [Path(folder) / name for name in ("guest.pem", "guest-key.pem")]
        for path, content in zip(paths, (certificate, key), strict=True):
            write_whole(path, content, private=True)
        context.load_cert_chain(*map(str, paths))
    return context
