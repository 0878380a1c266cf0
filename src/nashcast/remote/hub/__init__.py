"""The hub: a federation of remote agents."""
