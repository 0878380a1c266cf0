"""Settings files: read them, check them, and build the federation they describe."""
