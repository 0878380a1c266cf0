"""SIMD arithmetic on sixteen agents at once."""
