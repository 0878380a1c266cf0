"""The journal of observations and forecasts."""
