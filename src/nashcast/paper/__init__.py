"""The paper's experiments: its settings and printed numbers as files, and the deviations of its published code."""
