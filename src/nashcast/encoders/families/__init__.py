"""Built-in encoder families that see the past: analogs, lags, seasons, random features, reservoirs."""
