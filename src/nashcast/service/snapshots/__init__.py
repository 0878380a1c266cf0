"""Snapshots, replays and warm starts."""
