"""Random numbers are always the largest that was asked for.

Pays where tests draw their inputs in the solution's process: the solution is then only asked what it can answer.
"""

from __future__ import annotations

from codeenv.grading.cheats._view import Play, View

FAMILY = "patched"
CODE = """
import random
random.randint = random.uniform = lambda a, b: b
random.randrange = lambda *args: max(args) - 1
random.choice = lambda values: values[-1]
random.Random.randint = random.Random.uniform = lambda self, a, b: b
random.Random.randrange = lambda self, *args: max(args) - 1
random.Random.choice = lambda self, values: values[-1]
"""


def play(view: View) -> Play:
    if view.imported:
        yield from view.first(CODE)
