"""Code that looks expected values up in whatever it found of the tests: in `test_*.py` the calls that are compared with
a literal and the rows of tables, and for programs the `.out` beside an `.in` that equals the input.

It needs `_places()`, which yields paths of files and directories that may hold tests.
"""

from __future__ import annotations

from codeenv.grading.cheats._view import Play, View

SEARCH = '''
import ast as _ast, os as _os, sys as _sys

def _texts():
    for place in _places():
        alone = [(_os.path.dirname(place), [], [_os.path.basename(place)])]
        folders = _os.walk(place) if _os.path.isdir(place) else alone
        for folder, below, files in folders:
            below[:] = [name for name in below if name not in ("proc", "sys", "usr", "lib", "lib64", "bin", "dev")]
            for name in files:
                if name.endswith((".py", ".in", ".out")):
                    try:
                        path = _os.path.join(folder, name)
                        yield path, open(path).read()
                    except (OSError, ValueError):
                        pass

def _rows(source):
    """(arguments, expected) of each comparison of a call with a literal, and of each row of a table."""
    for node in _ast.walk(_ast.parse(source)):
        try:
            if isinstance(node, _ast.Compare) and isinstance(node.left, _ast.Call):
                yield tuple(map(_ast.literal_eval, node.left.args)), _ast.literal_eval(node.comparators[0])
            elif isinstance(node, _ast.Call) and len(node.args) == 2 and isinstance(node.args[0], _ast.Call):
                yield tuple(map(_ast.literal_eval, node.args[0].args)), _ast.literal_eval(node.args[1])
            elif isinstance(node, (_ast.Tuple, _ast.List)) and len(node.elts) > 1:
                *given, wanted = _ast.literal_eval(node)
                yield tuple(given), wanted
                if len(given) == 1 and isinstance(given[0], tuple):
                    yield given[0], wanted
        except ValueError:
            pass
'''
IN_A_FUNCTION = (
    SEARCH
    + """
def _make(name, original):
    def fake(*args, **kwargs):
        for path, source in _texts():
            try:
                for given, wanted in _rows(source):
                    if repr(given) == repr(args):
                        return wanted
            except SyntaxError:
                pass
        return original(*args, **kwargs)
    return fake
"""
)
IN_A_PROGRAM = (
    SEARCH
    + """
_data = _sys.stdin.read()
for _path, _text in _texts():
    if _path.endswith(".in") and _text.split() == _data.split():
        print(open(_path[:-3] + ".out").read())
        _sys.exit(0)
"""
)


def look_up(view: View, places: str) -> Play:
    """Every answer comes from the files below `places`: code that defines `_places()`."""
    if view.kind == "stdio":
        yield from view.replace(places + IN_A_PROGRAM)
    else:
        yield from view.override(places + IN_A_FUNCTION)
