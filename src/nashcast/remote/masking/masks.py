"""Secure aggregation: agents mask their terms in pairs, so that the hub sees only the sum.

Every two agents share a secret (X25519, HKDF-SHA256). From it both draw the same numbers (HMAC-SHA256, ChaCha20) for
each round; the agent with the smaller name adds them to its terms, the other subtracts them, modulo 2^128: in the sum
over all agents present they cancel exactly. Guarantees and limits: docs/explanation/secure-aggregation.md.
"""

from __future__ import annotations

import base64
import hmac
import logging
import os
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from functools import cache
from hashlib import sha256
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from nashcast import validation as check
from nashcast.errors import InvalidInput, NashcastError
from nashcast.remote.broker.certificates.keys import check_public_key
from nashcast.remote.broker.files import needed
from nashcast.remote.masking.rule import ATTEMPTS, LEAST, Ledger, packed
from nashcast.remote.wire.fixed_point import OutOfRange, add_up, decode, encode

VERSION = 1
_HAZMAT = "cryptography.hazmat.primitives"
_needed = cache(needed)
_TAG = 16  # bytes before the masked numbers; they identify the round
log = logging.getLogger(__name__)


class MaskRefused(NashcastError):
    """An agent does not send: the request could reveal its own terms, or a peer's key is not verified."""


class MasksDoNotCancel(NashcastError):
    """The hub's messages are not one from each agent present, all of the same round: their sum has no meaning.

    odd: agents whose messages belong to another round than most, if that is the fault.
    """

    def __init__(self, text: str, odd: Sequence[str] = ()):
        super().__init__(text)
        self.odd = tuple(odd)


class SignedKey(NamedTuple):
    """An agent's public X25519 key, signed by the nkey it is enrolled with."""

    name: str
    public_key: bytes
    signature: bytes


def new_key() -> bytes:
    """A private X25519 key: new at each start and never stored, so that no mask is used twice."""
    return os.urandom(32)


def sign_key(federation: str, name: str, private_key: bytes, seed: str) -> SignedKey:
    """An agent's public key, signed for its peers. seed: of its nkey (SU…)."""
    nkeys = _needed("nkeys")
    try:
        identity = nkeys.from_seed(bytearray(seed.encode()))
    except nkeys.NkeysError as error:
        raise InvalidInput("seed", str(error), "Pass the agent's nkey seed, SU….") from None
    public = _private(private_key).public_key().public_bytes_raw()
    return SignedKey(name, public, identity.sign(_statement(federation, name, public)))


def verify_key(key: SignedKey, federation: str, enrolled: Mapping[str, str]) -> bytes:
    """The public key in it, if the nkey enrolled under this name has signed it for this federation."""
    if key.name not in enrolled:
        raise refusal(f"the key of {key.name!r}: nobody of that name is enrolled")
    identity = _ed25519(key.name, enrolled[key.name])
    try:
        identity.verify(bytes(key.signature), _statement(federation, key.name, bytes(key.public_key)))
    except _needed("cryptography.exceptions").InvalidSignature:
        raise refusal(f"the key of {key.name!r}: it is not signed by the nkey enrolled under that name") from None
    return bytes(key.public_key)


def read_enrolled(path: str | Path) -> dict[str, str]:
    """The enrolled agents' public nkeys from the owner's TOML file: a table [agents], name = "U…"."""
    try:
        agents = tomllib.loads(Path(path).read_text("utf-8"))["agents"]
        enrolled = {name: str(nkey) for name, nkey in agents.items()}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, KeyError, AttributeError) as error:
        remedy = 'Pass a TOML file with a table [agents] of lines name = "U…".'
        raise InvalidInput("enrolled", f"{path}: {type(error).__name__}: {error}", remedy) from None
    if len({_ed25519(name, nkey).public_bytes_raw() for name, nkey in enrolled.items()}) < len(enrolled):
        raise InvalidInput("enrolled", f"{path}: one nkey under two names", "Give each agent its own nkey.")
    return enrolled


def told(*arrays: np.ndarray, before: bytes = b"") -> bytes:
    """A digest of what an agent has received in this attempt. As `context` it ensures that all received the same."""
    parts = [packed(str(a.shape), np.ascontiguousarray(a, dtype="<f8").tobytes()) for a in arrays]
    return sha256(packed(before, *parts)).digest()


