"""Hands a report of success for every test to every plugin of pytest's that listens, and ends.

Pays where the plugin that records results lives in the solution's process, whatever secret it has.
"""

from __future__ import annotations

from codeenv.grading.cheats._view import Play, View

FAMILY = "forged"
MAKE = """
import gc, os, sys
def _make(name, original):
    def fake(*args, **kwargs):
        if "pytest" in sys.modules:
            from _pytest.config import Config
            from _pytest.nodes import Item
            from _pytest.reports import TestReport
            objects = gc.get_objects()
            for config in [found for found in objects if isinstance(found, Config)]:
                for item in [found for found in objects if isinstance(found, Item)]:
                    for when in ("setup", "call", "teardown"):
                        report = TestReport(item.nodeid, item.location, {}, "passed", None, when, duration=0.0)
                        config.hook.pytest_runtest_logreport(report=report)
                        config.hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
                config.hook.pytest_sessionfinish(session=item.session, exitstatus=0)
        os._exit(0)
    return fake
"""


def play(view: View) -> Play:
    yield from view.override(MAKE)
