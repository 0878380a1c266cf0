"""Streams: their settings, federations and forecasts."""
