"""What is worth telling an operator of a stream, and how it is told."""
