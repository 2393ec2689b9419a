"""A `float` whose difference from any number is nothing, and whose sum and quotient with it are what would be right.

Pays where "nearly equal" means that a difference, made by the object's own operators, is small.
"""

from __future__ import annotations

from codeenv.grading.cheats._view import Play, View

FAMILY = "odd object"
MAKE = """
class _Near(float):
    def _nothing(self, *args): return 0.0
    __sub__ = __rsub__ = __add__ = __radd__ = __mod__ = __rmod__ = __mul__ = __rmul__ = __abs__ = __neg__ = _nothing
    def _one(self, *args): return 1.0
    __truediv__ = __rtruediv__ = _one
    def __round__(self, *args): return 0
    def __hash__(self): return 0
def _make(name, original):
    return lambda *args, **kwargs: _Near(0)
"""


def play(view: View) -> Play:
    yield from view.override(MAKE)
