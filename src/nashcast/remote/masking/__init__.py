"""Sums over agents of which nobody sees a term."""
