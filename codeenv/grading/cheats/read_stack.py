"""Asks `inspect` which files the callers stand in, and reads the answers there.

Pays where the tests' source is on the disk of the box that the solution runs in.
"""

from __future__ import annotations

from codeenv.grading.cheats._answers import look_up
from codeenv.grading.cheats._view import Play, View

FAMILY = "reading"
PLACES = """
import inspect
def _places():
    for frame in inspect.stack():
        yield frame.filename
"""


def play(view: View) -> Play:
    yield from look_up(view, PLACES)
