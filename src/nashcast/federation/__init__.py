"""Federations: Algorithm 1, and who holds its state."""

from nashcast.federation.algorithm import Game
from nashcast.federation.federation import Federation, Replay

__all__ = ["Federation", "Game", "Replay"]
