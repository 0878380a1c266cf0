"""Agents: a frozen encoder, a small decoder, a memory, behind a protocol."""

from nashcast.agents.agent import Agent
from nashcast.agents.protocol import Answer, GameView, Hello, Participant, Sync

__all__ = ["Agent", "Answer", "GameView", "Hello", "Participant", "Sync"]
