"""Reads what the process has open, and the directories of that.

Pays where a descriptor leads to the tests.
"""

from __future__ import annotations

from codeenv.grading.cheats._answers import look_up
from codeenv.grading.cheats._view import Play, View

FAMILY = "reading"
PLACES = """
import os
def _places():
    for pid in ("self", str(os.getppid())):
        try:
            for name in os.listdir(f"/proc/{pid}/fd"):
                target = os.readlink(f"/proc/{pid}/fd/{name}")
                if target.startswith("/") and not target.startswith(("/dev", "/proc")):
                    yield target if target.endswith((".py", ".in")) else os.path.dirname(target)
        except OSError:
            pass
"""


def play(view: View) -> Play:
    yield from look_up(view, PLACES)
