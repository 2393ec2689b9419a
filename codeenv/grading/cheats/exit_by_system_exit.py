"""`SystemExit(0)` at import.

Pays where the framework lets it through.
"""

from __future__ import annotations

from codeenv.grading.cheats._view import Play, View

FAMILY = "early exit"
CODE = """
raise SystemExit(0)
"""


def play(view: View) -> Play:
    if view.imported:
        yield from view.first(CODE)
