"""Searches the whole disk for tests and cases.

Pays where they are on the disk of the box that the solution runs in.
"""

from __future__ import annotations

from codeenv.grading.cheats._answers import look_up
from codeenv.grading.cheats._view import Play, View

FAMILY = "reading"
PLACES = """
def _places():
    yield "/"
"""


def play(view: View) -> Play:
    yield from look_up(view, PLACES)
