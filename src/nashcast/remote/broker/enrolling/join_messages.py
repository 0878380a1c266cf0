"""Messages between a guest and the desk: JSON, signed by both sides against changes in transit.

The guest signs with the nkey of its invitation, the desk with the authority's key; a reply names its request.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from typing import Any, NamedTuple

from nashcast.errors import NashcastError
from nashcast.remote.broker.certificates import x509
from nashcast.remote.broker.enrolling.join_code import JoinCode, verified
from nashcast.remote.broker.files import needed

VERSION = 1
# Prefixes of signed data, so that a signature is valid for one purpose only.
_ASKS, _SAYS = b"nashcast join request 1\n", b"nashcast join reply 1\n"


class Asked(NamedTuple):
    """A guest's message. public_key, request: of the future agent.   done: it has received its certificate."""

    public_key: str
    request: str
    done: bool


class Said(NamedTuple):
    """The desk's reply. state: pending, enrolled, closed or refused, with a reason.   authority: as PEM."""

    state: str
    authority: str
    reason: str = ""
    certificate: str = ""


class Spoilt(NashcastError):
    """A message that is invalid, or not signed with the expected key."""


def pack_request(code: JoinCode, asked: Asked) -> bytes:
    body = json.dumps({"v": VERSION, "nonce": secrets.token_hex(16), **asked._asdict()})
    return _packed(body, code.signed(_ASKS + body.encode()))


def read_request(data: bytes, guest: str) -> Asked:
    """guest: the invitation's public key."""
    body, signature = _unpacked(data)
    if not verified(guest, _ASKS + body.encode(), signature):
        raise Spoilt("the request is not signed with this invitation.")
    fields = _fields(body, {"public_key": str, "request": str, "done": bool})
    return Asked(**fields)


def pack_reply(request: bytes, said: Said, key: Any) -> bytes:
    """key: the authority's."""
    body = json.dumps({"v": VERSION, "to": hashlib.sha256(request).hexdigest(), **said._asdict()})
    return _packed(body, x509.signature(key, _SAYS + body.encode()))


def read_reply(data: bytes, request: bytes, code: JoinCode) -> Said:
    """The reply, checked to answer this request and to be signed by the invitation's authority."""
    body, signature = _unpacked(data)
    fields = _fields(body, {"to": str, "state": str, "authority": str, "reason": str, "certificate": str})
    try:
        authority = needed("cryptography.x509").load_pem_x509_certificate(fields["authority"].encode())
    except ValueError:
        raise Spoilt("the reply holds no authority.") from None
    if bytes.fromhex(x509.fingerprint(authority)) != code.fingerprint:
        raise Spoilt("the reply comes from another authority than the invitation's.")
    if not x509.signed_by(authority, _SAYS + body.encode(), signature):
        raise Spoilt("the reply is not signed by the invitation's authority.")
    if fields.pop("to") != hashlib.sha256(request).hexdigest():
        raise Spoilt("the reply is to another request.")
    return Said(**fields)


def _packed(body: str, signature: bytes) -> bytes:
    return json.dumps({"body": body, "signature": signature.hex()}).encode()


def _unpacked(data: bytes) -> tuple[str, bytes]:
    try:
        content = json.loads(data)
        return str(content["body"]), bytes.fromhex(content["signature"])
    except (ValueError, LookupError, TypeError, RecursionError):
        raise Spoilt("the message is none that this nashcast reads.") from None


def _fields(body: str, kinds: dict[str, type]) -> dict[str, Any]:
    try:
        content = json.loads(body)
        version = content["v"]
        found = {name: content[name] for name in kinds}
    except (ValueError, LookupError, TypeError, RecursionError):
        raise Spoilt("the message is none that this nashcast reads.") from None
    if version != VERSION or not all(isinstance(found[name], kind) for name, kind in kinds.items()):
        raise Spoilt(f"the message is of version {version!r:.20}; this nashcast reads {VERSION}.")
    return found
