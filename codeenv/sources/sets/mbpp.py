"""MBPP, full and sanitized, and MBPP+: a function from a sentence, whose tests are asserts."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from codeenv.graders import FunctionsGrader
from codeenv.sources.rows import Hub, PublicSet, Row, RowFault, text_of
from codeenv.sources.sets.checks import FILE, TEST_FILE, binding, bound_at_top, free, list_of, parsed, test_file, used
from codeenv.sources.sets.plus import GRADER as PLUS_GRADER
from codeenv.sources.sets.plus import plus_tests
from codeenv.syntax import parse
from codeenv.task import Answer, Task

GRADER = FunctionsGrader(timeout=15, call_timeout=5)
REVISION = "7bc94ee8bd8f4b07324968e85b7b54f505cba1e5"
SPLITS = {"train": "train", "eval": "test"}


def to_task(row: Row) -> Task:
    """A row of either version. Every assert is a hidden test, the challenging ones too. :raises RowFault: the row is no
    good."""
    entry, asserts = _entry(row), _asserts(row)
    setup = parsed("\n".join([*_lines(row, "test_imports"), str(row.get("test_setup_code") or "")]), "test_setup_code")
    code = parsed(text_of(row, "code"), "code")
    all_parts = [*setup.body, *(part for body in asserts for part in body)]
    here = {name for part in code.body if not _is_import(part) for name in bound_at_top(part)}
    needed = free(all_parts)
    # What only the reference imports, and the tests use: the set's own judge runs them in one namespace.
    given = [part for part in binding(code, needed - here) if _is_import(part)]
    names = needed & here | {entry}
    imported = parse(f"from {FILE.removesuffix('.py')} import {', '.join(sorted(names))}").body
    tests = test_file([*given, *imported, *setup.body], asserts, entry, entry)
    return _task(row, {TEST_FILE: tests}, GRADER, "MBPP", names)


def to_plus_task(row: Row) -> Task:
    """:raises RowFault: the row is no good."""
    tests = plus_tests(text_of(row, "test"), _entry(row))
    return _task(row, tests, PLUS_GRADER, "MBPP+", {_entry(row)})


def _task(row: Row, tests: dict[str, bytes], grader: FunctionsGrader, source: str, names: set[str]) -> Task:
    entry = _entry(row)
    number = row.get("task_id")
    if not isinstance(number, int):
        raise RowFault("task_id: must be a number")
    says = text_of(row, "prompt" if "prompt" in row else "text").strip()
    others = ", ".join(f"`{name}`" for name in sorted(names - {entry}))
    also = f" The tests also use {others}, which it has to define." if others else ""
    example = f"One of the tests:\n\n```python\n{_lines(row, 'test_list')[0].strip()}\n```\n"
    return Task(
        id=f"MBPP/{number}",
        instruction=f"{says}\n\nWrite it as `{entry}` in `{FILE}`.{also} {example}",
        files={FILE: "".join(f"# {line}\n" for line in says.splitlines()).encode("utf-8", "surrogatepass")},
        tests=tests,
        solution={FILE: text_of(row, "code").replace("\r\n", "\n").encode("utf-8", "surrogatepass")},
        family="function",
        answer=Answer(path=FILE, entry_point=entry),
        grader=grader,
        metadata={"entry_point": entry, "source": source},
    )


def _asserts(row: Row) -> list[Sequence[ast.stmt]]:
    columns = ("test_list", "challenge_test_list")
    found = [parsed(text, column).body for column in columns for text in _lines(row, column)]
    if not any(isinstance(part, ast.Assert) for body in found for node in body for part in ast.walk(node)):
        raise RowFault("test_list: asserts nothing")
    return [body for body in found if body]


def _lines(row: Row, column: str) -> list[str]:
    """:raises RowFault: it is no list of texts; missing is empty but for `test_list`."""
    values = list_of(row, column) if row.get(column) is not None or column == "test_list" else []
    if not all(isinstance(value, str) for value in values):
        raise RowFault(f"{column}: must be a list of texts")
    if column == "test_list" and not values:
        raise RowFault(f"{column}: is empty")
    return values


def _entry(row: Row) -> str:
    """The function that the first test calls, of those that the reference defines."""
    defined = {node.name for node in parsed(text_of(row, "code"), "code").body if isinstance(node, ast.FunctionDef)}
    for body in _asserts(row):
        for node in (part for statement in body for part in ast.walk(statement)):
            if isinstance(node, ast.Call) and (found := used([node.func]) & defined):
                return found.pop()
    raise RowFault("test_list: calls no function that code defines")


def _is_import(node: ast.stmt) -> bool:
    return isinstance(node, ast.Import | ast.ImportFrom)


SETS = (
    PublicSet(
        name="mbpp",
        title="MBPP",
        licence="CC-BY-4.0",
        to_task=to_task,
        hub=Hub("google-research-datasets/mbpp", REVISION, "full"),
        splits=SPLITS,
    ),
    PublicSet(
        name="mbpp-sanitized",
        title="MBPP sanitized",
        licence="CC-BY-4.0",
        to_task=to_task,
        hub=Hub("google-research-datasets/mbpp", REVISION, "sanitized"),
        splits=SPLITS,
    ),
    PublicSet(
        name="mbppplus",
        title="MBPP+",
        licence="Apache-2.0",
        to_task=to_plus_task,
        hub=Hub("evalplus/mbppplus", "9a36f31e81d5e1670b68e6de8ef23da0c4e1abb5"),
    ),
)
