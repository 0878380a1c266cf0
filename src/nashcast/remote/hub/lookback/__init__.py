"""The look-back game with agents elsewhere."""
