"""Events of streams for operators, and their delivery."""
