"""The saved state of a federation, and its file formats."""
