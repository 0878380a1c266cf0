"""Agents in other processes and organisations, over a NATS broker."""

from nashcast.remote.hub.hub import Hub
from nashcast.remote.owner.runner import serve_agent

__all__ = ["Hub", "serve_agent"]
