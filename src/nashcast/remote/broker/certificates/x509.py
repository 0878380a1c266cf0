"""Keys and certificates for TLS. Needs cryptography: imported only when one is made or read."""

from __future__ import annotations

import ipaddress
import re
import secrets
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from nashcast.errors import InvalidInput
from nashcast.remote.broker.files import needed

try:
    from cryptography import x509
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
except ModuleNotFoundError:
    needed("cryptography")  # raises with the install command
    raise

# Clocks differ: a certificate made now is valid from a little earlier.
_EARLIER = timedelta(hours=1)


def new_key() -> ec.EllipticCurvePrivateKey:
    """A private key on P-256, which every TLS implementation supports."""
    return ec.generate_private_key(ec.SECP256R1())


def key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def certificate_pem(certificate: x509.Certificate | x509.CertificateSigningRequest) -> bytes:
    return certificate.public_bytes(Encoding.PEM)


def key_of(authority: x509.Certificate, pem: bytes) -> ec.EllipticCurvePrivateKey:
    """The authority's private key; ValueError if it does not match or is invalid."""
    key = load_pem_private_key(pem, None)
    if not isinstance(key, ec.EllipticCurvePrivateKey) or key.public_key() != authority.public_key():
        raise ValueError("another key")
    return key


def authority(key: ec.EllipticCurvePrivateKey, days: int, now: datetime | None = None) -> x509.Certificate:
    """A self-signed authority that cannot sign other authorities."""
    # Authorities have distinct names, so that a mismatch is reported as "unknown issuer".
    subject = _subject(f"nashcast development authority {secrets.token_hex(4)}")
    built = _begun(subject, subject, key.public_key(), days, now)
    built = built.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    built = built.add_extension(_usage(signs_certificates=True), critical=True)
    return built.sign(key, hashes.SHA256())


def certificate(
    signer: x509.Certificate,
    key: ec.EllipticCurvePrivateKey,
    name: str,
    public_key: ec.EllipticCurvePublicKey | ed25519.Ed25519PublicKey | rsa.RSAPublicKey,
    days: int,
    hosts: Sequence[str] = (),
    now: datetime | None = None,
) -> x509.Certificate:
    """The certificate of a broker at `hosts`; without hosts, of a client, not valid for a broker."""
    purpose = ExtendedKeyUsageOID.SERVER_AUTH if hosts else ExtendedKeyUsageOID.CLIENT_AUTH
    by = x509.AuthorityKeyIdentifier.from_issuer_public_key(key.public_key())
    built = _begun(signer.subject, _subject(name), public_key, days, now)
    built = built.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    built = built.add_extension(_usage(signs_certificates=False), critical=True)
    built = built.add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
    built = built.add_extension(by, critical=False)
    if hosts:
        built = built.add_extension(x509.SubjectAlternativeName([_alternative(host) for host in hosts]), critical=False)
    return built.sign(key, hashes.SHA256())


def signing_request(key: ec.EllipticCurvePrivateKey, name: str) -> x509.CertificateSigningRequest:
    return x509.CertificateSigningRequestBuilder().subject_name(_subject(name)).sign(key, hashes.SHA256())


def asked_for(pem: bytes) -> tuple[str, ec.EllipticCurvePublicKey | ed25519.Ed25519PublicKey | rsa.RSAPublicKey]:
    """The name and the public key in a request; ValueError says what is wrong with it."""
    asked = x509.load_pem_x509_csr(pem)
    if not asked.is_signature_valid:
        raise ValueError("its signature is wrong")
    names = [str(part.value) for part in asked.subject.get_attributes_for_oid(NameOID.COMMON_NAME)]
    if len(names) != 1:
        raise ValueError(f"it has {len(names)} names")
    key = asked.public_key()
    if isinstance(key, ec.EllipticCurvePublicKey) and isinstance(key.curve, ec.SECP256R1 | ec.SECP384R1):
        return names[0], key
    if isinstance(key, ed25519.Ed25519PublicKey) or (isinstance(key, rsa.RSAPublicKey) and key.key_size >= 2048):
        return names[0], key
    raise ValueError("its key is neither P-256, P-384, Ed25519 nor RSA of at least 2048 bits")


def hosts_of(found: x509.Certificate) -> tuple[str, ...]:
    try:
        named = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return ()
    return tuple(str(host) for kind in (x509.DNSName, x509.IPAddress) for host in named.get_values_for_type(kind))


def signature(key: ec.EllipticCurvePrivateKey, data: bytes) -> bytes:
    return key.sign(data, ec.ECDSA(hashes.SHA256()))


def signed_by(found: x509.Certificate, data: bytes, signed: bytes) -> bool:
    """Whether the data was signed with this certificate's key."""
    key = found.public_key()
    if not isinstance(key, ec.EllipticCurvePublicKey):
        return False
    try:
        key.verify(signed, data, ec.ECDSA(hashes.SHA256()))
    except InvalidSignature:
        return False
    return True


def fingerprint(found: x509.Certificate) -> str:
    return found.fingerprint(hashes.SHA256()).hex()


def _begun(
    issuer: x509.Name, subject: x509.Name, public_key, days: int, now: datetime | None
) -> x509.CertificateBuilder:
    now = now or datetime.now(UTC)
    built = x509.CertificateBuilder().issuer_name(issuer).subject_name(subject).public_key(public_key)
    built = built.serial_number(x509.random_serial_number())
    built = built.not_valid_before(now - _EARLIER).not_valid_after(now + timedelta(days=days))
    return built.add_extension(x509.SubjectKeyIdentifier.from_public_key(public_key), critical=False)


def _subject(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _usage(signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates, key_cert_sign=signs_certificates, crl_sign=signs_certificates,
        content_commitment=False, key_encipherment=False, data_encipherment=False, key_agreement=False,
        encipher_only=False, decipher_only=False,
    )  # fmt: skip


def _alternative(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        pass
    if not re.fullmatch(
        r"(?=.{1,253}$)[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?)*", host
    ):
        raise InvalidInput("host", f"{host!r:.80}", "Pass a host name or an IP address, without port or scheme.")
    return x509.DNSName(host)
