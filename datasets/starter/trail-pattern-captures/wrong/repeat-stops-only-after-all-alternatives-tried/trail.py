"""Match file trails against patterns and report what the wildcards matched."""

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


def _fits(elements: list[Element], text: str) -> list[bytearray]:
    """fits[k][i] tells whether elements[k:] can match exactly text[i:]."""
    end = len(text)
    fits = [bytearray(end + 1) for _ in range(len(elements) + 1)]
    fits[-1][end] = 1
    for k in range(len(elements) - 1, -1, -1):
        kind, options = elements[k]
        here, after = fits[k], fits[k + 1]
        if kind in ("run", "deep"):
            possible = 0
            for i in range(end, -1, -1):
                if kind == "run" and i < end and text[i] == "/":
                    possible = 0
                possible |= after[i]
                here[i] = possible
        elif kind == "one":
            for i in range(end):
                here[i] = after[i + 1] and text[i] != "/"
        elif kind == "repeat":
            more = _more(options, after, text)
            for option in set(options):
                _mark(here, option, after, text)
                _mark(here, option, more, text)
        else:
            for option in set(options):
                _mark(here, option, after, text)
    return fits


def _mark(here: bytearray, option: str, target: bytearray, text: str) -> None:
    """Mark each place from which `option` leads to a marked place of `target`."""
    size = len(option)
    i = target.find(1, size)
    while i >= 0:
        if text.startswith(option, i - size):
            here[i - size] = 1
        i = target.find(1, i + 1)


def _more(options: tuple[str, ...], after: bytearray, text: str) -> bytearray:
    """more[i] tells whether one or more non-empty alternatives lead from i to a place where the rest fits."""
    more = bytearray(len(after))
    solid = {option for option in options if option}
    for i in range(len(text) - 1, -1, -1):
        for option in solid:
            if text.startswith(option, i) and (after[i + len(option)] or more[i + len(option)]):
                more[i] = 1
                break
    return more


def _take(element: Element, start: int, after: bytearray, text: str) -> int:
    """Where the preferred match of `element` from `start` ends, given that there is one."""
    kind, options = element
    if kind == "one":
        return start + 1
    if kind in ("run", "deep"):
        return after.index(1, start)
    if kind == "literal":
        return start + len(options[0])
    if kind == "choice":
        return next(e for e in _ends(options, start, text) if after[e])

    more = _more(options, after, text)
    ends = _ends(options, start, text)
    end = next((e for e in ends if after[e]), None)
    if end is None:
        end = next(e for e in ends if more[e])
    solid = tuple(option for option in options if option)
    while not after[end]:
        end = next(e for e in _ends(solid, end, text) if after[e] or more[e])
    return end


def _ends(options: tuple[str, ...], start: int, text: str) -> list[int]:
    return [start + len(option) for option in options if text.startswith(option, start)]


def match(pattern: str, text: str) -> list[str] | None:
    """What each wildcard and each pair of braces matched, in order; None if the pattern does not match the whole text."""
    elements = parse(pattern)
    fits = _fits(elements, text)
    if not fits[0][0]:
        return None
    captures = []
    start = 0
    for element, after in zip(elements, fits[1:]):
        end = _take(element, start, after, text)
        if element.kind != "literal":
            captures.append(text[start:end])
        start = end
    return captures
