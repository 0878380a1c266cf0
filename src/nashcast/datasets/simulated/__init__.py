"""Simulated series."""
