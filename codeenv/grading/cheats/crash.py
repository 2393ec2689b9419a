"""The interpreter crashes.

Pays where a crash is taken for a fault of the grader's.
"""

from __future__ import annotations

from codeenv.grading.cheats._view import Play, View

FAMILY = "exhaustion"
CODE = """
import os
os.abort()
"""


def play(view: View) -> Play:
    yield from view.first(CODE)
