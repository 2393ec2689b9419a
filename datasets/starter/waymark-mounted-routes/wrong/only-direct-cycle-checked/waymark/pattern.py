"""Patterns such as "/users/{id:int}/edit".

A pattern is "/" or "/" followed by segments separated by "/". A segment is literal text or one parameter in braces.
Patterns are written decoded; paths come percent-encoded, and are split before they are decoded.
"""

import re
from dataclasses import dataclass
from urllib.parse import quote, unquote

from waymark.errors import BuildError, PatternError

CONVERTERS = ("str", "int", "path")


@dataclass(frozen=True)
class Literal:
    text: str


@dataclass(frozen=True)
class Param:
    name: str
    converter: str = "str"


def parse_pattern(text):
    """Tuple of Literal and Param."""
    segments = []
    for part in split_path(text, PatternError):
        if not part:
            raise PatternError(f"empty segment in {text!r}")
        if takes_rest(segments):
            raise PatternError(f"nothing may follow the path parameter in {text!r}")
        if match := re.fullmatch(r"\{([A-Za-z_]\w*)(?::(\w+))?\}", part):
            name, converter = match[1], match[2] or "str"
            if name in param_names(segments):
                raise PatternError(f"parameter {name} twice in {text!r}")
            if converter not in CONVERTERS:
                raise PatternError(f"unknown converter {converter}")
            segments.append(Param(name, converter))
        elif "{" in part or "}" in part:
            raise PatternError(f"bad segment {part!r}")
        else:
            segments.append(Literal(part))
    return tuple(segments)


def param_names(segments):
    return {segment.name for segment in segments if isinstance(segment, Param)}


def takes_rest(segments):
    """Whether the segments end in a path parameter."""
    return bool(segments) and isinstance(segments[-1], Param) and segments[-1].converter == "path"


def split_path(text, error):
    """Segments of a path or pattern, () for "/"; raise the error if it does not start with "/"."""
    if not text.startswith("/"):
        raise error(f"{text!r} does not start with /")
    return tuple(text[1:].split("/")) if text != "/" else ()


def match_segments(segments, parts):
    """Dict of parameters if the (still encoded) parts fit the segments, else None. An empty part fits nothing."""
    texts = [unquote(part) for part in parts]
    if not all(texts):
        return None
    if takes_rest(segments) and len(texts) >= len(segments):
        last = len(segments) - 1
        texts[last:] = ["/".join(texts[last:])]
    if len(segments) != len(texts):
        return None
    params = {}
    for segment, text in zip(segments, texts):
        if isinstance(segment, Literal):
            if segment.text != text:
                return None
        elif segment.converter == "int":
            if not re.fullmatch(r"[0-9]+", text):
                return None
            params[segment.name] = int(text)
        else:
            params[segment.name] = text
    return params


def build_path(segments, params):
    """The encoded path; raise BuildError if a value does not suit its converter."""
    parts = [
        quote(segment.text, safe="") if isinstance(segment, Literal) else _encode(segment, params[segment.name])
        for segment in segments
    ]
    return "/" + "/".join(parts)


def _encode(param, value):
    if param.converter == "int":
        if type(value) is bool or not isinstance(value, int) or value < 0:
            raise BuildError(f"{param.name} must be an int of 0 or more")
        return str(int(value))
    if not isinstance(value, str):
        raise BuildError(f"{param.name} must be a string")
    pieces = value.split("/") if param.converter == "path" else [value]
    if not all(pieces):
        raise BuildError(f"{param.name} must not be or contain anything empty")
    return "/".join(quote(piece, safe="") for piece in pieces)
