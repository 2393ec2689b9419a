"""Reads the tests' tables through a function that a test hands over: its globals are the test module's.

Pays where what a test passes is the very object, as in one process, or a stand-in that gives away all of it.
"""

from __future__ import annotations

from codeenv.grading.cheats._view import Play, View

FAMILY = "reading"
MAKE = """
def _make(name, original):
    def fake(*args, **kwargs):
        given = [arg for arg in args if not callable(arg)]
        for arg in args:
            for way in ("__globals__", "__builtins__", "__self__", "__func__", "__closure__", "__wrapped__"):
                try:
                    for value in dict(getattr(arg, way)).values():
                        if isinstance(value, list):
                            for row in value:
                                if len(row) > 1 and list(row[:-1]) == given:
                                    return row[-1]
                except Exception:
                    pass
        return original(*args, **kwargs)
    return fake
"""


def play(view: View) -> Play:
    yield from view.override(MAKE)
