"""Identities at the broker: nkeys. The seed (SU…) never leaves its owner; the public key (U…) is enrolled."""

from __future__ import annotations

import base64
import binascii
import os
from pathlib import Path

from nashcast.errors import InvalidInput
from nashcast.remote.broker.files import check_private, needed, write_whole


def make_seed(path: str | Path, *, overwrite: bool = False) -> str:
    """A new identity: write its seed to a private file and return its public key."""
    nkeys = needed("nkeys")
    seed = nkeys.encode_seed(os.urandom(32), nkeys.PREFIX_BYTE_USER).decode()
    write_whole(Path(path).expanduser(), seed + "\n", private=True, overwrite=overwrite)
    return public_key(seed)


def read_seed(path: str | Path) -> str:
    """The seed in a file that only its owner can read."""
    path = Path(path).expanduser()
    if not path.is_file():
        raise InvalidInput("key", f"no file {path}", f"Make one: nashcast enroll request NAME --key {path}")
    check_private(path)
    try:
        seed = path.read_text().strip()
        public_key(seed)
    except (OSError, UnicodeDecodeError, InvalidInput):
        remedy = "Pass the file that `nashcast enroll request` wrote."
        raise InvalidInput("key", f"{path}, which is no seed of a user (SU…)", remedy) from None
    return seed


def public_key(seed: str) -> str:
    """The public key of a seed."""
    nkeys = needed("nkeys")
    raw = _decoded(seed)
    # The first two bytes mark a user's seed: SU in base 32.
    if len(raw) != 36 or not seed.startswith("SU") or raw[-2:] != nkeys.crc16_checksum(raw[:-2]):
        raise InvalidInput("seed", "something else", "Pass a user's seed: SU and 56 more characters.")
    return nkeys.from_seed(bytearray(seed.encode())).public_key.decode()


def check_public_key(argument: str, key: str) -> str:
    """The key, if it is a user's public nkey and its checksum is right."""
    nkeys = needed("nkeys")
    if isinstance(key, str) and key.startswith("S"):
        # The seed is not part of the message: messages end up in logs.
        remedy = "A seed is secret and known to others now: make another identity and pass its public key, U…."
        raise InvalidInput(argument, "what looks like a seed (S…)", remedy)
    raw = _decoded(key)
    if len(raw) != 35 or raw[0] != nkeys.PREFIX_BYTE_USER or raw[-2:] != nkeys.crc16_checksum(raw[:-2]):
        remedy = "Pass what `nashcast enroll request` printed: U and 55 more characters."
        raise InvalidInput(argument, f"{key!r:.80}", remedy)
    return key


def _decoded(text: str) -> bytes:
    try:
        raw = text.encode("ascii")
        return base64.b32decode(raw + b"=" * (-len(raw) % 8))
    except (AttributeError, UnicodeEncodeError, binascii.Error):
        return b""
