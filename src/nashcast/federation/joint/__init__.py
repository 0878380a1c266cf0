"""The server's side of the joint game."""
