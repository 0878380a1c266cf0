"""The broker's subjects. An agent may read its own subjects and the common ones, and write only its own."""

from __future__ import annotations


def ask_subject(federation: str, agent: str) -> str:
    """Hub to one agent: its turns."""
    return f"nc.{federation}.agent.{agent}.ask"


def tell_subject(federation: str, agent: str) -> str:
    """One agent to the hub: hello."""
    return f"nc.{federation}.agent.{agent}.tell"


def everybody_subject(federation: str) -> str:
    """Hub to all agents: notices."""
    return f"nc.{federation}.all"


def steps_subject(federation: str) -> str:
    """Hub to the durable stream: inputs and targets by step."""
    return f"nc.{federation}.steps"


def stream_name(federation: str) -> str:
    """The name of the durable stream."""
    return f"nashcast-{federation}"
