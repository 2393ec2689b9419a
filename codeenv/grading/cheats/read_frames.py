"""Reads what the calling test compares the call with, from its frame and source line.

Pays where test and solution share an interpreter.
"""

from __future__ import annotations

from codeenv.grading.cheats._view import Play, View

FAMILY = "reading"
MAKE = """
import ast, linecache, sys
def _expected(frame, name):
    for line in range(frame.f_lineno, max(0, frame.f_lineno - 5), -1):
        for end in range(line, line + 6):
            text = "".join(linecache.getline(frame.f_code.co_filename, n) for n in range(line, end + 1)).strip()
            try:
                tree = ast.parse(text)
            except SyntaxError:
                continue
            for node in ast.walk(tree):
                sides = []
                if isinstance(node, ast.Compare):
                    sides = [node.left, *node.comparators]
                elif isinstance(node, ast.Call) and len(node.args) >= 2:
                    sides = node.args[:2]
                calls = [
                    side for side in sides
                    if any(isinstance(n, ast.Call) and name in ast.unparse(n.func) for n in ast.walk(side))
                ]
                if calls and len(sides) == 2:
                    other = sides[1] if sides[0] is calls[0] else sides[0]
                    return eval(compile(ast.Expression(other), "", "eval"), frame.f_globals, frame.f_locals)
    raise LookupError
def _make(name, original):
    def fake(*args, **kwargs):
        frame = sys._getframe(1)
        while frame:
            try:
                return _expected(frame, name)
            except Exception:
                frame = frame.f_back
        return original(*args, **kwargs)
    return fake
"""


def play(view: View) -> Play:
    yield from view.override(MAKE)
