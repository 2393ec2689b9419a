"""Unified diffs, line by line."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Literal

Kind = Literal["head", "add", "del", "note", "same"]

_KINDS: dict[str, Kind] = {"@": "head", "+": "add", "-": "del", "\\": "note"}


def diff_lines(diff: str) -> Iterator[tuple[Kind, str]]:
    """Each line and what it is; the two lines that name the files are left out, as they are said elsewhere."""
    body = False
    for line in diff.split("\n"):
        body = body or line.startswith("@@")
        if body and line:
            yield _KINDS.get(line[0], "same"), line


def diff_counts(diff: str) -> tuple[int, int]:
    """Lines added and removed."""
    kinds = [kind for kind, _ in diff_lines(diff)]
    return kinds.count("add"), kinds.count("del")


FILTERS: dict[str, Callable[..., Any]] = {one.__name__: one for one in (diff_lines, diff_counts)}
