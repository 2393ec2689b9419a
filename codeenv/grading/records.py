"""What a run of tests in a box tells us, record by record, and what it means for each test that is expected."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import Literal, TypeGuard

from pydantic import BaseModel, ValidationError

from codeenv.grading.report import NOT_RUN, shorten
from codeenv.grading.verdict import TestResult
from codeenv.syntax import parse


class Record(BaseModel):
    """One line of the runner's."""

    kind: Literal["start", "broken", "collected", "test", "control", "forged", "end"]
    id: str = ""
    ids: tuple[str, ...] = ()
    outcome: str = ""
    message: str = ""
    seconds: float = 0.0


def records_in(output: bytes, token: bytes) -> list[Record]:
    """The records among the lines of `output`: those that begin with `token`."""
    records: list[Record] = []
    for line in output.split(b"\n"):
        if line.startswith(token):
            try:
                records.append(Record.model_validate_json(line[len(token) :]))
            except ValidationError:  # the last line of a run that was killed
                continue
    return records


def results_of(records: Sequence[Record], expected: tuple[str, ...], reason: str) -> tuple[TestResult, ...]:
    """One result a test: as recorded; or not run, when it was collected or expected and nothing more was heard of it.

    A test that is expected without parameters is there when any of its name is; one with parameters, when it is itself.
    """
    broken = "\n".join(record.message for record in records if record.kind == "broken")
    missing = shorten(": ".join(part for part in (NOT_RUN, reason, broken) if part))
    results = {
        name: TestResult(id=name, passed=False, message=missing)
        for record in records
        if record.kind == "collected"
        for name in record.ids
    }
    for record in records:
        if record.kind == "test":
            message = f"skipped: {record.message}" if record.outcome == "skipped" else record.message
            results[record.id] = TestResult(
                id=record.id,
                passed=record.outcome == "passed",
                message=shorten(message),
                seconds=record.seconds,
            )
    seen = {name.partition("[")[0] for name in results}
    for name in expected:
        if name not in seen and name not in results:
            results[name] = TestResult(id=name, passed=False, message=missing)
    return tuple(results.values())


def expected_tests(files: Mapping[str, bytes]) -> tuple[str, ...]:
    """The ids (without parameters) of the test functions that these files define, read without running them: test
    functions of a module, and of classes named Test* or derived from a *TestCase. A file in a Python newer than ours
    adds none: it is then up to the exit code."""
    found: list[str] = []
    for path, data in sorted(files.items()):
        name = path.rpartition("/")[2]
        if not (name.endswith(".py") and (name.startswith("test_") or name.endswith("_test.py"))):
            continue
        try:
            body = parse(data).body
        except (SyntaxError, ValueError):
            continue
        for node in body:
            if _is_test(node):
                found.append(f"{path}::{node.name}")
            elif isinstance(node, ast.ClassDef) and _is_test_class(node):
                found += [f"{path}::{node.name}::{item.name}" for item in node.body if _is_test(item)]
    return tuple(found)


def _is_test(node: ast.stmt) -> TypeGuard[ast.FunctionDef | ast.AsyncFunctionDef]:
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test")


def _is_test_class(node: ast.ClassDef) -> bool:
    return node.name.startswith("Test") or any(ast.unparse(base).endswith("TestCase") for base in node.bases)
