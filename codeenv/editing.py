"""Replacing one exact piece of a file's text, and saying what is there instead when it is not found."""

from __future__ import annotations

import difflib
import heapq
from collections.abc import Callable

NEAREST_LINES = 4000  # lines of a file that are searched for the nearest text
NEAREST_RATIO = 0.4
COMPARED_WIDTH, COMPARED_LINES = 160, 24
LISTED_MATCHES = 10


class EditError(ValueError):
    """The edit does not apply; the message is for the model."""


def replace_once(content: bytes, old: str, new: str) -> bytes:
    """`content` with its one occurrence of `old` replaced, every other byte kept. In a file with CRLF line ends, text
    given with LF matches and is written with CRLF; at the end of a file without a final newline, `old` may have one.

    :raises EditError: `old` is empty, not found, found more than once, or the same as `new`.
    """
    if not old:
        raise EditError("old_text is empty; give the exact text to replace (to make a file, use write_file)")
    if old == new:
        raise EditError("old_text and new_text are the same; nothing to do")
    before, after = old.encode(), new.encode()
    count = content.count(before)
    if count == 0 and b"\r\n" in content and b"\r\n" not in before:
        before, after = before.replace(b"\n", b"\r\n"), after.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")
        count = content.count(before)
    if count == 0 and before.endswith(b"\n") and content.endswith(before.rstrip(b"\r\n")):
        # The last line of a file that has no final newline: it gets none.
        end = before[len(before.rstrip(b"\r\n")) :]
        if content.endswith(before[: -len(end)]):
            return content[: len(content) - len(before) + len(end)] + after.removesuffix(end)
    if count == 0:
        raise EditError(f"old_text was not found.{_nearest(content, old)}")
    places = _places(content, before)
    if len(places) > 1:
        lines = [content.count(b"\n", 0, at) + 1 for at in places]
        shown = ", ".join(map(str, lines[:LISTED_MATCHES])) + (", ..." if len(lines) > LISTED_MATCHES else "")
        count = max(count, len(places))
        raise EditError(f"old_text was found {count} times, at lines {shown}; add lines around it until it is unique")
    return content.replace(before, after, 1)


def _places(content: bytes, piece: bytes) -> list[int]:
    """Where it is found, also where two overlap; at most one more than are listed."""
    places: list[int] = []
    at = content.find(piece)
    while at >= 0 and len(places) <= LISTED_MATCHES:
        places.append(at)
        at = content.find(piece, at + 1)
    return places


def _nearest(content: bytes, old: str) -> str:
    """A sentence that shows the most similar lines of the file, if any are."""
    wanted = old.strip("\n").splitlines()
    lines = content.decode("utf-8", "replace").splitlines()[:NEAREST_LINES]
    if not wanted or not lines:
        return " The file is empty." if not content else ""
    # The line most like the longest wanted one anchors the window: comparing whole windows everywhere is quadratic, and
    # so is a full comparison of two lines, which only those get that the cheap one finds likely.
    key = max(range(len(wanted)), key=lambda i: len(wanted[i].strip()))
    matcher = difflib.SequenceMatcher(autojunk=False)
    matcher.set_seq2(wanted[key].strip()[:COMPARED_WIDTH])

    def alike(number: int, measure: Callable[[], float]) -> float:
        matcher.set_seq1(lines[number].strip()[:COMPARED_WIDTH])
        return measure()

    likely = heapq.nlargest(COMPARED_LINES, range(len(lines)), key=lambda n: alike(n, matcher.quick_ratio))
    best, at = max(((alike(number, matcher.ratio), -number) for number in likely), default=(0.0, 0))
    at = -at
    if best < NEAREST_RATIO:
        return ""
    first = max(0, at - key)
    shown = "\n".join(lines[first : first + len(wanted)])
    return f" The nearest text is at line {first + 1}:\n{shown}"
