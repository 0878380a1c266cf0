r"""An invitation as one string, and the keys that both sides derive from its secret.

    tls://HOST:PORT/FEDERATION/NAME/CODE

CODE is base 32 of 16 secret bytes, the SHA-256 of the authority's certificate, and a checksum of 4 bytes. From the
secret are derived an nkey, with which the guest signs its request, and a certificate for TLS, which the broker accepts
while the invitation is open. The operator stores only their public parts.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
import secrets
from datetime import UTC, datetime
from typing import Any, NamedTuple

from nashcast.errors import InvalidInput
from nashcast.remote.broker.files import needed
from nashcast.remote.broker.names import agent_name, federation_name

_SECRET, _FINGERPRINT, _CHECK = 16, 32, 4
_FORM = re.compile(r"(tls://(?:\[[0-9a-fA-F:.]+\]|[A-Za-z0-9.-]+):\d{1,5})/([^/]+)/([^/]+)/([A-Za-z2-7]+)")


class JoinCode(NamedTuple):
    """url: of the broker.   fingerprint: SHA-256 of the authority's certificate."""

    url: str
    federation: str
    name: str
    secret: bytes
    fingerprint: bytes

    @property
    def id(self) -> str:
        """Identifies the invitation without revealing the secret."""
        return self._derived("id").hex()[:16]

    @property
    def seed(self) -> str:
        """The seed of the guest's nkey."""
        nkeys = needed("nkeys")
        return nkeys.encode_seed(self._derived("nkey"), nkeys.PREFIX_BYTE_USER).decode()

    @property
    def text(self) -> str:
        """The invitation as a string."""
        start = f"{self.url}/{self.federation}/{self.name}/"
        content = self.secret + self.fingerprint
        return start + _base32(content + _check(start, content))

    def signed(self, data: bytes) -> bytes:
        """The guest's signature of its request."""
        return needed("nkeys").from_seed(bytearray(self.seed.encode())).sign(data)

    def certificate(self) -> tuple[bytes, bytes]:
        """Certificate and key, in PEM. Both sides make the same bytes: Ed25519 signatures are deterministic."""
        needed("cryptography")
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
        from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

        key = Ed25519PrivateKey.from_private_bytes(self._derived("tls"))
        made = _guest_certificate(key, f"invitation-{self.id}", int.from_bytes(self._derived("serial")[:16]) >> 1)
        return made, key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())

    def _derived(self, purpose: str) -> bytes:
        return hmac.digest(self.secret, f"nashcast invitation 1: {purpose}".encode(), "sha256")


def new_code(url: str, federation: str, name: str, fingerprint: bytes) -> JoinCode:
    return JoinCode(url, federation_name(federation), agent_name(name), secrets.token_bytes(_SECRET), fingerprint)


def read_code(text: str) -> JoinCode:
    """The invitation in a string; a mistyped or truncated one is refused. Errors never contain the string."""
    whole = "".join(text.split())  # a mail program may have broken the line
    found = _FORM.fullmatch(whole)
    if found is None:
        got = f"{len(whole)} characters that are no invitation"
        raise InvalidInput("invitation", got, "Pass all of what `nashcast enroll invite` printed: tls://HOST:PORT/….")
    url, federation, name, code = found.groups()
    content = _decoded(code)
    start, check = f"{url}/{federation}/{name}/", content[-_CHECK:]
    # The unused bits of the last letter must be 0.
    right = len(content) == _SECRET + _FINGERPRINT + _CHECK and _base32(content) == code.lower()
    if not right or check != _check(start, content[:-_CHECK]):
        got = "an invitation whose checksum is wrong: a letter was mistyped or lost"
        raise InvalidInput("invitation", got, "Copy it again, from tls:// to its last letter.")
    return JoinCode(url, federation_name(federation), agent_name(name), content[:_SECRET], content[_SECRET:-_CHECK])


def verified(public_key: str, data: bytes, signature: bytes) -> bool:
    """Whether the data was signed with this nkey."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    raw = base64.b32decode(public_key + "=" * (-len(public_key) % 8))[1:33]
    try:
        Ed25519PublicKey.from_public_bytes(raw).verify(signature, data)
    except InvalidSignature:
        return False
    return True


def _check(start: str, content: bytes) -> bytes:
    return hashlib.sha256(b"nashcast invitation 1\n" + start.encode() + content).digest()[:_CHECK]


def _base32(data: bytes) -> str:
    return base64.b32encode(data).decode().rstrip("=").lower()


def _decoded(code: str) -> bytes:
    try:
        return base64.b32decode(code.upper() + "=" * (-len(code) % 8))
    except binascii.Error:
        return b""


def _guest_certificate(key: Any, name: str, serial: int) -> bytes:
    """A self-signed certificate, for a client only. It is trusted while the invitation is open; its dates are fixed."""
    from cryptography import x509
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

    from nashcast.remote.broker.certificates.x509 import certificate_pem

    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    built = x509.CertificateBuilder().issuer_name(subject).subject_name(subject).public_key(key.public_key())
    built = built.serial_number(serial)
    built = built.not_valid_before(datetime(2020, 1, 1, tzinfo=UTC)).not_valid_after(datetime(2120, 1, 1, tzinfo=UTC))
    built = built.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    built = built.add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False)
    return certificate_pem(built.sign(key, None))
