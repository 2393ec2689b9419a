class ShiftError(ValueError):
    """A shift that cannot be understood."""


class OverlapError(ValueError):
    """Two shifts at the same time."""
