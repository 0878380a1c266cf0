"""Theorem 2, the look-back game: in plain NumPy (`reference`), compiled (`compiled`), and spread over agents."""
