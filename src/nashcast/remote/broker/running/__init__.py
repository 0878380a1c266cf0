"""The broker's program and process."""
