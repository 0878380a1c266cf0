"""Streams: their settings, their federations, what they learn and forecast."""
