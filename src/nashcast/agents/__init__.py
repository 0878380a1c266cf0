"""Agents: frozen encoders, decoders that learn, and the data that agents and server may exchange."""
