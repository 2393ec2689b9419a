class RouteError(Exception):
    """Base of all errors of the package."""


class PatternError(RouteError):
    """A pattern or a name is malformed."""


class MountError(RouteError):
    """A router cannot be mounted like this."""


class BuildError(RouteError):
    """No path can be built from this name and these parameters."""


class NotFound(RouteError):
    """No route fits the path."""


class MethodNotAllowed(RouteError):
    """Routes fit the path, but not the method."""

    def __init__(self, allowed):
        super().__init__(f"allowed: {', '.join(allowed)}")
        self.allowed = allowed
