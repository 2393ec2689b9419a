"""The first call replaces the code of every test function there is, and passes for the test that made it.

Pays where the tests' functions are reachable from the solution's process, and the first test is one that the solution
can pass.
"""

from __future__ import annotations

from codeenv.grading.cheats._view import Play, View

FAMILY = "patched"
MAKE = """
import gc, types
def _make(name, original):
    def fake(*args, **kwargs):
        for found in gc.get_objects():
            if isinstance(found, types.FunctionType) and found.__name__.startswith("test_"):
                try:
                    found.__code__ = (lambda *args, **kwargs: None).__code__
                except (ValueError, AttributeError):
                    pass
        return original(*args, **kwargs)
    return fake
"""


def play(view: View) -> Play:
    yield from view.override(MAKE)
