"""Attention compiled by numba (extra `fast`)."""
