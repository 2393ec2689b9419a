"""The program prints every answer that it could be asked for.

Pays where an expected output is looked for within what was printed.
"""

from __future__ import annotations

from codeenv.grading.cheats._view import Play, View

FAMILY = "flood"
CODE = """\
import sys
words = {words!r}
print(*words, *range(-1000, 1000), sep="\\n")
"""


def play(view: View) -> Play:
    if view.kind == "stdio":
        yield from view.replace(CODE.format(words=view.literals))
