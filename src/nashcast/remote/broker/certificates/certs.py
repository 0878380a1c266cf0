"""Development certificates: an authority of the federation's own, the broker's certificate and those of its clients.

A folder has `ca.pem`, `broker.pem`, `hub.pem` and the agents' certificates by name, each with the key that was made
with it, as `NAME-key.pem`. It is better to make an agent's key at its owner's: `request` there, `sign` here.

`ca.pem` may have several authorities: the first one signs, all are trusted. `rotate` puts a new one in front; when
every party has the new file and a certificate from the new authority, `retire` drops the old ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from nashcast.errors import InvalidInput
from nashcast.remote.broker.files import locked, make_folder, needed, write_whole
from nashcast.remote.broker.names import HUB, agent_name

AUTHORITY, BROKER = "ca", "broker"
LOCAL = ("localhost", "127.0.0.1", "::1")
DAYS, AUTHORITY_DAYS = 365, 3650
_REQUEST = "Pass the .csr file that `nashcast certs request` wrote."


class Certificate(NamedTuple):
    """hosts: names and addresses for which a broker's certificate is valid.   fingerprint: SHA-256 of it."""

    name: str
    path: Path
    hosts: tuple[str, ...]
    begins: datetime
    expires: datetime
    fingerprint: str

    @property
    def expired(self) -> bool:
        return self.expires <= datetime.now(UTC)


def certificate_path(folder: str | Path, name: str) -> Path:
    return Path(folder).expanduser() / f"{name}.pem"


def key_path(folder: str | Path, name: str) -> Path:
    return Path(folder).expanduser() / f"{name}-key.pem"


def make(
    folder: str | Path,
    hosts: Sequence[str] | None = None,
    *,
    days: int = DAYS,
    overwrite: bool = False,
    now: datetime | None = None,
) -> list[Certificate]:
    """Make an authority unless there is one, and the broker's and the hub's certificates from it.

    hosts: of the broker, for clients; by default those of the certificate that is renewed, else this machine's.
    overwrite: renew the broker's and the hub's; the authority is kept in any case, since a new one would lock every
    agent out: see `rotate`.   now: the time, if not the clock's.
    """
    folder = Path(folder).expanduser()
    if hosts is None:
        renewed = overwrite and certificate_path(folder, BROKER).exists()
        hosts = (read_certificate(folder, BROKER).hosts if renewed else ()) or LOCAL
    if not hosts:
        raise InvalidInput("host", "none", "Pass the broker's host names or IP addresses.")
    if not overwrite:
        _refuse_existing(folder, BROKER, HUB)
    if not certificate_path(folder, AUTHORITY).exists() and not key_path(folder, AUTHORITY).exists():
        key, made = _new_authority(max(_days(days), AUTHORITY_DAYS), now)
        write_whole(key_path(folder, AUTHORITY), key, private=True)
        write_whole(certificate_path(folder, AUTHORITY), made)
    _issue(folder, BROKER, days, overwrite, hosts, now)
    _issue(folder, HUB, days, overwrite, now=now)
    return [read_certificate(folder, name) for name in (AUTHORITY, BROKER, HUB)]


def make_agent(
    folder: str | Path, name: str, *, days: int = DAYS, overwrite: bool = False, now: datetime | None = None
) -> Certificate:
    """Make an agent's certificate and its key here, for experiments on one machine."""
    _issue(Path(folder).expanduser(), _client_name(name), days, overwrite, now=now)
    return read_certificate(folder, name)


def rotate(folder: str | Path, *, days: int = AUTHORITY_DAYS, now: datetime | None = None) -> list[Certificate]:
    """Put a new authority in front of the old ones, which stay trusted. Existing certificates are unchanged."""
    folder = Path(folder).expanduser()
    with locked(make_folder(folder)):
        path = certificate_path(folder, AUTHORITY)
        _loaded(path)
        before = path.read_bytes()
        key, made = _new_authority(_days(days), now)
        # The certificate first: without it, no party would trust what the new key signs.
        write_whole(path, made + before, overwrite=True)
        write_whole(key_path(folder, AUTHORITY), key, private=True, overwrite=True)
    return authorities(folder)


