"""Checks each message of the joint game. A message that fails raises `MalformedMessage`, with the reason."""

from __future__ import annotations

from math import isfinite

import numpy as np

from nashcast.agents.bank import DECODERS
from nashcast.agents.joint.public_features import PUBLIC_FEATURES
from nashcast.agents.season import LONGEST_SEASON
from nashcast.errors import InvalidInput
from nashcast.remote.masking.masks import masked_size
from nashcast.remote.wire.checks import NAME
from nashcast.remote.wire.format import MalformedMessage
from nashcast.remote.wire.joint.joint_messages import ASKS, Keys, Opening, Own, Said, Told, Traits
from nashcast.remote.wire.messages import LONGEST_REASON
from nashcast.remote.wire.number_limits import tame
from nashcast.validation import shape_text

# Limits on what an opening allocates before any data arrives.
MOST_AGENTS, MOST_INPUTS, MOST_TARGETS, MOST_HORIZONS, MOST_VARIANTS, MOST_EXPERTS = 4096, 4096, 256, 200, 32, 1024
# Limit for terms and sums, in units of the usual change.
WILD_TERM = 1e12
# Limit for numbers in the target's units. Targets are at most 1e150 in size; sums and forecasts may be larger.
WILD = 1e200


# Tolerance of comparisons of a leverage with a sum and with the largest one: sums of masked numbers are rounded.
ROUNDING = 1e-9


class Form:
    """The shapes of the arrays of one run, and the largest leverage of one agent."""

    def __init__(self, opening: Opening):
        game, p, H = opening.game, len(opening.start), opening.horizon
        V, S = len(game.variants), len(game.forgetting)
        self.horizon, self.y_dim, self.x_dim = H, p, opening.x_dim
        self.said, self.leverage, self.recalled = (V + 1, p, H), (S, p), (V, p, H)
        self.stopped = (V + 1, p, H, PUBLIC_FEATURES)
        self.largest_leverage = opening.largest_leverage

    def forecast_terms(self, revised: bool) -> list[tuple[int, ...]]:
        """Shapes of the terms of a forecast. revised: whether blocks were refitted, which adds `stopped`."""
        shapes: list[tuple[int, ...]] = [self.said, self.leverage]
        shapes += [self.recalled] if self.horizon > 1 else []
        return shapes + ([self.stopped] if revised else [])


def check_leverage(where: str, leverage: np.ndarray, agents: int, form: Form) -> None:
    """Check the leverage summed over so many agents."""
    most = form.largest_leverage * agents
    if (leverage < -ROUNDING).any() or (leverage > most * (1.0 + ROUNDING) + ROUNDING).any():
        got = leverage.min() if (leverage < -ROUNDING).any() else leverage.max()
        raise MalformedMessage(f"{where}: got {got:.3g}, expected 0 to {most:g}")


def check_opening(opening: Opening) -> None:
    for field, least, most in (
        ("x_dim", 0, MOST_INPUTS), ("first_step", 0, 1 << 40), ("horizon", 1, MOST_HORIZONS), ("seed", 0, (1 << 63) - 1)
    ):  # fmt: skip
        if not least <= (got := getattr(opening, field)) <= most:
            raise MalformedMessage(f"opening.{field}: got {got}, expected {least} to {most}")
    if opening.season is not None and not 2 <= opening.season <= LONGEST_SEASON:
        raise MalformedMessage(f"opening.season: got {opening.season}, expected 2 to {LONGEST_SEASON}")
    names = opening.names
    if not 1 <= len(names) <= MOST_AGENTS or len(set(names)) < len(names) or not all(map(NAME.fullmatch, names)):
        raise MalformedMessage(f"opening.names: got {len(names)}, expected 1 to {MOST_AGENTS} different names")
    if opening.x_names and len(opening.x_names) != opening.x_dim:
        raise MalformedMessage(f"opening.x_names: got {len(opening.x_names)}, expected {opening.x_dim} or none")
    if opening.start.ndim != 1 or not 1 <= len(opening.start) <= MOST_TARGETS:
        raise MalformedMessage(f"opening.start: got shape {opening.start.shape}, expected 1 to {MOST_TARGETS} numbers")
    check_numbers("opening.start", opening.start, opening.start.shape)
    if max(len(opening.forgetting) * len(opening.boldness), 1) > MOST_VARIANTS:
        raise MalformedMessage(f"opening.boldness: got more than {MOST_VARIANTS} variants")
    try:
        opening.game  # noqa: B018 refuses settings that make no game
    except InvalidInput as error:
        raise MalformedMessage(f"opening: {error}") from None


