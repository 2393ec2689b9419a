"""Match file trails against patterns and report what the wildcards matched."""

from functools import cache
from typing import NamedTuple


class PatternError(ValueError):
    """The pattern is not well formed."""


class Element(NamedTuple):
    kind: str  # "literal", "one", "run", "deep", "choice" or "repeat"
    options: tuple[str, ...] = ()  # the text of a literal; the alternatives of choice and repeat


def parse(pattern: str) -> list[Element]:
    elements = []
    i = 0
    while i < len(pattern):
        c = pattern[i]
        i += 1
        if c == "?":
            elements.append(Element("one"))
        elif c == "*":
            if pattern.startswith("*", i):
                i += 1
                elements.append(Element("deep"))
            else:
                elements.append(Element("run"))
        elif c == "{":
            options, current = [], ""
            while True:
                if i == len(pattern):
                    raise PatternError("a brace is not closed")
                c = pattern[i]
                i += 1
                if c == "}":
                    break
                if c == ",":
                    options.append(current)
                    current = ""
                    continue
                if c == "{":
                    raise PatternError("braces cannot be nested")
                if c == "\\":
                    if i == len(pattern):
                        raise PatternError("nothing follows the backslash")
                    c = pattern[i]
                    i += 1
                current += c
            options.append(current)
            if pattern.startswith("+", i):
                i += 1
                elements.append(Element("repeat", tuple(options)))
            else:
                elements.append(Element("choice", tuple(options)))
        elif c == "}":
            raise PatternError("a brace is closed that was not opened")
        else:
            if c == "\\":
                if i == len(pattern):
                    raise PatternError("nothing follows the backslash")
                c = pattern[i]
                i += 1
            elements.append(Element("literal", (c,)))
    return elements


def match(pattern: str, text: str) -> list[str] | None:
    """What each wildcard and each pair of braces matched, in order; None if the pattern does not match the whole text."""
    elements = parse(pattern)

    @cache
    def from_here(k: int, start: int):
        """Ends of the elements from k on, as nested pairs."""
        if k == len(elements):
            return () if start == len(text) else None
        kind, options = elements[k]
        if kind in ("run", "deep"):
            return stretch(k, start)
        if kind == "repeat":
            return repeat(k, start, True)
        if kind == "one":
            ends = [start + 1] if start < len(text) and text[start] != "/" else []
        else:
            ends = [start + len(o) for o in options if text.startswith(o, start)]
        for end in ends:
            tail = from_here(k + 1, end)
            if tail is not None:
                return end, tail
        return None

    @cache
    def stretch(k: int, start: int):
        tail = from_here(k + 1, start)
        if tail is not None:
            return start, tail
        if start == len(text) or (elements[k].kind == "run" and text[start] == "/"):
            return None
        return stretch(k, start + 1)

    @cache
    def repeat(k: int, start: int, first: bool):
        for option in elements[k].options:
            if text.startswith(option, start) and (option or first):
                end = start + len(option)
                tail = from_here(k + 1, end)
                if tail is not None:
                    return end, tail
                found = repeat(k, end, False)
                if found is not None:
                    return found
        return None

    found = from_here(0, 0)
    if found is None:
        return None
    captures, start = [], 0
    for element in elements:
        end, found = found
        if element.kind != "literal":
            captures.append(text[start:end])
        start = end
    return captures
