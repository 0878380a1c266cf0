"""Secure aggregation: the hub learns sums over agents, and no single term."""
