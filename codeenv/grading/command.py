"""The `command` kind: any language. A command of the task's judges the workspace by its exit code. What it runs from is
the task's, in a fresh box, and neither its environment nor its directory is the workspace's; what it then runs
of the workspace has the same rights as itself (`docs/trust.md`)."""

from __future__ import annotations

import secrets

from codeenv.graders import CommandGrader
from codeenv.grading.boxes import Boxes
from codeenv.grading.report import Report, shorten
from codeenv.grading.verdict import TestResult
from codeenv.grading.workspace import tests_of
from codeenv.sandbox.api import ExecResult, ExportTooLarge, Sandbox
from codeenv.sandbox.archive import Archive
from codeenv.task import Task

OUTPUT_LIMIT = 16 * 1024
SHOWN = 300


async def run(task: Task, grader: CommandGrader, workspace: Archive, boxes: Boxes) -> Report:
    """One result, `command`: passed when the exit code is 0, the hidden tests are as they were when it had ended, and
    the receipt is there if one is asked for."""
    word = secrets.token_hex(16)
    async with boxes.open(workspace) as box:
        folder = f"{box.scratch}/hidden-tests"
        await box.import_(tests_of(task), folder)
        done = await box.exec(
            grader.command,
            cwd=folder,
            env={"WORKSPACE": box.workdir, "PYTHONNOUSERSITE": "1"},
            stdin=f"{word}\n".encode() if grader.receipt else b"",
            timeout=grader.timeout,
            output_limit=OUTPUT_LIMIT,
        )
        message = _fault(done, grader, word)
        if not message and not await _untouched(task, box, folder):
            message = "the hidden tests were changed while they ran"
    reason = f"the command did not end within {grader.timeout:g} s" if done.timed_out else ""
    result = TestResult(id="command", passed=not message, message=shorten(message), seconds=done.seconds)
    return Report(done.exit_code, (result,), reason)


def _fault(done: ExecResult, grader: CommandGrader, word: str) -> str:
    said = done.stderr.strip() or done.stdout.strip()
    shown = said[-SHOWN:].decode("utf-8", "replace").strip().replace(word, "")
    if done.timed_out or done.exit_code != 0:
        text = f"no end within {grader.timeout:g} s" if done.timed_out else f"exit code {done.exit_code}"
        return "; ".join(filter(None, [f"{text}: {shown}" if shown else text, done.notice]))
    if grader.receipt and done.stdout.rstrip().rpartition(b"\n")[2].strip() != word.encode():
        return "exit code 0, but the command did not come to its end: its last line is not the word it was given"
    return ""


async def _untouched(task: Task, box: Sandbox, folder: str) -> bool:
    try:
        left = await box.export(folder, stop_processes=True)
    except (ExportTooLarge, OSError):
        return False
    return all(left.entries.get(entry.path) == entry for entry in tests_of(task))
