"""Federations: agents, a server that mixes their forecasts, and how they learn together."""
