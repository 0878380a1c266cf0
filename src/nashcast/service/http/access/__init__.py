"""Access control: connections, rate limits and tokens."""
