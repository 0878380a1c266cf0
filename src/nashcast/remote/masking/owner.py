"""The owner's side of masked games: which ones it takes part in, and its agent's terms under masks.

Whatever it receives, an agent with masks sends its terms under masks or not at all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from nashcast import validation as check
from nashcast.errors import InvalidInput
from nashcast.remote.masking.masks import (
    MaskedAgent,
    MaskRefused,
    SignedKey,
    new_key,
    refusal,
    sign_key,
    told,
    verify_key,
)
from nashcast.remote.masking.rule import LEAST, least_present, packed, why_thin
from nashcast.remote.wire.fixed_point import OutOfRange
from nashcast.remote.wire.format import MalformedMessage
from nashcast.remote.wire.messages import (
    Backward,
    Call,
    FinishGame,
    JoinGame,
    Masking,
    Receive,
    kind_of,
)

_KEY = 32  # bytes of a public key; its signature follows


@dataclass(frozen=True)
class MaskSettings:
    """An owner's settings for masked games.

    federation: its name.   seed: of the agent's nkey (SU…).   enrolled: trusted nkeys by name, see `read_enrolled`;
    not from the hub.   least: minimum number of agents in a game; a game may require more.
    """

    federation: str
    seed: str = field(repr=False)
    enrolled: Mapping[str, str]
    least: int = LEAST


class _Window(NamedTuple):
    """Targets and weights of a step's first game. Sums with other weights would be more equations about the same."""

    step: int
    common: bytes
    columns: dict[str, bytes]

    def holds(self, other: _Window) -> bool:
        same = other.common == self.common and other.columns.items() <= self.columns.items()
        return same or other.step != self.step


@dataclass
class _Game:
    """The present game."""

    step: int
    masking: Masking
    least: int
    window: _Window
    context: bytes


class OwnMasks:
    """One agent's masks. public_key: sent to its peers, with its signature; new for every run and start."""

    def __init__(self, name: str, settings: MaskSettings):
        if not isinstance(settings, MaskSettings):
            raise InvalidInput("masks", type(settings).__name__, "Pass MaskSettings(federation, seed, enrolled).")
        self._name, self._settings = name, settings
        self._least = check.integer("least", settings.least, min=LEAST)
        self._agent: MaskedAgent | None = None
        self._renew()
        try:
            verify_key(self._signed(name, self.public_key), settings.federation, settings.enrolled)
        except MaskRefused as error:
            remedy = "Pass the agent's own seed, and a list of enrolled agents with it in it."
            raise InvalidInput("masks", str(error).rstrip("."), remedy) from None

    def begin(self, after: int) -> None:
        """Begin a run, or resume it after a restart. after: the last step in which it may have sent terms before."""
        if self._agent is not None:
            self._renew()  # no mask of another run is used again
        own = self._settings
        self._agent = MaskedAgent(
            self._name, self._private, {}, federation=own.federation, least=self._least, after=after
        )
        self._known, self._game, self._window = {}, None, None
        self._step, self._sent = -1, {}

    def check(self, call: Call, step: int, run: int) -> None:
        """Raises MaskRefused, with the reason, for a move of a game that is not admitted."""
        if isinstance(call, JoinGame):
            self._game = None
            self._game = self._joined(call, step, run)
        elif self._game is None or self._game.step != step:
            raise refusal(f"{self._name!r}: this game was begun before the agent was started, with masks that are gone")
        elif isinstance(call, FinishGame) and not np.allclose(
            call.totals, self._game.masking.weights.sum(axis=1), rtol=1e-12, atol=0.0
        ):
            raise self._refusal("the total weights are not those of the weights that all are told")

    def after(self, call: Call, result: Any) -> Any:
        """The part of a move's result that may be sent. Received sums become part of the context of later rounds."""
        game = self._game
        assert game is not None
        if isinstance(call, Receive):
            game.context = told(*call.sums, before=game.context)
        elif isinstance(call, FinishGame):
            self._game = None
        elif isinstance(call, Backward):
            return self._masked(game, f"{kind_of(call)} {call[0]}", result)
        return result

    def _joined(self, call: JoinGame, step: int, run: int) -> _Game:
        (targets, own_weights, start, noisy), masking = call.invitation, call.masking
        if masking is None:
            raise MalformedMessage("join_game.masking: got nothing: the terms of this agent are sent under masks only")
        present, weights = masking.present, masking.weights
        lookback, y_dim = targets.shape
        least = max(self._least, least_present(lookback, y_dim, noisy))
        columns = {name: weights[:, place].tobytes() for place, name in enumerate(present)}
        common = told(targets, start, before=packed(run, int(noisy)))
        window = _Window(step, common, columns)
        if self._name not in columns:
            raise self._refusal("it is not among those present")
        if columns[self._name] != np.ascontiguousarray(own_weights).tobytes():
            raise self._refusal("its own weights are not those that all are told")
        if len(present) < least:
            raise self._refusal(f"a sum over {len(present)} agents hides too little; it takes {least}")
        if thin := why_thin(weights, least):
            raise self._refusal(thin)
        if self._window is not None and not self._window.holds(window):
            raise self._refusal("it was told other targets or weights in this step before")
        self._meet(masking)
        return _Game(step, masking, least, window, told(weights, before=packed(common, *present)))

    def _meet(self, masking: Masking) -> None:
        assert self._agent is not None
        for name, key in zip(masking.named, masking.keys, strict=True):
            if name == self._name and key != self.public_key:
                raise self._refusal("the hub takes another key for its own")
            if name != self._name and self._known.get(name) != key:
                signed = self._signed(name, key)
                self._agent.meet({name: verify_key(signed, self._settings.federation, self._settings.enrolled)})
                self._known[name] = key

    def _masked(self, game: _Game, round_name: str, result: Any) -> bytes:
        """The terms under the masks of this round; the same bytes if they were sent before."""
        assert self._agent is not None
        if game.step != self._step:
            self._step, self._sent = game.step, {}
        attempt, present = game.masking.attempt, game.masking.present
        for_what = (attempt, round_name, present, game.context)
        if for_what not in self._sent:
            terms = result if isinstance(result, tuple) else (result,)
            try:
                sent = self._agent.mask(
                    terms, game.step, attempt, round_name, frozenset(present), game.context, game.least
                )
            except OutOfRange as error:
                raise MaskRefused(str(error)) from None
            self._window = game.window if self._window is None or self._window.step != game.step else self._window
            self._sent[for_what] = sent
        return self._sent[for_what]

    def _renew(self) -> None:
        self._private = new_key()
        signed = sign_key(self._settings.federation, self._name, self._private, self._settings.seed)
        self.public_key = signed.public_key + signed.signature

    def _signed(self, name: str, key: bytes) -> SignedKey:
        return SignedKey(name, key[:_KEY], key[_KEY:])

    def _refusal(self, reason: str) -> MaskRefused:
        return refusal(f"{self._name!r}: {reason}")
