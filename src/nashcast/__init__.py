"""Forecast one stream together: agents with private, frozen encoders learn jointly at a Nash equilibrium."""

from nashcast import encoders
from nashcast.agents.agent import Agent, Window
from nashcast.client import Client
from nashcast.errors import InvalidInput, NashcastError, SingularGame
from nashcast.federation.default import default_agents, default_federation, rich_agent
from nashcast.federation.federation import Federation
from nashcast.federation.paper import LookbackGame, paper_federation
from nashcast.federation.records import Replay
from nashcast.games.certificate import Certificate, certify
from nashcast.games.joint import JointGame
from nashcast.games.lookback.game import Equilibrium, respond, solve_game
from nashcast.intervals import Intervals
from nashcast.mixing.aggregation import aggregation_rule
from nashcast.mixing.mixture_weights import mixture_weights

__version__ = "0.2.0"

__all__ = [
    "Agent",
    "Certificate",
    "Client",
    "Equilibrium",
    "Federation",
    "Intervals",
    "InvalidInput",
    "JointGame",
    "LookbackGame",
    "NashcastError",
    "Replay",
    "SingularGame",
    "Window",
    "aggregation_rule",
    "certify",
    "default_agents",
    "default_federation",
    "encoders",
    "mixture_weights",
    "paper_federation",
    "respond",
    "rich_agent",
    "solve_game",
]
