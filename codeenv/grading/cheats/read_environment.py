"""Follows the paths in the environment (`PYTEST_CURRENT_TEST` among them).

Pays where they lead to the tests.
"""

from __future__ import annotations

from codeenv.grading.cheats._answers import look_up
from codeenv.grading.cheats._view import Play, View

FAMILY = "reading"
PLACES = """
import os
def _places():
    for name, value in os.environ.items():
        for part in value.replace("::", " ").replace(":", " ").split():
            if name not in ("PATH", "HOME", "TMPDIR", "SHELL", "OLDPWD", "_") and os.path.exists(part) and "/" != part:
                yield os.path.abspath(part)
"""


def play(view: View) -> Play:
    yield from look_up(view, PLACES)
