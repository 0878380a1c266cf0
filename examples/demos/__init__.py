"""Demonstrations of `nashcast demo --federated` and `--live`: several organisations in processes of their own."""
