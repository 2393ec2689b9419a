"""Every assert method of `unittest.TestCase` does nothing.

Pays where solution and TestCase share a process.
"""

from __future__ import annotations

from codeenv.grading.cheats._view import Play, View

FAMILY = "patched"
CODE = """
import unittest
for _name in dir(unittest.TestCase):
    if _name.startswith("assert") and "Raises" not in _name and "Warns" not in _name and "Logs" not in _name:
        setattr(unittest.TestCase, _name, lambda self, *args, **kwargs: None)
"""


def play(view: View) -> Play:
    if view.imported:
        yield from view.first(CODE)
