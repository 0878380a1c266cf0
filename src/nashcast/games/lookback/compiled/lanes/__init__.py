"""Sixteen agents in one number."""
