"""An agent of Algorithm 1."""
