"""Patterns such as "/users/{id}/edit".

A pattern is "/" or "/" followed by segments separated by "/". A segment is literal text or one parameter in braces.
Patterns are written decoded; paths come percent-encoded, and are split before they are decoded.
"""

import re
from dataclasses import dataclass
from urllib.parse import unquote

from waymark.errors import PatternError


@dataclass(frozen=True)
class Literal:
    text: str


@dataclass(frozen=True)
class Param:
    name: str


def parse_pattern(text):
    """Tuple of Literal and Param."""
    segments = []
    for part in split_path(text, PatternError):
        if not part:
            raise PatternError(f"empty segment in {text!r}")
        if match := re.fullmatch(r"\{([A-Za-z_]\w*)\}", part):
            if any(segment == Param(match[1]) for segment in segments):
                raise PatternError(f"parameter {match[1]} twice in {text!r}")
            segments.append(Param(match[1]))
        elif "{" in part or "}" in part:
            raise PatternError(f"bad segment {part!r}")
        else:
            segments.append(Literal(part))
    return tuple(segments)


def split_path(text, error):
    """Segments of a path or pattern, () for "/"; raise the error if it does not start with "/"."""
    if not text.startswith("/"):
        raise error(f"{text!r} does not start with /")
    return tuple(text[1:].split("/")) if text != "/" else ()


def match_segments(segments, parts):
    """Dict of parameters if the (still encoded) parts fit the segments, else None. An empty part fits nothing."""
    if len(segments) != len(parts):
        return None
    params = {}
    for segment, part in zip(segments, parts):
        text = unquote(part)
        if not text:
            return None
        if isinstance(segment, Param):
            params[segment.name] = text
        elif segment.text != text:
            return None
    return params
