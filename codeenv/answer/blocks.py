"""Fenced blocks of a message, as models write them: CommonMark, and what they get wrong of it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from codeenv.answer.python import ends_in_a_string, parsed

PYTHON = ("python", "python2", "python3", "py", "py3", "cpython", "ipython", "sage")
"""What stands behind the fence of a block of Python, in any case; a path that ends in `.py` is one too."""
UNNAMED = ("", "code", "solution", "answer")
"""What tells nothing of a block's language."""
OPENING = re.compile(
    r"(?P<indent>\s*(?:(?:[-*+]|\d+[.)])\s+)*)(?P<fence>`{3,}(?=[^`]*$)|~{3,})[\s{.]*(?P<name>[\w+#./-]*).*"
)
CLOSING = re.compile(r"(?P<indent>\s*)(?P<fence>`{3,}|~{3,})\s*")
CLOSINGS_TRIED = 16
FENCES_READ = 64  # lines of a message, from its end
INDENT = 3  # columns that a closing fence may stand further in than the opening one


@dataclass(frozen=True)
class Block:
    """A block's lines. `python`: True when its fence says so, None when it says nothing, False for anything else."""

    code: str
    python: bool | None


def blocks(text: str) -> list[Block]:
    """The fenced blocks of a text, in order.

    A fence closes at the first line that can close it, unless that lies in a string of three quotes: then it is a part
    of the code. One that never closes goes to the end. Where what lies between is no Python and opens a fence itself,
    that one counts, and what came before it was never closed, a stray, or the fence of a quotation.
    """
    found: list[Block] = []
    lines = text.split("\n")
    fences = [number for number, line in enumerate(lines) if OPENING.fullmatch(line)]
    lines = lines[fences[-FENCES_READ] :] if len(fences) > FENCES_READ else lines
    at = 0
    while at < len(lines):
        opening = OPENING.fullmatch(lines[at])
        at += 1
        if opening is None:
            continue
        python = _is_python(opening["name"])
        end = _end(lines, at, opening, python)
        code = "\n".join(lines[at:end])
        inner = next((n for n in range(at, end) if (line := OPENING.fullmatch(lines[n])) and line["name"]), None)
        if inner is not None and not parsed(code):
            if python:
                found.append(Block("\n".join(lines[at:inner]), python))
            at = inner
            continue
        found.append(Block(code, python))
        at = end + 1
    return found


def _is_python(name: str) -> bool | None:
    name = name.lower()
    if name in UNNAMED:
        return None
    return name in PYTHON or name.endswith(".py")


def _end(lines: list[str], start: int, opening: re.Match[str], python: bool | None) -> int:
    """The number of the line that closes the block, or of lines."""
    deepest = _columns(opening["indent"]) + INDENT
    closings = [
        number
        for number in range(start, len(lines))
        if (closing := CLOSING.fullmatch(lines[number]))
        and closing["fence"].startswith(opening["fence"])
        and _columns(closing["indent"]) <= deepest
    ]
    if not closings:
        return len(lines)
    first = closings[0]
    if python is False or not ends_in_a_string("\n".join(lines[start:first])):
        return first
    further = closings[1:CLOSINGS_TRIED]
    return next((number for number in further if parsed("\n".join(lines[start:number]))), first)


def _columns(blank: str) -> int:
    return len(blank.expandtabs(4))
