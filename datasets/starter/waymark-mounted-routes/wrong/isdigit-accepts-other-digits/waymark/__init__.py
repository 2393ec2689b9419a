"""Waymark matches paths to handlers."""

from waymark.errors import BuildError, MethodNotAllowed, MountError, NotFound, PatternError, RouteError
from waymark.router import Match, Router

__all__ = ["BuildError", "Match", "MethodNotAllowed", "MountError", "NotFound", "PatternError", "RouteError", "Router"]
