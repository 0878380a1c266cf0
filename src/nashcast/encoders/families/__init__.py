"""Families of our own that see the past: analogs, lags, seasons, random features, reservoirs."""
