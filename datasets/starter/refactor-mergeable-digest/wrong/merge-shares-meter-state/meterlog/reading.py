"""Lines of a meter log."""

from dataclasses import dataclass


class BadLine(ValueError):
    def __init__(self, reason):
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True)
class Reading:
    meter: str
    value: int


@dataclass(frozen=True)
class Reset:
    meter: str


def parse_line(line):
    """Return a Reading, a Reset or None; raise BadLine."""
    text = line.strip()
    if not text or text.startswith("#"):
        return None
    words = text.split()
    is_mark = words[0] == "="
    if len(words) != 2:
        raise BadLine("mark" if is_mark else "shape")
    if is_mark:
        return Reset(words[1].upper())
    try:
        value = int(words[1])
    except ValueError:
        raise BadLine("value") from None
    return Reading(words[0].upper(), value)
