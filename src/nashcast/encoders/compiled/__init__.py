"""Compiled twins (extra `fast`) of what pre-training spends its time on."""
