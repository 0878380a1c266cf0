"""Messages between hub and agents, as objects and as bytes."""
