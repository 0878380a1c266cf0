"""Messages of the joint game."""
