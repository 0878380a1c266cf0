"""Federate black-box forecasters online: signed closed-form mixture weights and an exact look-back Nash game."""

from nashcast import encoders
from nashcast.agents import Agent
from nashcast.agents.decoders import LongMemory, empty_memory, long_memory_decoder, remember, window_decoder
from nashcast.client import Client
from nashcast.errors import InvalidInput, NashcastError, SingularGame
from nashcast.federation import Federation, Game, Replay
from nashcast.games.certificate import Certificate, certify
from nashcast.games.lookback.game import Equilibrium, respond, solve_game
from nashcast.games.moments.features import Moments, clipped_moments, echo_moments, relu_moments
from nashcast.intervals import Intervals
from nashcast.maths.aggregation import aggregation_rule
from nashcast.maths.mixture import mixture_weights

__version__ = "0.1.0.dev1"

__all__ = [
    "Agent",
    "Certificate",
    "Client",
    "Equilibrium",
    "Federation",
    "Game",
    "Intervals",
    "InvalidInput",
    "LongMemory",
    "Moments",
    "NashcastError",
    "Replay",
    "SingularGame",
    "aggregation_rule",
    "certify",
    "clipped_moments",
    "default_federation",
    "echo_moments",
    "empty_memory",
    "encoders",
    "long_memory_decoder",
    "mixture_weights",
    "relu_moments",
    "remember",
    "respond",
    "solve_game",
    "window_decoder",
]


def __getattr__(name: str):
    # It compiles what it runs, and needs the extra `fast`: imported when it is asked for.
    if name == "default_federation":
        from nashcast.adaptive import default_federation

        return default_federation
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
