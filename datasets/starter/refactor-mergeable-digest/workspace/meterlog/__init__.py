"""Digests of meter logs."""
