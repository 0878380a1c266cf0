"""The private-information benchmark: owners with different inputs, and what they gain by learning together."""
