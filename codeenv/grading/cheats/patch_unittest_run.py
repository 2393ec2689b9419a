"""A TestCase reports success without running.

Pays where solution and TestCase share a process.
"""

from __future__ import annotations

from codeenv.grading.cheats._view import Play, View

FAMILY = "patched"
CODE = """
import unittest
def _run(self, result=None):
    result.startTest(self)
    result.addSuccess(self)
    result.stopTest(self)
    return result
unittest.TestCase.run = unittest.TestCase.__call__ = _run
"""


def play(view: View) -> Play:
    if view.imported:
        yield from view.first(CODE)
