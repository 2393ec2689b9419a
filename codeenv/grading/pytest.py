"""The `pytest` kind: whole projects. Solution and tests share a process, so a determined solution can still reach the
framework (`docs/trust.md` says how far); what decides is exit code 0 and a record of every expected test."""

from __future__ import annotations

import ast
import secrets
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Literal, TypeGuard

from pydantic import BaseModel, ValidationError

from codeenv.graders import PytestGrader
from codeenv.grading.boxes import Boxes
from codeenv.grading.report import NOT_RUN, Report, shorten
from codeenv.grading.verdict import TestResult
from codeenv.grading.workspace import tests_of
from codeenv.sandbox.api import SandboxError
from codeenv.sandbox.archive import Archive
from codeenv.task import Task

RECORDS_LIMIT = 16 * 1024 * 1024
RUNNER = Path(__file__).parent / "runner" / "pytest_runner.py"


class Record(BaseModel):
    """One line of the runner's."""

    kind: Literal["start", "broken", "collected", "test"]
    id: str = ""
    ids: tuple[str, ...] = ()
    outcome: str = ""
    message: str = ""
    seconds: float = 0.0


@lru_cache(maxsize=1)
def _runner() -> str:
    return RUNNER.read_text(encoding="utf-8")


async def run(task: Task, grader: PytestGrader, workspace: Archive, boxes: Boxes) -> Report:
    """:raises SandboxError: pytest itself could not start in the box."""
    token = secrets.token_hex(16)
    async with boxes.open(workspace) as box:
        tests = f"{box.scratch}/hidden-tests"
        await box.import_(tests_of(task), tests)
        command = ["python3", "-I", "-B", "-c", _runner(), tests, box.workdir]
        done = await box.exec(command, stdin=f"{token}\n".encode(), timeout=grader.timeout, output_limit=RECORDS_LIMIT)
    records = _records(done.stdout, token.encode())
    if not any(record.kind == "start" for record in records):
        if done.timed_out:
            raise SandboxError(f"pytest did not start within {grader.timeout:g} s", stage="start")
        said = done.stderr[-500:].decode("utf-8", "replace").strip()
        text = f"pytest did not start in the grading box (exit code {done.exit_code}): {said}"
        raise SandboxError(text, stage="start")
    reason = f"the tests did not end within {grader.timeout:g} s" if done.timed_out else ""
    return Report(done.exit_code, _results(records, grader.expected or expected_tests(task.tests), reason), reason)


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
            body = ast.parse(data).body
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


def _records(output: bytes, token: bytes) -> list[Record]:
    records: list[Record] = []
    for line in output.split(b"\n"):
        if line.startswith(token):
            try:
                records.append(Record.model_validate_json(line[len(token) :]))
            except ValidationError:  # the last line of a run that was killed
                continue
    return records


def _results(records: list[Record], expected: tuple[str, ...], reason: str) -> tuple[TestResult, ...]:
    """One result a test: as recorded; or not run, when it was collected or expected and nothing more was heard of
    it."""
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
        if name not in seen:
            results[name] = TestResult(id=name, passed=False, message=missing)
    return tuple(results.values())
