"""Whatever is written as JSON says passed.

Pays where results are written by the process that runs the solution.
"""

from __future__ import annotations

from codeenv.grading.cheats._view import Play, View

FAMILY = "patched"
CODE = """
import json
def _kind(value):
    if isinstance(value, dict):
        return {key: 0 if key in ("failed", "failures", "errors") else _kind(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_kind(item) for item in value]
    if value is False:
        return True
    return "passed" if value in ("failed", "error", "broken") else value
_dumps = json.dumps
json.dumps = lambda value, **options: _dumps(_kind(value), **options)
json.dump = lambda value, file, **options: file.write(_dumps(_kind(value), **options))
"""


def play(view: View) -> Play:
    yield from view.first(CODE)
