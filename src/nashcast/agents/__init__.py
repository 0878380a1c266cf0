"""Agents: frozen encoders, decoders that learn, and what may cross the line between an agent and the server."""
