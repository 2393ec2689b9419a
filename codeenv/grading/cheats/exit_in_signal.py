"""A timer's signal handler ends the process with exit code 0 while the first call is kept waiting.

Pays where the exit code decides, and it needs no thread.
"""

from __future__ import annotations

from codeenv.grading.cheats._view import Play, View

FAMILY = "early exit"
MAKE = """
import os, signal, time
try:
    signal.signal(signal.SIGALRM, lambda *_: os._exit(0))
    signal.setitimer(signal.ITIMER_REAL, 0.2)
except ValueError:
    pass
def _make(name, original):
    return lambda *args, **kwargs: time.sleep(60)
"""


def play(view: View) -> Play:
    yield from view.override(MAKE)
