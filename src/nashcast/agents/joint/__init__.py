"""The agents' side of the joint game."""
