"""Hubs, agents and brokers to test with."""
