"""Federations described in files: read, checked, built."""
