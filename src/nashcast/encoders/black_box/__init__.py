"""Functions and models that cannot be opened: called, read, refitted, saved."""
