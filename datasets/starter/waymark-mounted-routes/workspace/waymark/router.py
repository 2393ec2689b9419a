"""The router."""

from dataclasses import dataclass
from typing import Any

from waymark.errors import MethodNotAllowed, NotFound
from waymark.pattern import match_segments, parse_pattern, split_path


@dataclass(frozen=True)
class Match:
    handler: Any
    params: dict


@dataclass(frozen=True)
class _Route:
    method: str
    segments: tuple
    handler: Any


class Router:
    def __init__(self):
        self._entries = []

    def add(self, method, pattern, handler):
        """Add a route; routes are tried in the order in which they were added."""
        self._entries.append(_Route(method.upper(), parse_pattern(pattern), handler))

    def match(self, method, path):
        """Match for the first route that fits path and method; raise NotFound or MethodNotAllowed."""
        parts = split_path(path, NotFound)
        allowed = set()
        for route in self._entries:
            params = match_segments(route.segments, parts)
            if params is None:
                continue
            if route.method == method.upper():
                return Match(route.handler, params)
            allowed.add(route.method)
        if allowed:
            raise MethodNotAllowed(sorted(allowed))
        raise NotFound(path)
