"""One difference of two recordings, and how values and texts are compared."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from codeenv.replay.times import without_times

SHOWN = 120  # characters of a value
DETAIL_LINES, DETAIL_WIDTH = 40, 200  # of a comparison of texts
DETAIL_COMPARED = 2000  # lines of each
COMPARED = 1024 * 1024  # characters of a text within which times are looked for

START, END = 0, -1
"""As a difference's `turn`: before the first one, after the last one."""


@dataclass(frozen=True)
class Difference:
    """`before` and `after` are short; `detail` is more of it, line by line. `call` counts a turn's calls from 1; 0: it
    is of the turn."""

    turn: int
    what: str
    before: str = ""
    after: str = ""
    call: int = 0
    times: bool = False
    """Whether it is of times alone."""
    detail: str = ""


def of_values(turn: int, pairs: Mapping[str, tuple[Any, Any]]) -> list[Difference]:
    """By the name of each."""
    return [Difference(turn, name.replace("_", " "), short(a), short(b)) for name, (a, b) in pairs.items() if a != b]


def of_texts(turn: int, what: str, one: str, other: str) -> list[Difference]:
    """At most one, which shows the first line that differs, in more than times where there is one."""
    if one == other:
        return []
    times = max(len(one), len(other)) <= COMPARED and without_times(one) == without_times(other)
    before, after = _first_that_differs(one, other, times=times)
    return [Difference(turn, what, before, after, times=times, detail=detail_of(one, other))]


def detail_of(one: str, other: str) -> str:
    """The lines of two texts that differ, the first of them if they are many."""
    lines = difflib.unified_diff(_lines(one), _lines(other), lineterm="", n=1)
    shown = [line[:DETAIL_WIDTH] for line in lines if not line.startswith(("---", "+++"))]
    more = [f"... and {len(shown) - DETAIL_LINES} more lines"] * (len(shown) > DETAIL_LINES)
    return "\n".join(shown[:DETAIL_LINES] + more)


def _lines(text: str) -> list[str]:
    """As many as are compared in no time: the work is quadratic at worst."""
    return text[:COMPARED].split("\n", DETAIL_COMPARED)[:DETAIL_COMPARED]


def _first_that_differs(one: str, other: str, *, times: bool) -> tuple[str, str]:
    for a, b in zip_longest(one.split("\n"), other.split("\n")):
        if a != b and (times or a is None or b is None or without_times(a) != without_times(b)):
            return short(a), short(b)
    return "", ""


def there(value: object) -> str:
    """Whether there is one."""
    return "not there" if value is None else value if isinstance(value, str) else "there"


def short(value: object) -> str:
    text = value if isinstance(value, str) else "-" if value is None else str(value)
    return text if len(text) <= SHOWN else text[:SHOWN] + " ..."
