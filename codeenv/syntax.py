"""Python's parser, for one thread at a time."""

from __future__ import annotations

import ast
from threading import Lock

_parsing = Lock()


def parse(source: str | bytes) -> ast.Module:
    """As `ast.parse`, which may fail in two threads at once: CPython 3.11 counts the depth of the trees that it makes
    for all of them together, and raises a SystemError when the sums do not come out even.

    :raises SyntaxError, ValueError, RecursionError, MemoryError: as `ast.parse`.
    """
    with _parsing:
        return ast.parse(source)
