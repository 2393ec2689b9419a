"""Configuration in drawers."""

from collections.abc import Callable


class ConfigError(ValueError):
    def __init__(self, message: str, file: str, line: int):
        super().__init__(f"{file}:{line}: {message}")
        self.file = file
        self.line = line


def load(name: str, read: Callable[[str], str]) -> dict[str, dict[str, str]]:
    """The configuration in the file `name` and those it includes."""
    raise NotImplementedError
