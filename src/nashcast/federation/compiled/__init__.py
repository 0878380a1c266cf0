"""Compiled twins (extra `fast`) of what a federation's step computes in NumPy, for whole runs in one compiled loop.

Their specification is the NumPy code: tests hold each of them against it.
"""
