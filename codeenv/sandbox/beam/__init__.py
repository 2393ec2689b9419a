"""Boxes that Beam, or a self-hosted beta9, starts, limits and bills."""
