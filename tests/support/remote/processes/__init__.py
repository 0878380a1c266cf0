"""Hubs and agents in processes of their own."""
