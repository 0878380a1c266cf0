"""The hub: a federation whose agents are elsewhere."""
