"""The owner's side of masks in the joint game: an agent's terms are sent under masks or not at all.

A row has one round for the forecast, and one more for each label whose sums are not known yet. All rounds of a row are
over the same agents; if one of them is lost, the row continues without its sums. There is no second attempt: two sums
over almost the same agents would reveal the difference.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nashcast import validation as check
from nashcast.remote.masking.masks import MaskedAgent, MaskRefused, SignedKey, new_key, refusal, sign_key, verify_key
from nashcast.remote.masking.owner import MaskSettings
from nashcast.remote.masking.rule import LEAST
from nashcast.remote.wire.fixed_point import OutOfRange

_KEY = 32  # bytes of a public key; its signature follows


class JointMasks:
    """One agent's masks. public_key: sent to its peers, with its signature; new for every start and run."""

    def __init__(self, name: str, settings: MaskSettings):
        self._name, self._settings = name, settings
        check.integer("least_present", settings.least, min=LEAST)
        self.known: dict[str, bytes] = {}  # keys as published
        self.renew(-1)
        signed = SignedKey(name, self.public_key[:_KEY], self.public_key[_KEY:])
        verify_key(signed, settings.federation, settings.enrolled)

    def renew(self, after: int) -> None:
        """Begin a run, or resume it after a restart. after: the last row in which it may have sent terms before."""
        private, own = new_key(), self._settings
        signed = sign_key(own.federation, self._name, private, own.seed)
        self.public_key = signed.public_key + signed.signature
        self._agent = MaskedAgent(
            self._name, private, {}, federation=own.federation, least=own.least, attempts=1, after=after
        )
        self._met: dict[str, bytes] = {}

    def meet(self, names: Sequence[str], keys: Sequence[bytes]) -> None:
        """Store published keys. Each is verified at its first use."""
        self.known |= dict(zip(names, keys, strict=True))

    def mask(
        self, terms: Sequence[np.ndarray], row: int, round_name: str, present: frozenset[str], told: bytes
    ) -> bytes:
        """These terms under the masks of one round. told: a digest of all published events. Raises MaskRefused."""
        if self.known.get(self._name, self.public_key) != self.public_key:
            raise refusal(f"{self._name!r}: another key was published as its own")
        for name in sorted(present - {self._name}):
            key = self.known.get(name, b"")
            if self._met.get(name) != key:
                signed = SignedKey(name, key[:_KEY], key[_KEY:])
                self._agent.meet({name: verify_key(signed, self._settings.federation, self._settings.enrolled)})
                self._met[name] = key
        try:
            return self._agent.mask(terms, row, 0, round_name, present, told)
        except OutOfRange as error:
            raise MaskRefused(str(error)) from None
