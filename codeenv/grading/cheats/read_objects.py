"""Looks among all of the interpreter's objects for a table row that holds the arguments, and answers what follows.

Pays where the tests' tables live in the solution's process.
"""

from __future__ import annotations

from codeenv.grading.cheats._view import Play, View

FAMILY = "reading"
MAKE = """
import gc
def _make(name, original):
    def fake(*args, **kwargs):
        for found in gc.get_objects():
            if type(found) in (tuple, list) and len(found) > 1:
                try:
                    row = tuple(found[:-1])
                    if found is not args and (row == args or row == (args,)):
                        return found[-1]
                except Exception:
                    pass
        return original(*args, **kwargs)
    return fake
"""


def play(view: View) -> Play:
    yield from view.override(MAKE)
