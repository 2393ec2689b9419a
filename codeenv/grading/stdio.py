"""The `stdio` kind: a program, its input, its output. The comparison is made here, outside the program's box, which
never holds an expected output."""

from __future__ import annotations

import time

from codeenv.graders import StdioGrader
from codeenv.grading.boxes import Boxes
from codeenv.grading.report import NOT_RUN, Report, shorten
from codeenv.grading.verdict import TestResult
from codeenv.sandbox.api import ExecResult
from codeenv.sandbox.archive import Archive
from codeenv.task import Task

OUTPUT_SLACK = 64 * 1024
SHOWN = 300


async def run(task: Task, grader: StdioGrader, workspace: Archive, boxes: Boxes) -> Report:
    """Every case in order of name, until the time for all of them is over. Exit code 0 when all pass, else 1."""
    deadline = time.monotonic() + grader.timeout
    results: list[TestResult] = []
    reason = ""
    async with boxes.open(workspace) as box:
        for name in sorted(path[:-3] for path in task.tests if path.endswith(".in")):
            left = deadline - time.monotonic()
            if left <= 0:
                reason = f"the {grader.timeout:g} s for all cases ran out"
                results.append(TestResult(id=name, passed=False, message=NOT_RUN))
                continue
            expected = task.tests[f"{name}.out"]
            done = await box.exec(
                grader.command,
                stdin=task.tests[f"{name}.in"],
                timeout=min(grader.case_timeout, left),
                output_limit=2 * (len(expected) + OUTPUT_SLACK),
            )
            message = _fault(done, expected, grader)
            results.append(TestResult(id=name, passed=not message, message=shorten(message), seconds=done.seconds))
    return Report(0 if all(result.passed for result in results) else 1, tuple(results), reason)


def _fault(done: ExecResult, expected: bytes, grader: StdioGrader) -> str:
    if done.timed_out:
        return f"no end within {done.seconds:.1f} s"
    if done.exit_code != 0:
        return f"exit code {done.exit_code}: {done.stderr[-SHOWN:].decode('utf-8', 'replace').strip()}"
    if done.stdout_bytes > len(done.stdout):
        return f"{done.stdout_bytes} bytes of output, far more than expected"
    # As bytes: decoded, all that is no UTF-8 would be alike, and some thirty characters would be blanks or line ends.
    if grader.compare == "tokens":
        return _first_difference(done.stdout.split(), expected.split(), "token")
    return _first_difference(_lines(done.stdout), _lines(expected), "line")


def _lines(text: bytes) -> list[bytes]:
    lines = [line.rstrip() for line in text.split(b"\n")]
    while lines and not lines[-1]:
        lines.pop()
    return lines


def _first_difference(got: list[bytes], want: list[bytes], unit: str) -> str:
    """Where the output goes wrong, showing what the program printed and never what was expected of it."""
    for number, (ours, theirs) in enumerate(zip(got, want, strict=False), 1):
        if ours != theirs:
            return f"{unit} {number} is wrong: {ours[:SHOWN].decode('utf-8', 'replace')!r}"
    if len(got) != len(want):
        return f"{len(got)} {unit}s of output, {'more' if len(got) > len(want) else 'fewer'} than expected"
    return ""
