"""Recorded series."""
