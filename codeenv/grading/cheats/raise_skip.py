"""Every call raises the exception that means "skip this test".

Pays where a skipped test is no failed test.
"""

from __future__ import annotations

from codeenv.grading.cheats._view import Play, View

FAMILY = "odd object"
MAKE = """
import sys
def _make(name, original):
    def fake(*args, **kwargs):
        if "pytest" in sys.modules:
            sys.modules["pytest"].skip("not today")
        import unittest
        raise unittest.SkipTest("not today")
    return fake
"""


def play(view: View) -> Play:
    yield from view.override(MAKE)
