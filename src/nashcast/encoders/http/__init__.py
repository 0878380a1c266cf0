"""Models behind HTTP: embeddings and forecasts."""