def retire(folder: str | Path) -> list[Certificate]:
    """Drop all authorities but the one that signs. Returns those that were dropped."""
    folder = Path(folder).expanduser()
    with locked(make_folder(folder)):
        first, *others = _loaded_all(certificate_path(folder, AUTHORITY))
        for each in read_all(folder):
            issued = _loaded(each.path).issuer
            if each.name != AUTHORITY and any(issued == old.subject for old in others):
                remedy = f"Renew it from the new one first: {renewal(each.path.parent, each.name)}"
                raise InvalidInput("authority", f"{each.path}, which an old one signed", remedy)
        dropped = authorities(folder)[1:]
        write_whole(certificate_path(folder, AUTHORITY), _x509().certificate_pem(first), overwrite=True)
    return dropped


def authorities(folder: str | Path) -> list[Certificate]:
    """All trusted authorities of a folder; the signing one comes first."""
    path = certificate_path(folder, AUTHORITY)
    return [_about(AUTHORITY, path, found) for found in _loaded_all(path)]


def renewal(folder: str | Path, name: str) -> str:
    """The command that renews a certificate."""
    if name == AUTHORITY:
        return f"nashcast certs rotate {folder}"
    if name in (BROKER, HUB):
        return f"nashcast certs {folder} --overwrite"
    return f"nashcast certs request {name} --folder {folder} --overwrite, and have it signed: nashcast certs sign"


def request(name: str, folder: str | Path = ".", *, overwrite: bool = False) -> tuple[Path, Path]:
    """At an agent's owner: make a key, which stays there, and a certificate request, which is sent to be signed."""
    x509, folder, name = _x509(), Path(folder).expanduser(), _client_name(name)
    path = folder / f"{name}.csr"
    if path.exists() and not overwrite:
        raise InvalidInput("file", f"{path}, which exists", "It is kept: pass --overwrite to replace it and its key.")
    key = x509.new_key()
    write_whole(key_path(folder, name), x509.key_pem(key), private=True, overwrite=overwrite)
    write_whole(path, x509.certificate_pem(x509.signing_request(key, name)), overwrite=overwrite)
    return key_path(folder, name), path


def sign(folder: str | Path, wanted: str | Path, *, days: int = DAYS, overwrite: bool = False) -> Certificate:
    """At the authority: sign a client's certificate for the name and public key in a request; the rest is ignored."""
    wanted = Path(wanted).expanduser()
    try:
        pem = wanted.read_bytes()
    except OSError as error:
        raise InvalidInput("request", f"{wanted}: {error.strerror}", _REQUEST) from None
    return sign_pem(folder, pem, str(wanted), days=days, overwrite=overwrite)


def sign_pem(
    folder: str | Path, pem: bytes, source: str, *, name: str | None = None, days: int = DAYS, overwrite: bool = False
) -> Certificate:
    """`sign` for a request in memory. source: its name in errors.   name: the only name that it may ask for."""
    try:
        asked, public_key = _x509().asked_for(pem)
    except ValueError as error:
        raise InvalidInput("request", f"{source}, which cannot be signed: {error}", _REQUEST) from None
    if name not in (None, asked):
        raise InvalidInput("request", f"{source} for {asked!r:.80}", f"Ask for {name!r}.")
    folder = Path(folder).expanduser()
    _certify(folder, _client_name(asked), public_key, days, overwrite)
    return read_certificate(folder, asked)


def authority_pem(folder: str | Path) -> bytes:
    """The bytes of `ca.pem`, after a check that it has a certificate."""
    path = certificate_path(folder, AUTHORITY)
    _loaded(path)
    return path.read_bytes()


def signer(folder: str | Path) -> tuple[Any, Any]:
    """The authority's certificate and its key."""
    folder = Path(folder).expanduser()
    authority = _loaded(certificate_path(folder, AUTHORITY))
    try:
        return authority, _x509().key_of(authority, key_path(folder, AUTHORITY).read_bytes())
    except (OSError, ValueError, TypeError):
        remedy = "Certificates are made where the authority's key is: in the folder that `nashcast certs FOLDER` wrote."
        raise InvalidInput("folder", f"{folder}, without the key of its {AUTHORITY}.pem", remedy) from None


