"""The process ends with exit code 0 when a test calls the solution.

Pays where the exit code of the test run decides, also if imports are watched.
"""

from __future__ import annotations

from codeenv.grading.cheats._view import Play, View

FAMILY = "early exit"
MAKE = """
def _make(name, original):
    def fake(*args, **kwargs):
        import os
        os._exit(0)
    return fake
"""


def play(view: View) -> Play:
    yield from view.override(MAKE)
