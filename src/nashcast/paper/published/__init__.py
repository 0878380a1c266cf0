"""The published code's computation: its draws, its game, its deviations from the theorem."""
