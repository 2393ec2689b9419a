"""The `pytest` kind: whole projects. Solution and tests share a process, so a determined solution can still reach the
framework (`docs/trust.md` says how far); what decides is exit code 0 and a record of every expected test."""

from __future__ import annotations

import ast
import json
from functools import lru_cache
from pathlib import Path
from typing import Any

from codeenv.grading.report import NOT_RUN, Report, shorten
from codeenv.grading.verdict import TestResult
from codeenv.sandbox.api import Sandbox, SandboxError
from codeenv.sandbox.archive import Archive
from codeenv.task import PytestGrader, Task

RECORDS_LIMIT = 16 * 1024 * 1024
RUNNER = Path(__file__).parent / "runner" / "pytest_runner.py"


@lru_cache(maxsize=1)
def _runner() -> str:
    return RUNNER.read_text(encoding="utf-8")


async def run(task: Task, grader: PytestGrader, box: Sandbox) -> Report:
    """:raises SandboxError: pytest itself could not start in the box."""
    tests = f"{box.scratch}/hidden-tests"
    await box.import_(Archive.of(task.tests), tests)
    command = ["python3", "-I", "-B", "-c", _runner(), tests, box.workdir]
    done = await box.exec(command, timeout=grader.timeout, output_limit=RECORDS_LIMIT)
    records = _records(done.stdout)
    if not any(record.get("kind") == "start" for record in records):
        if done.timed_out:
            raise SandboxError(f"pytest did not start within {grader.timeout:g} s", stage="start")
        said = done.stderr[-500:].decode("utf-8", "replace").strip()
        raise SandboxError(f"pytest did not start in the grading box (exit code {done.exit_code}): {said}", stage="start")
    reason = f"the tests did not end within {grader.timeout:g} s" if done.timed_out else ""
    expected = grader.expected or expected_tests({path: data for path, data in task.tests.items()})
    return Report(done.exit_code, _results(records, expected, reason), reason)


def expected_tests(files: dict[str, bytes]) -> tuple[str, ...]:
    """The ids (without parameters) of the test functions that these files define, read without running them: test
    functions of a module, and of classes named Test* or derived from a *TestCase."""
    found: list[str] = []
    for path, data in sorted(files.items()):
        name = path.rpartition("/")[2]
        if not (name.startswith("test_") and name.endswith(".py")):
            continue
        for node in ast.parse(data).body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test"):
                found.append(f"{path}::{node.name}")
            elif isinstance(node, ast.ClassDef) and _is_test_class(node):
                found += [
                    f"{path}::{node.name}::{item.name}"
                    for item in node.body
                    if isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef) and item.name.startswith("test")
                ]
    return tuple(found)


def _is_test_class(node: ast.ClassDef) -> bool:
    return node.name.startswith("Test") or any(ast.unparse(base).endswith("TestCase") for base in node.bases)


def _records(output: bytes) -> list[dict[str, Any]]:
    records: list[dict[str, Any]] = []
    for line in output.splitlines():
        try:
            record = json.loads(line)
        except ValueError:  # the last line of a run that was killed, or of a solution that found the descriptor
            continue
        if isinstance(record, dict):
            records.append(record)  # pyright: ignore[reportUnknownArgumentType]
    return records


def _results(records: list[dict[str, Any]], expected: tuple[str, ...], reason: str) -> tuple[TestResult, ...]:
    """One result a test: as recorded; or not run, when it was collected or expected and nothing more was heard of it."""
    broken = "\n".join(str(r.get("message", "")) for r in records if r.get("kind") == "broken")
    missing = shorten(": ".join(part for part in (NOT_RUN, reason, broken) if part))
    results: dict[str, TestResult] = {}
    for record in records:
        if record.get("kind") == "collected":
            for name in record.get("ids", ()):
                results[str(name)] = TestResult(id=str(name), passed=False, message=missing)
    for record in records:
        if record.get("kind") == "test":
            name, outcome = str(record.get("id")), record.get("outcome")
            message = str(record.get("message", ""))
            results[name] = TestResult(
                id=name,
                passed=outcome == "passed",
                message=shorten(f"skipped: {message}" if outcome == "skipped" else message),
                seconds=float(record.get("seconds", 0.0)),
            )
    seen = {name.partition("[")[0] for name in results}
    for name in expected:
        if name not in seen:
            results[name] = TestResult(id=name, passed=False, message=missing)
    return tuple(results.values())
