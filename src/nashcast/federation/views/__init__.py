"""Read-only views of a federation: bounds, trust, health."""
