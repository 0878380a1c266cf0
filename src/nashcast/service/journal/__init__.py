"""The journal: what was observed and what was forecast."""
