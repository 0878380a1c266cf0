"""The paper's experiments: its settings and printed numbers as files, and its published code's departures."""
