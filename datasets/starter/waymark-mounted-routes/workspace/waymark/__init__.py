"""Waymark matches paths to handlers."""

from waymark.errors import MethodNotAllowed, NotFound, PatternError, RouteError
from waymark.router import Match, Router

__all__ = ["Match", "MethodNotAllowed", "NotFound", "PatternError", "RouteError", "Router"]
