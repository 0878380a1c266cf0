"""The studies of the paper, one per file."""
