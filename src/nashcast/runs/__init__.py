"""Runs of a described federation on its stream, and sweeps over many settings."""
