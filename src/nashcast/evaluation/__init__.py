"""Compares the federation with its ablations, its single agents and its peers, on the same streams by one loop."""
