"""Grading: the exported workspace, a fresh box, the hidden tests, a verdict.

A kind is one small module with `async run(task, grader, workspace, boxes) -> Report`, listed in `KINDS`: it opens the
boxes that it needs and lays the workspace into them before any hidden test. A box serves one grading and goes.
"""

from __future__ import annotations

import os
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any

import anyio
from anyio.lowlevel import RunVar

from codeenv.grading import command as command_kind
from codeenv.grading import functions as functions_kind
from codeenv.grading import pytest as pytest_kind
from codeenv.grading import stdio as stdio_kind
from codeenv.grading.boxes import FAR_AWAY, Boxes
from codeenv.grading.report import Report
from codeenv.grading.verdict import Outcome, TestResult, Verdict
from codeenv.grading.workspace import judged_workspace, workspace_of
from codeenv.sandbox.api import MiB, SandboxError, SandboxLost, SandboxProvider, SandboxSpec
from codeenv.sandbox.archive import Archive
from codeenv.task import Task

__all__ = [
    "KINDS",
    "Boxes",
    "Outcome",
    "Report",
    "TestResult",
    "Verdict",
    "box_spec",
    "grade",
    "judged_workspace",
    "turn",
    "workspace_of",
]

KINDS: Mapping[str, Callable[[Task, Any, Archive, Boxes], Awaitable[Report]]] = {
    "command": command_kind.run,
    "functions": functions_kind.run,
    "pytest": pytest_kind.run,
    "stdio": stdio_kind.run,
}
"""What judges, by the kind of the task's grader. Each takes its own grader's settings."""

BLOCK = 4096  # bytes of a disk that a file takes at least
GRADING_RESERVE = 30.0  # seconds that a grading may need beyond its tests: boxes, files


def box_spec(task: Task, defaults: SandboxSpec | None = None) -> SandboxSpec:
    """What this task's boxes must be: the environment's settings, the task's own limits over them."""
    base = defaults or SandboxSpec()
    limits = task.limits.model_dump(exclude_none=True, exclude={"command_timeout"})
    needed = [*base.packages, *task.packages, *task.grader.needs]
    wanted = {"python": task.python, "image": task.image, "workdir": task.workdir}
    own = {key: value for key, value in wanted.items() if value is not None}
    return base.model_copy(update={**limits, **own, "packages": tuple(dict.fromkeys(needed))})


_grading: RunVar[anyio.CapacityLimiter] = RunVar("codeenv_gradings")


def turn(provider: SandboxProvider) -> AbstractAsyncContextManager[object]:
    """A grading's turn. On our own cores they wait for each other: crowded, an honest solution would miss its time
    limit. There is one more than there are cores, whose boxes are made and files are moved while others run."""
    if not provider.capabilities.shares_host:
        return nullcontext()
    limiter = _grading.get(None)
    if limiter is None:
        limiter = anyio.CapacityLimiter((os.cpu_count() or 1) + 1)
        _grading.set(limiter)
    return limiter


async def grade(
    task: Task,
    left: Archive,
    provider: SandboxProvider,
    spec: SandboxSpec,
    *,
    retries: int = 0,
    fresh_hashes: bool = False,
) -> Verdict:
    """Judge what a policy left. A solution that loops, crashes or exhausts its ceilings has failed.

    :param retries: where the task does not say, times that a failed grade is made again in fresh boxes; the first pass
        stands, and `attempts` shows that it took more than one.
    :param fresh_hashes: whether what depends on the order of a set may differ from one grade to the next, as it does
        between Pythons that are started; in those of `functions`, which are forked, it is mostly the same.
    :raises SandboxError: the grader's own box could not be made, was lost or broke; its stage starts with "grading".
    """
    started = time.monotonic()
    judged = judged_workspace(task, left)
    room = sum(-(-entry.size // BLOCK) * BLOCK for entry in judged if entry.kind == "file")
    if room > spec.disk_mb * MiB:
        # Full of holes or hard links, it takes more room in a fresh box than where it was made: the policy's doing.
        return Verdict(outcome="failed", reason=f"the workspace takes {room} bytes, more than the box's disk")
    longest = task.grader.timeout * (1 if provider.capabilities.shares_host else 1 + FAR_AWAY)
    spec = spec.model_copy(update={"ttl_seconds": longest + GRADING_RESERVE})
    allowed = 1 + (retries if task.grader.retries is None else task.grader.retries)
    attempts, solved = 0, False
    report = Report(1, ())
    while not solved and attempts < allowed:
        attempts += 1
        report = await _report(task, judged, Boxes(provider, spec, fresh_hashes))
        solved = report.exit_code == 0 and bool(report.tests) and all(test.passed for test in report.tests)
    return Verdict(
        outcome="solved" if solved else "failed",
        reward=float(solved),
        exit_code=report.exit_code,
        tests=report.tests,
        seconds=time.monotonic() - started,
        reason=report.reason,
        attempts=attempts,
    )


async def _report(task: Task, judged: Archive, boxes: Boxes) -> Report:
    """One grading, whose failures of the sandbox are ours and nobody else's."""
    started = time.monotonic()
    try:
        async with turn(boxes.provider):
            return await KINDS[task.grader.kind](task, task.grader, judged, boxes)
    except SandboxError as error:
        # Never as SandboxExpired: that is what a policy's own box does, and it costs the policy its reward.
        kind = SandboxLost if isinstance(error, SandboxLost) else SandboxError
        seconds = time.monotonic() - started
        raise kind(str(error), stage=f"grading: {error.stage}", seconds=seconds) from error
    except OSError as error:
        # What the box itself refuses (a full disk): what was to go in fits, so the box is at fault.
        seconds = time.monotonic() - started
        raise SandboxError(
            f"the grading box refused a file: {error}", stage="grading: import", seconds=seconds
        ) from error
