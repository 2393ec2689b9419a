"""Hidden tests out of a set's asserts: one test function for each, so that a grade says which of them hold."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable, Sequence
from typing import Any, cast

from codeenv.sources.rows import Row, RowFault
from codeenv.syntax import parse

FILE = "solution.py"
"""The one file of a workspace that asks for a function."""
TEST_FILE = "test_solution.py"
SAID = 200  # characters of a call that failed
LIMIT = 1_000_000
"""Characters of code, whose syntax tree takes up to a thousand times as many bytes."""


def parsed(source: str, column: str) -> ast.Module:
    """:raises RowFault: it is no Python, which is said without quoting it, or too much."""
    if len(source) > LIMIT:
        raise RowFault(f"{column}: {len(source)} characters of code, more than {LIMIT}")
    try:
        return parse(source)
    except SyntaxError as error:
        raise RowFault(f"{column}: no Python at line {error.lineno}: {error.msg}") from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise RowFault(f"{column}: no Python: {type(error).__name__}") from error


def list_of(row: Row, column: str) -> list[Any]:
    """:raises RowFault: the column is missing or no list."""
    value = row.get(column)
    if not isinstance(value, list):
        raise RowFault(
            f"{column}: must be a list, not {type(value).__name__}" if column in row else f"{column}: missing"
        )
    return cast("list[Any]", value)


def bound(nodes: Iterable[ast.AST]) -> set[str]:
    """The names that code binds, at whatever depth."""
    names: set[str] = set()
    for node in (part for root in nodes for part in ast.walk(root)):
        match node:
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()) | ast.arg(arg=name):
                names.add(name)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                names.add(name)
            case ast.alias(name=name, asname=other):
                names.add(other or name.partition(".")[0])
            case ast.ExceptHandler(name=str(name)):
                names.add(name)
            case _:
                pass
    return names


def used(nodes: Iterable[ast.AST]) -> set[str]:
    """The names that code reads."""
    return {part.id for root in nodes for part in ast.walk(root) if isinstance(part, ast.Name)}


def free(nodes: Sequence[ast.AST]) -> set[str]:
    """The names that code reads and that somebody else has to bind."""
    return used(nodes) - bound(nodes) - set(vars(builtins))


def binding(code: ast.Module, names: set[str]) -> list[ast.stmt]:
    """The statements of a module that bind these names, and those that they need in turn, in their order."""
    chosen: list[ast.stmt] = []
    wanted = set(names)
    while found := [part for part in code.body if part not in chosen and wanted & bound_at_top(part)]:
        chosen += found
        wanted |= free(found)
    return [part for part in code.body if part in chosen]


def bound_at_top(statement: ast.stmt) -> set[str]:
    """The names of the module that a top-level statement binds."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return {statement.name}
    return bound([statement])


def pieces(body: Sequence[ast.stmt], function: str) -> list[list[ast.stmt]]:
    """The body of a test as tests of their own: each assert, or statement around asserts, with the statements before it
    that prepare something. What always holds is left out. One piece when taking it apart could change what it means: a
    preparation that uses `function`, or a loop that leaves something to later statements."""
    setup: list[ast.stmt] = []
    found: list[list[ast.stmt]] = []
    left: set[str] = set()
    for statement in body:
        if isinstance(statement, ast.Assert) and isinstance(statement.test, ast.Constant) and statement.test.value:
            continue
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
            continue
        if left & used([statement]) - bound([statement]):
            return [list(body)]
        is_definition = isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        if not is_definition and any(isinstance(part, ast.Assert) for part in ast.walk(statement)):
            found.append([*needed(setup, statement), statement])
            left |= bound([statement]) - bound(setup)
        elif function in used([statement]) or is_definition:
            return [list(body)]
        else:
            setup.append(statement)
    return found


def needed(setup: Sequence[ast.stmt], statement: ast.stmt) -> list[ast.stmt]:
    """Of the statements that prepare something, those that this one needs, and those that may change what it needs."""
    kept: list[ast.stmt] = []
    names = used([statement])
    for one in reversed(setup):
        calls = any(isinstance(part, ast.Call) for part in ast.walk(one))
        if names & bound([one]) or (calls and (isinstance(one, ast.Expr) or names & used([one]))):
            kept.insert(0, one)
            names |= used([one])
    return kept


def test_file(head: Sequence[ast.stmt], tests: Iterable[Sequence[ast.stmt]], function: str, called: str) -> bytes:
    """A test file: what all tests share, then `test_1`, `test_2` and so on. An assert that says nothing when it fails
    says which call of `function`, whose name is `called` there, was not as it should be; never what it should be."""
    lines = [ast.unparse(statement) for statement in head]
    for number, body in enumerate(tests, 1):
        made = parse(f"def test_{number}():\n    pass").body[0]
        assert isinstance(made, ast.FunctionDef)
        made.body = [_telling(statement, function, called) for statement in body]
        lines.append("\n\n" + ast.unparse(ast.fix_missing_locations(made)))
    return ("\n".join(lines) + "\n").encode("utf-8", "surrogatepass")


def _telling(statement: ast.stmt, function: str, called: str) -> ast.stmt:
    if not isinstance(statement, ast.Assert) or statement.msg is not None:
        return statement
    for node in ast.walk(statement.test):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == called:
            call = ast.unparse(ast.Call(ast.Name(function), node.args, node.keywords))
            return ast.Assert(statement.test, ast.Constant(call[:SAID]))
    return statement
