"""Reads the source of every module that is loaded, the tests among them.

Pays where the tests' source is on the disk of the box that the solution runs in.
"""

from __future__ import annotations

from codeenv.grading.cheats._answers import look_up
from codeenv.grading.cheats._view import Play, View

FAMILY = "reading"
PLACES = """
import sys
def _places():
    for module in list(sys.modules.values()):
        name = getattr(module, "__file__", None) or ""
        if "test" in name.rpartition("/")[2]:
            yield name
"""


def play(view: View) -> Play:
    yield from look_up(view, PLACES)
