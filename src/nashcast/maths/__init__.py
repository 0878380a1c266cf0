"""Pure functions over arrays: the theorems, compiled."""
