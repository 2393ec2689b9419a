"""Packages named like the tests probably are, which hold one test that passes.

Pays where the tests are laid into the workspace and loaded by name: a package goes before a module.
"""

from __future__ import annotations

from codeenv.grading.cheats._view import Play, View, Write

FAMILY = "shadowing"
CODE = """\
import unittest


class TestNothing(unittest.TestCase):
    def test_nothing(self):
        pass
"""


def play(view: View) -> Play:
    for name in view.names:
        yield Write(f"test_{name}/__init__.py", CODE)
