"""Agents in other processes and organisations, over a NATS broker."""
