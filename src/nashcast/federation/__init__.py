"""Federations: agents, a server that mixes what they say, and how they learn together."""
