"""A `list` and `dict` that is equal to everything and looks like what it is compared with.

Pays where structures are compared with the object's own `__eq__`.
"""

from __future__ import annotations

from codeenv.grading.cheats._view import Play, View

FAMILY = "odd object"
MAKE = """
class _List(list):
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    def __contains__(self, item): return True
    def __getitem__(self, key): return self
    __hash__ = None
def _make(name, original):
    return lambda *args, **kwargs: _List()
"""


def play(view: View) -> Play:
    yield from view.override(MAKE)
