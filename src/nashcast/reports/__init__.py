"""Tables, figures and pages; they read records and never recompute."""
