"""Agents in other processes and organisations, over a NATS broker."""

from nashcast.remote.hub import Hub
from nashcast.remote.runner import serve_agent

__all__ = ["Hub", "serve_agent"]
