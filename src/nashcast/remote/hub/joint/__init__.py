"""The joint game with agents elsewhere."""
