"""The process ends with exit code 0 as soon as the solution is imported.

Pays where the exit code of the test run decides.
"""

from __future__ import annotations

from codeenv.grading.cheats._view import Play, View

FAMILY = "early exit"
CODE = """
import os
os._exit(0)
"""


def play(view: View) -> Play:
    yield from view.first(CODE)
