"""The transformer encoder and its pre-training."""