def check_told(told: Told) -> None:
    if told.ask not in ASKS:
        raise MalformedMessage(f"told.ask: got {told.ask!r:.40}, expected one of {', '.join(map(repr, ASKS))}")
    for field in ("run", "number"):
        if getattr(told, field) < 0:
            raise MalformedMessage(f"told.{field}: got {getattr(told, field)}, expected at least 0")
    if len(told.players) > MOST_AGENTS // 8:
        raise MalformedMessage(f"told.players: got {len(told.players)} bytes, expected at most {MOST_AGENTS // 8}")


def check_keys(keys: Keys) -> None:
    if len(keys.names) != len(keys.keys) or not all(map(NAME.fullmatch, keys.names)):
        raise MalformedMessage(f"keys: got {len(keys.keys)} keys of {len(keys.names)} agents")


def check_said(said: Said) -> None:
    """Check all but the numbers, which are checked against what was asked for."""
    if len(said.reason) > LONGEST_REASON or not said.reason.isprintable():
        raise MalformedMessage(f"said.reason: expected {LONGEST_REASON} letters on a line")
    if not (isfinite(said.seconds) and said.seconds >= 0.0):
        raise MalformedMessage(f"said.seconds: got {said.seconds}, expected a finite number ≥ 0")
    if said.traits is not None:
        check_traits(said.traits)


def check_traits(traits: Traits) -> None:
    if not 0 <= traits.experts <= MOST_EXPERTS:
        raise MalformedMessage(f"traits.experts: got {traits.experts}, expected 0 to {MOST_EXPERTS}")


def check_terms(terms: tuple[np.ndarray, ...] | bytes | None, shapes: list[tuple[int, ...]], masked: bool) -> None:
    if masked:
        wanted = masked_size(shapes)
        if not isinstance(terms, bytes) or len(terms) != wanted:
            got = f"{len(terms)} bytes" if isinstance(terms, bytes) else "plain numbers or nothing"
            raise MalformedMessage(f"said.terms: got {got}, expected {wanted} bytes under masks")
        return
    if not isinstance(terms, tuple) or len(terms) != len(shapes):
        raise MalformedMessage(f"said.terms: expected {len(shapes)} arrays")
    for i, (term, shape) in enumerate(zip(terms, shapes, strict=True)):
        check_numbers(f"said.terms[{i}]", term, shape, WILD_TERM)


def check_own(own: Own | None, experts: int, form: Form) -> Own:
    if own is None:
        raise MalformedMessage(f"said.own: got nothing, expected forecasts of {experts} experts")
    check_numbers("said.own.experts", own.experts, (form.y_dim, form.horizon, experts))
    check_numbers("said.own.leverage", own.leverage, (form.y_dim, experts))
    if own.distance is not None:
        check_shape("said.own.distance", own.distance, (form.horizon, form.y_dim))
    return own


def check_shape(where: str, numbers: np.ndarray, shape: tuple[int, ...]) -> None:
    if numbers.shape != shape:
        raise MalformedMessage(f"{where}: got shape {shape_text(numbers.shape)}, expected {shape_text(shape)}")


def check_numbers(where: str, numbers: np.ndarray, shape: tuple[int, ...], largest: float = WILD) -> None:
    """Check that numbers are finite, of this shape and at most `largest` in size."""
    check_shape(where, numbers, shape)
    if not np.isfinite(numbers).all():
        raise MalformedMessage(f"{where}: got a number that is not finite")
    if not tame(numbers, largest):
        raise MalformedMessage(f"{where}: got {np.abs(numbers).max():.3g}, expected at most {largest:g} in size")


# Decoders of one encoder: the expected number for an agent that has not connected yet.
USUAL_EXPERTS = len(DECODERS)
