"""Encoders at work inside an agent."""