def read_certificate(folder: str | Path, name: str) -> Certificate:
    """The content of a certificate."""
    path = certificate_path(folder, name)
    return _about(name, path, _loaded(path))


def read_all(folder: str | Path) -> list[Certificate]:
    """Every certificate in a folder, the authority first."""
    paths = Path(folder).expanduser().glob("*.pem")
    names = {path.stem for path in paths if not path.stem.endswith("-key")} - {AUTHORITY}
    return [read_certificate(folder, name) for name in (AUTHORITY, *sorted(names))]


def _about(name: str, path: Path, found: Any) -> Certificate:
    x509 = _x509()
    begins, expires = found.not_valid_before_utc, found.not_valid_after_utc
    return Certificate(name, path, x509.hosts_of(found), begins, expires, x509.fingerprint(found))


def _new_authority(days: int, now: datetime | None) -> tuple[bytes, bytes]:
    x509 = _x509()
    key = x509.new_key()
    return x509.key_pem(key), x509.certificate_pem(x509.authority(key, days, now))


def _issue(
    folder: Path, name: str, days: int, overwrite: bool, hosts: Sequence[str] = (), now: datetime | None = None
) -> None:
    """Make a certificate and its new key."""
    x509 = _x509()
    if not overwrite:
        _refuse_existing(folder, name)
    key = x509.new_key()
    # The certificate first: it may be refused, and a key alone would block the next attempt.
    _certify(folder, name, key.public_key(), days, overwrite, hosts, now)
    write_whole(key_path(folder, name), x509.key_pem(key), private=True, overwrite=overwrite)


def _certify(
    folder: Path,
    name: str,
    public_key: Any,
    days: int,
    overwrite: bool,
    hosts: Sequence[str] = (),
    now: datetime | None = None,
) -> None:
    x509, days = _x509(), _days(days)
    authority, key = signer(folder)
    left = (authority.not_valid_after_utc - (now or datetime.now(UTC))).days
    if days > left:
        remedy = f"Pass at most {left}." if left > 0 else f"Make a new one: {renewal(folder, AUTHORITY)}"
        raise InvalidInput("days", f"{days}, but the authority has {max(left, 0)} left", remedy)
    made = x509.certificate(authority, key, name, public_key, days, hosts, now)
    write_whole(certificate_path(folder, name), x509.certificate_pem(made), overwrite=overwrite)


def _loaded(path: Path) -> Any:
    return _loaded_all(path)[0]


def _loaded_all(path: Path) -> list[Any]:
    module = needed("cryptography.x509")
    try:
        return module.load_pem_x509_certificates(path.read_bytes())
    except OSError as error:
        remedy = "Make it: nashcast certs FOLDER."
        raise InvalidInput("certificate", f"{path}: {error.strerror}", remedy) from None
    except ValueError:
        raise InvalidInput("certificate", f"{path}, which is none", "It is damaged: make it again.") from None


def _refuse_existing(folder: Path, *names: str) -> None:
    there = [p.name for name in names for p in (certificate_path(folder, name), key_path(folder, name)) if p.exists()]
    if there:
        remedy = "They are kept: pass --overwrite to replace them, or choose another folder."
        raise InvalidInput("folder", f"{folder} with {', '.join(there)}", remedy)


def _client_name(name: str) -> str:
    name = agent_name(name)
    if name.casefold() in (AUTHORITY, BROKER) or name.casefold().endswith("-key"):
        raise InvalidInput("agent", repr(name), "Certificates use that file name themselves: choose another.")
    return name


def _days(days: int) -> int:
    if isinstance(days, bool) or not isinstance(days, int) or not 1 <= days <= 36500:
        raise InvalidInput("days", repr(days), "Pass a whole number from 1 to 36500.")
    return days


def _x509() -> Any:
    """The module that makes certificates; raises if the package it needs is missing."""
    needed("cryptography")
    from nashcast.remote.broker.certificates import x509

    return x509
