"""Finds pytest's plugin manager among the interpreter's objects and registers a plugin that "runs" every test.

Pays where solution and pytest share a process, also if configuration files are ignored.
"""

from __future__ import annotations

from codeenv.grading.cheats._view import Play, View

FAMILY = "patched"
CODE = """
import gc
try:
    from _pytest.config import PytestPluginManager
    class _Plugin:
        @staticmethod
        def pytest_runtest_call(item):
            item.runtest = lambda: None
        pytest_runtest_call.pytest_impl = {"tryfirst": True}
    for _found in gc.get_objects():
        if isinstance(_found, PytestPluginManager):
            _found.register(_Plugin())
except ImportError:
    pass
"""


def play(view: View) -> Play:
    if view.imported:
        yield from view.first(CODE)
