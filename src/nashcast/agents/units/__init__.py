"""Runtime units that run the encoders of an agent."""
