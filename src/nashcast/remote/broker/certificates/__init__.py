"""Certificates, keys and TLS."""
