"""Errors of experts in units of their usual size."""
