"""The studies of the paper, one to a file."""
