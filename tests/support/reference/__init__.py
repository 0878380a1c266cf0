"""Brute force to test against. Nothing here imports nashcast."""
