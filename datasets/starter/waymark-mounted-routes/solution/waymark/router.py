"""The router."""

from dataclasses import dataclass
from typing import Any

from waymark.errors import BuildError, MethodNotAllowed, MountError, NotFound, PatternError
from waymark.pattern import build_path, match_segments, param_names, parse_pattern, split_path, takes_rest


@dataclass(frozen=True)
class Match:
    handler: Any
    params: dict
    name: str | None = None


@dataclass(frozen=True)
class _Route:
    method: str
    segments: tuple
    handler: Any
    name: str | None


@dataclass(frozen=True)
class _Mount:
    segments: tuple
    child: "Router"
    name: str | None


def _is_bad_name(name):
    return name is not None and (not name or ":" in name)


class Router:
    def __init__(self):
        self._entries = []

    def add(self, method, pattern, handler, *, name=None):
        """Add a route; routes are tried in the order in which they were added."""
        if _is_bad_name(name):
            raise PatternError(f"bad name {name!r}")
        self._entries.append(_Route(method.upper(), parse_pattern(pattern), handler, name))

    def mount(self, prefix, child, name=None):
        """Put the routes of another router, also those added to it later, below a prefix."""
        segments = parse_pattern(prefix)
        if takes_rest(segments):
            raise PatternError(f"path parameter in prefix {prefix!r}")
        if _is_bad_name(name):
            raise MountError(f"bad name {name!r}")
        if child._contains(self):
            raise MountError("a router cannot contain itself")
        self._entries.append(_Mount(segments, child, name))

    def match(self, method, path):
        """Match for the first route that fits path and method; raise NotFound or MethodNotAllowed."""
        parts = split_path(path, NotFound)
        allowed = set()
        for route in self._routes():
            params = match_segments(route.segments, parts)
            if params is None:
                continue
            if route.method == method.upper():
                return Match(route.handler, params, route.name)
            allowed.add(route.method)
        if allowed:
            raise MethodNotAllowed(sorted(allowed))
        raise NotFound(path)

    def path_for(self, name, /, **params):
        """Path of the first route with this name and these parameters; raise BuildError."""
        for route in self._routes():
            if route.name == name and route.name is not None and param_names(route.segments) == params.keys():
                return build_path(route.segments, params)
        raise BuildError(f"no route {name} with the parameters {sorted(params)}")

    def _contains(self, router):
        if self is router:
            return True
        return any(entry.child._contains(router) for entry in self._entries if isinstance(entry, _Mount))

    def _routes(self):
        """All routes, those of mounted routers with full segments and names."""
        for entry in self._entries:
            if isinstance(entry, _Route):
                yield entry
                continue
            for route in entry.child._routes():
                name = route.name
                if name is not None and entry.name is not None:
                    name = f"{entry.name}:{name}"
                yield _Route(route.method, entry.segments + route.segments, route.handler, name)
