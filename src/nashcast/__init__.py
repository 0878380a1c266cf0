"""Federate black-box forecasters online: signed closed-form mixture weights and an exact look-back Nash game."""

from nashcast import encoders
from nashcast.adaptive import default_federation
from nashcast.agents import Agent
from nashcast.client import Client
from nashcast.errors import InvalidInput, NashcastError, SingularGame
from nashcast.federation import Federation, Game, Replay
from nashcast.intervals import Intervals
from nashcast.maths.certificate import Certificate, certify
from nashcast.maths.feature_moments import Moments, clipped_moments, echo_moments, relu_moments
from nashcast.maths.game import Equilibrium, respond, solve_game
from nashcast.maths.ridge import LongMemory, empty_memory, long_memory_decoder, remember, window_decoder
from nashcast.mixing.aggregation import aggregation_rule
from nashcast.mixing.mixture_weights import mixture_weights

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
