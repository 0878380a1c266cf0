"""TLS to the broker, from files that may be renewed while a program runs."""

from __future__ import annotations

import logging
import ssl
from pathlib import Path

from nashcast.errors import InvalidInput, NashcastError
from nashcast.remote.broker.certificates.certs import AUTHORITY, certificate_path, key_path
from nashcast.remote.broker.certificates.expiry import ExpiryWatch, check_valid
from nashcast.remote.broker.files import check_private

log = logging.getLogger("nashcast.remote")


def tls_context(folder: str | Path, name: str) -> ssl.SSLContext:
    """TLS with the federation's own authority and the client's own certificate."""
    authority, mine, key = certificate_path(folder, AUTHORITY), certificate_path(folder, name), key_path(folder, name)
    for path in (authority, mine, key):
        if not path.is_file():
            raise InvalidInput(
                "tls", f"no file {path}", f"Pass a folder with {authority.name}, {mine.name}, {key.name}."
            )
    check_private(key)
    try:
        context = ssl.create_default_context(ssl.Purpose.SERVER_AUTH, cafile=str(authority))
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.load_cert_chain(str(mine), str(key))
    except (ssl.SSLError, OSError) as error:
        got = f"{folder}, whose {mine.name} cannot be used ({error.strerror or error})"
        raise InvalidInput("tls", got, "Its certificate and key must belong together: ask for both again.") from None
    return context


class Credentials:
    """A client's files for TLS. When one of them changes, the next connection uses a new context.

    Unusable files raise an error at first; later they leave the context unchanged.
    """

    def __init__(self, folder: str | Path, name: str):
        self._folder, self._name = Path(folder).expanduser(), name
        self._seen = self._state()
        self.context = tls_context(self._folder, name)
        check_valid(self._folder, name)
        self._expiry = ExpiryWatch(self._folder, (name, AUTHORITY))
        self._expiry.tell()

    def refresh(self) -> bool:
        """Read changed files again. Returns whether the context has changed."""
        self._expiry.tell()
        seen = self._state()
        if seen == self._seen:
            return False
        self._seen = seen
        try:
            self.context = tls_context(self._folder, self._name)
        except NashcastError as error:
            log.warning("%s: the files for TLS have changed and are not used: %s", self._name, error)
            return False
        log.info("%s: certificates of %s read again", self._name, self._folder)
        return True

    def _state(self) -> list[tuple[int, int]]:
        found = []
        for path in (*(certificate_path(self._folder, n) for n in (AUTHORITY, self._name)),
                     key_path(self._folder, self._name)):  # fmt: skip
            try:
                about = path.stat()
                found.append((about.st_mtime_ns, about.st_size))
            except OSError:
                found.append((0, 0))
        return found
