"""Bearer tokens with scopes read, write and admin. The file stores hashes; a token is shown once, when created."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import secrets
import time
from collections.abc import Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from nashcast.errors import InvalidInput

READ, WRITE, ADMIN = "read", "write", "admin"
SCOPES = (READ, WRITE, ADMIN)
PREFIX = "nashcast_"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._ -]{0,62}")
# Seconds between two checks of the file for changes.
_POLL_S = 0.5


class Token(NamedTuple):
    """hash: SHA-256 of the token, whose 256 random bits need no slower hash. expires: seconds since 1970, or None."""

    name: str
    hash: str
    scopes: tuple[str, ...]
    created: float
    expires: float | None
    revoked: float | None = None

    def allows(self, scope: str) -> bool:
        return scope in self.scopes or ADMIN in self.scopes

    def state(self, now: float) -> str:
        if self.revoked is not None:
            return "revoked"
        return "expired" if self.expires is not None and now >= self.expires else "valid"


class TokenFile:
    """The token file; changes of the file take effect within a second."""

    def __init__(self, path: str | Path):
        self.path = Path(path)
        self._stamp: tuple | None = None
        self._checked = 0.0
        self._by_hash: dict[str, Token] = {}

    def all(self) -> list[Token]:
        self._read()
        return list(self._by_hash.values())

    def find(self, secret: str) -> Token | None:
        """The token, valid or not."""
        if time.monotonic() - self._checked > _POLL_S:
            self._read()
        return self._by_hash.get(_hash(secret))

    def still(self, token: Token) -> Token | None:
        """The present state of the token in the file."""
        if time.monotonic() - self._checked > _POLL_S:
            self._read()
        return self._by_hash.get(token.hash)

    def add(self, name: str, scopes: Sequence[str], days: float | None = None) -> str:
        """Create a token and return it; only its hash is stored."""
        if _NAME.fullmatch(name) is None:
            remedy = "Use 1 to 63 letters, digits, spaces, dots, dashes and underscores."
            raise InvalidInput("name", repr(name), remedy)
        if not scopes or not set(scopes) <= set(SCOPES):
            raise InvalidInput("scope", ", ".join(scopes) or "nothing", f"Pass some of {', '.join(SCOPES)}.")
        if days is not None and not 0 < days < 36_500:
            raise InvalidInput("days", f"{days:g}", "Pass a number between 0 and 36500.")
        secret, now = PREFIX + secrets.token_urlsafe(32), time.time()
        ordered = tuple(scope for scope in SCOPES if scope in scopes)
        with self._locked():
            tokens = self._fresh()
            if any(token.name == name and token.revoked is None for token in tokens):
                raise InvalidInput("name", f"{name!r}, which a token has", "Choose another, or revoke that one first.")
            tokens.append(Token(name, _hash(secret), ordered, now, None if days is None else now + days * 86_400))
            self._write(tokens)
        return secret

    def revoke(self, name: str) -> None:
        with self._locked():
            tokens, now = self._fresh(), time.time()
            if not any(token.name == name and token.revoked is None for token in tokens):
                raise InvalidInput("name", f"{name!r}, which no token has", "nashcast serve token list shows them.")
            self._write(
                [
                    token._replace(revoked=now) if token.name == name and token.revoked is None else token
                    for token in tokens
                ]
            )

    def _fresh(self) -> list[Token]:
        """The present tokens, re-read from the file."""
        self._stamp = None
        return self.all()

    @contextmanager
    def _locked(self):
        """Lock the file against concurrent changes by other processes."""
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            handle = os.open(self.path.with_name(self.path.name + ".lock"), os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise self._refused(error.strerror or str(error)) from None
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            os.close(handle)

    def _read(self) -> None:
        self._checked = time.monotonic()
        try:
            about = self.path.stat()
        except FileNotFoundError:
            self._stamp, self._by_hash = None, {}
            return
        except OSError as error:
            raise self._refused(error.strerror or str(error)) from None
        stamp = (about.st_mtime_ns, about.st_size, about.st_ino)
        if stamp == self._stamp:
            return
        try:
            document = json.loads(self.path.read_text())
            rows = [Token(**{**row, "scopes": tuple(row["scopes"])}) for row in document["tokens"]]
        except OSError as error:
            raise self._refused(error.strerror or str(error)) from None
        except (ValueError, KeyError, TypeError):
            raise self._refused("it is no token file") from None
        self._stamp, self._by_hash = stamp, {token.hash: token for token in rows}

    def _write(self, tokens: list[Token]) -> None:
        text = json.dumps(
            {"format": "nashcast tokens", "version": 1, "tokens": [t._asdict() for t in tokens]}, indent=1
        )
        partial = self.path.with_name(self.path.name + ".partial")
        try:
            # Readable only by its owner from the start.
            handle = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(handle, "w") as file:
                file.write(text + "\n")
                file.flush()
                os.fsync(file.fileno())
            partial.replace(self.path)
        except OSError as error:
            raise self._refused(error.strerror or str(error)) from None
        self._stamp = None

    def _refused(self, why: str) -> InvalidInput:
        return InvalidInput("token file", f"{self.path} ({why})", "Pass a file that can be read and written.")


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).hexdigest()


def shown_time(seconds: float | None) -> str:
    return "–" if seconds is None else datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M")
