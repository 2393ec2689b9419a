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


def _match(elements: list[Element], text: str) -> list[str] | None:
    if not elements:
        return None if text else []
    element, rest = elements[0], elements[1:]

    if element.kind == "literal":
        (literal,) = element.options
        return _match(rest, text[1:]) if text.startswith(literal) else None

    if element.kind == "one":
        candidates = [1] if text and text[0] != "/" else []
    elif element.kind == "run":
        reach = text.find("/") if "/" in text else len(text)
        candidates = range(reach + 1)
    elif element.kind == "deep":
        candidates = range(len(text) + 1)
    elif element.kind == "choice":
        candidates = [len(option) for option in element.options if text.startswith(option)]
    else:
        return _match_repeat(element.options, rest, text, 0)

    for length in candidates:
        captures = _match(rest, text[length:])
        if captures is not None:
            return [text[:length], *captures]
    return None


def _match_repeat(options: tuple[str, ...], rest: list[Element], text: str, used: int) -> list[str] | None:
    """Match one more alternative at text[used:], and then the rest or further alternatives."""
    for option in options:
        if text.startswith(option, used) and (option or used == 0):
            end = used + len(option)
            captures = _match(rest, text[end:])
            if captures is not None:
                return [text[:end], *captures]
            if end > used or used == 0:
                captures = _match_repeat(tuple(o for o in options if o), rest, text, end)
                if captures is not None:
                    return captures
    return None


def match(pattern: str, text: str) -> list[str] | None:
    """What each wildcard and each pair of braces matched, in order; None if the pattern does not match the whole text."""
    return _match(parse(pattern), text)
