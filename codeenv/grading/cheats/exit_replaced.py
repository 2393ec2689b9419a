"""`sys.exit` always exits with 0.

Pays where the runner ends itself by it, as `python -m unittest` does.
"""

from __future__ import annotations

from codeenv.grading.cheats._view import Play, View

FAMILY = "early exit"
CODE = """
import os, sys
sys.exit = lambda code=0: os._exit(0)
"""


def play(view: View) -> Play:
    yield from view.first(CODE)
