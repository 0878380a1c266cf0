"""A service to test against, and its callers."""
