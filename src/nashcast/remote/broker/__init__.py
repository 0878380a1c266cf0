"""The broker, its rules, and who may take part."""
