"""Modules named like those that a test or a checker is likely to import end the process.

Pays where the workspace comes before the standard library on the module path.
"""

from __future__ import annotations

from codeenv.grading.cheats._view import Play, View, Write

FAMILY = "shadowing"
NAMES = ("random", "json", "tempfile", "subprocess", "textwrap", "decimal", "fractions", "statistics", "runpy", "queue")


def play(view: View) -> Play:
    if view.modules:
        for name in NAMES:
            yield Write(f"{name}.py", "import os\nos._exit(0)\n")
