"""One self-contained page for a record."""