class MaskedAgent:
    """One agent's side. private_key: from `new_key`.   peers: the others' public keys, each from `verify_key`.

    least: minimum number of agents in a sum.   attempts: maximum number per step.
    after: the last step in which it may have sent before this start; it sends only in later ones.
    """

    def __init__(
        self, name: str, private_key: bytes, peers: Mapping[str, bytes], *, federation: str, least: int = LEAST,
        attempts: int = ATTEMPTS, after: int = -1,
    ):  # fmt: skip
        self._name, self._federation, self._private = name, federation, _private(private_key)
        self._pairs: dict[str, bytes] = {}
        self._ledger = Ledger(least, attempts, after)
        self.meet(peers)

    def meet(self, peers: Mapping[str, bytes]) -> None:
        """Agree on secrets with these peers, which are new or have a new key."""
        own = self._private.public_key().public_bytes_raw()
        key_of = _needed(f"{_HAZMAT}.asymmetric.x25519").X25519PublicKey.from_public_bytes
        for peer, public in peers.items():
            try:
                secret = self._private.exchange(key_of(bytes(public)))
            except ValueError:
                raise refusal(f"the key of {peer!r}: it is no X25519 key that agrees on a secret") from None
            (first, key), (second, other_key) = sorted([(self._name, own), (peer, bytes(public))])
            bound_to = packed("nashcast masks", VERSION, self._federation, first, second, key, other_key)
            self._pairs[peer] = _derived(secret, bound_to)

    def mask(
        self, arrays: Sequence[np.ndarray], step: int, attempt: int, round_name: str, present: Set[str],
        context: bytes = b"", least: int = 0,
    ) -> bytes:  # fmt: skip
        """These terms under the masks of one round, for the hub.

        step: by the agent's own count.   round_name: from its own code, not from the hub.   attempt: 0, 1, ….
        present: all agents of the sum, itself included.   context: a digest that must be equal for all, see `told`.
        least: minimum number of agents of this game, if greater than the agent's own.
        """
        step, attempt = check.integer("step", step, min=0), check.integer("attempt", attempt, min=0)
        what = f"{self._name!r}: step {step}, attempt {attempt}, {round_name}"
        try:
            numbers = [encode(a) for a in arrays]
        except OutOfRange as error:
            log.warning("refused: %s: %s", what, error)
            raise
        strangers = ", ".join(sorted(present - self._pairs.keys() - {self._name}))
        reason = f"it has no verified key of {strangers}" if strangers else ""
        reason = reason or ("" if self._name in present else "it is not among those present")
        if reason := reason or self._ledger.admit(step, attempt, round_name, frozenset(present), least):
            raise refusal(f"{what}: {reason}")
        alike = packed(*sorted(present)), packed(*(str(np.shape(a)) for a in arrays)), context
        label = sha256(packed(VERSION, self._federation, step, attempt, round_name, *alike)).digest()
        peers = sorted(present - {self._name})
        # The last number is 1 from each agent: its sum shows the hub whether all masks have cancelled.
        terms = np.concatenate([*numbers, np.array([[1, 0]], dtype=np.uint64)])
        nonce = attempt.to_bytes(4, "little") + step.to_bytes(8, "little")
        streams = (_keystream(hmac.digest(self._pairs[peer], label, "sha256"), nonce, terms.nbytes) for peer in peers)
        masked = np.frombuffer(bytearray().join([terms.tobytes(), *streams]), dtype="<u8").reshape(-1, len(terms), 2)
        return label[:_TAG] + add_up(masked, [False, *(peer < self._name for peer in peers)]).tobytes()


def masked_size(shapes: Sequence[tuple[int, ...]]) -> int:
    """The bytes of one message with terms of these shapes."""
    return _TAG + 16 * (sum(map(prod, shapes)) + 1)


def sum_masked(messages: Mapping[str, bytes], shapes: Sequence[tuple[int, ...]], present: Set[str]) -> list[np.ndarray]:
    """The hub's side: the sums of the agents' arrays of these shapes, from one message of each agent present."""
    sizes = [prod(shape) for shape in shapes]
    if not present or messages.keys() != present:
        astray = ", ".join(sorted(messages.keys() ^ present))
        raise MasksDoNotCancel(f"the sum needs one message from each agent present; look at {astray}.")
    usual = Counter(message[:_TAG] for message in messages.values()).most_common(1)[0][0]
    odd = sorted(name for name, sent in messages.items() if sent[:_TAG] != usual or len(sent) != masked_size(shapes))
    if odd:
        raise MasksDoNotCancel(f"not of the round, shapes, agents and context of the others: {', '.join(odd)}.", odd)
    joined = bytearray().join(message[_TAG:] for message in messages.values())
    limbs = add_up(np.frombuffer(joined, dtype="<u8").reshape(len(messages), -1, 2))
    if limbs[-1].tolist() != [len(present), 0]:
        raise MasksDoNotCancel("the agents' masks do not cancel: some of them do not hold the keys the others think.")
    sums = np.split(decode(limbs[:-1]), np.cumsum(sizes)[:-1])
    return [part.reshape(shape) for part, shape in zip(sums, shapes, strict=True)]


def refusal(what: str) -> MaskRefused:
    log.warning("refused: %s", what)
    return MaskRefused(f"{what}.")


def _statement(federation: str, name: str, public_key: bytes) -> bytes:
    # A broker chooses the text that agents sign at connection. 0xFF occurs in no text: it cannot obtain this signature.
    return b"\xff" + packed("nashcast mask key", VERSION, federation, name, public_key)


def _ed25519(name: str, nkey: str) -> Any:
    # A public nkey is a prefix, 32 bytes and a checksum in base 32.
    raw = base64.b32decode(check_public_key(f"enrolled[{name!r}]", nkey))[1:33]
    return _needed(f"{_HAZMAT}.asymmetric.ed25519").Ed25519PublicKey.from_public_bytes(raw)


def _private(key: bytes) -> Any:
    if len(key) != 32:
        raise InvalidInput("private_key", f"{len(key)} bytes", "Pass the 32 bytes of new_key().")
    return _needed(f"{_HAZMAT}.asymmetric.x25519").X25519PrivateKey.from_private_bytes(bytes(key))


def _derived(secret: bytes, bound_to: bytes) -> bytes:
    sha = _needed(f"{_HAZMAT}.hashes").SHA256()
    return _needed(f"{_HAZMAT}.kdf.hkdf").HKDF(algorithm=sha, length=32, salt=None, info=bound_to).derive(secret)


def _keystream(key: bytes, nonce: bytes, length: int) -> bytes:
    ciphers = _needed(f"{_HAZMAT}.ciphers")
    chacha = ciphers.algorithms.ChaCha20(key, bytes(4) + nonce)  # from block 0 on
    return ciphers.Cipher(chacha, mode=None).encryptor().update(bytes(length))
