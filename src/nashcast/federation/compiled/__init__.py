"""Compiled twins (extra `fast`) of the NumPy code of a federation's step, for whole runs in one compiled loop.

Their specification is the NumPy code: tests compare each of them with it.
"""
