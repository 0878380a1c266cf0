"""Runs that show or measure what the mathematics does."""
