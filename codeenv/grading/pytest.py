"""The `pytest` kind: whole projects. Solution and tests share a process, so a determined solution can still reach the
framework (`docs/trust.md` says how far); what decides is exit code 0 and a record of every expected test."""

from __future__ import annotations

import random
import secrets
from collections import Counter
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from pydantic import BaseModel

from codeenv.graders import PytestGrader
from codeenv.grading.boxes import Boxes
from codeenv.grading.records import Record, expected_tests, records_in, results_of
from codeenv.grading.report import Report, shorten
from codeenv.grading.verdict import TestResult
from codeenv.grading.workspace import tests_of
from codeenv.sandbox.api import SandboxError
from codeenv.sandbox.archive import Archive
from codeenv.task import Task

RECORDS_LIMIT = 16 * 1024 * 1024
RUNNER = Path(__file__).parent / "runner"
MODULES = ("genuine", "watch", "controls", "sources", "pytest_runner")
"""What the runner consists of, each importing only from those before it."""
LOAD = """\
import sys
for name, text in {sources!r}.items():
    module = type(sys)("codeenv.grading.runner." + name)
    for parent in ("codeenv", "codeenv.grading", "codeenv.grading.runner"):
        sys.modules.setdefault(parent, type(sys)(parent))
    sys.modules[module.__name__] = module
    setattr(sys.modules["codeenv.grading.runner"], name, module)
    exec(compile(text, name + ".py", "exec"), module.__dict__)
"""
CONTROLS = (
    "assert", "false", "error", "fail", "raises", "match", "approx", "unittest-equal", "unittest-true", "unittest-in",
)  # fmt: skip
"""The kinds of tests that must fail, of `runner/controls.py`."""


class Order(BaseModel):
    """What the runner is told, on its standard input."""

    token: str
    controls: dict[str, str]
    """By a name that the solution cannot know, the kind."""
    unittest: bool
    """Whether the tests use it: only then it is worth its time."""
    words: tuple[str, ...]
    """What of Genuine's PERMISSIVE the tests use themselves."""


@lru_cache(maxsize=1)
def _runner() -> str:
    return LOAD.format(sources={name: (RUNNER / f"{name}.py").read_text(encoding="utf-8") for name in MODULES})


async def run(task: Task, grader: PytestGrader, workspace: Archive, boxes: Boxes) -> Report:
    """:raises SandboxError: pytest itself could not start in the box."""
    expected = grader.expected or expected_tests(task.tests)
    order = _order(task.tests, expected)
    async with boxes.open(workspace) as box:
        tests = f"{box.scratch}/hidden-tests"
        await box.import_(tests_of(task), tests)
        command = ["python3", "-I", "-B", "-c", _runner(), tests, box.workdir]
        line = f"{order.model_dump_json()}\n".encode()
        done = await box.exec(command, stdin=line, timeout=grader.timeout, output_limit=RECORDS_LIMIT)
    records = records_in(done.stdout, order.token.encode())
    if not any(record.kind == "start" for record in records):
        if done.timed_out:
            raise SandboxError(f"pytest did not start within {grader.timeout:g} s", stage="start")
        said = done.stderr[-500:].decode("utf-8", "replace").strip()
        text = f"pytest did not start in the grading box (exit code {done.exit_code}): {said}"
        raise SandboxError(text, stage="start")
    reason = f"the tests did not end within {grader.timeout:g} s" if done.timed_out else ""
    results = results_of(records, expected, reason)
    if tampered := _tampering(records, order, all(result.passed for result in results)):
        # No result of such a run is worth anything, not even for partial credit.
        reason = f"the run cannot be trusted: {tampered}"
        results = tuple(TestResult(id=result.id, passed=False, message=shorten(reason)) for result in results)
    return Report(done.exit_code, results, reason)


def _order(tests: Mapping[str, bytes], expected: tuple[str, ...]) -> Order:
    text = b"\n".join(data for path, data in tests.items() if path.endswith(".py"))
    uses_unittest = b"unittest" in text
    chance = random.SystemRandom()
    stems = [name.rpartition("::")[2].partition("[")[0] for name in expected] or ["test_basics"]
    kinds = [kind for kind in CONTROLS if uses_unittest or not kind.startswith("unittest")]
    names = [
        f"{stem}_{secrets.token_hex(2)}{number}" for number, stem in enumerate(chance.choices(stems, k=len(kinds)))
    ]
    words = tuple(word for word in ("ANY", "approx") if word.encode() in text)
    return Order(
        token=secrets.token_hex(16), controls=dict(zip(names, kinds, strict=True)), unittest=uses_unittest, words=words
    )


def _tampering(records: list[Record], order: Order, all_passed: bool) -> str:
    """Why the records are not what an honest run leaves, whatever the solution is worth; empty when they are."""
    for record in records:
        if record.kind == "control" and record.outcome == "passed":
            return f"a test that must fail ({order.controls.get(record.id, 'unknown')}) was reported as passed"
        if record.kind == "forged":
            return f"a result was written by {record.id or 'a thread'}"
        if record.kind == "end" and record.ids:
            return f"changed while the tests ran: {', '.join(record.ids[:5])}"
    counts = Counter((record.kind, record.id) for record in records if record.kind != "broken")
    if twice := next((f"{kind} {name}".strip() for (kind, name), count in counts.items() if count > 1), ""):
        return f"recorded twice: {twice}"
    collected = any(record.ids for record in records if record.kind == "collected")
    controls = {record.id for record in records if record.kind == "control"}
    if all_passed and (records[-1].kind != "end" or (collected and controls != set(order.controls))):
        return "every test passed, but the run did not come to its end"
    return ""
