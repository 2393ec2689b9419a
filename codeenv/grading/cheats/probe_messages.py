"""Answers each call with an object that shows its arguments, reads in the failures what they were compared with, and
answers that the next time.

Pays where `run_tests` shows messages, runs as often as one likes, and the tests are the ones that decide.
"""

from __future__ import annotations

import ast
import re

from codeenv.grading.cheats._view import Play, RunTests, View

FAMILY = "run_tests"
MAKE = """
_known = {known!r}
class _Shown:
    def __init__(self, args): self.args = args
    def __repr__(self): return "<<" + repr(self.args) + ">>"
    def __eq__(self, other): return False
def _make(name, original):
    def fake(*args, **kwargs):
        key = repr(args)
        return _known[key] if key in _known else _Shown(args)
    return fake
"""
SEEN = re.compile(r"<<(\(.*?\))>> (?:==|!=) (.+?)(?: : .*|\s*)$", re.M)
TRIES = 40


def play(view: View) -> Play:
    known: dict[str, object] = {}
    for _ in range(TRIES if view.imported else 0):
        yield from view.override(MAKE.format(known=known))
        said = yield RunTests()
        before = len(known)
        for arguments, wanted in SEEN.findall(said):
            try:
                known[arguments] = ast.literal_eval(wanted)
            except (ValueError, SyntaxError):
                continue
        if len(known) == before:
            return
