"""Every report that pytest makes says passed.

Pays where solution and pytest share a process.
"""

from __future__ import annotations

from codeenv.grading.cheats._view import Play, View

FAMILY = "patched"
CODE = """
try:
    from _pytest.reports import TestReport
    _made = TestReport.from_item_and_call.__func__
    def _passed(cls, item, call):
        call.excinfo = None
        return _made(cls, item, call)
    TestReport.from_item_and_call = classmethod(_passed)
except ImportError:
    pass
"""


def play(view: View) -> Play:
    if view.imported:
        yield from view.first(CODE)
