"""The `stdio` kind: a program, its input, its output. The comparison is made here, outside the program's box, which
never holds an expected output, and no input but that of the case that runs."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from functools import partial

from anyio import to_thread

from codeenv.graders import StdioGrader
from codeenv.grading.boxes import Boxes
from codeenv.grading.compare import SHOWN, difference
from codeenv.grading.report import NOT_RUN, Report, shorten
from codeenv.grading.together import together
from codeenv.grading.verdict import TestResult
from codeenv.sandbox.api import ExecResult, ExportTooLarge, Sandbox
from codeenv.sandbox.archive import Archive
from codeenv.task import Task

OUTPUT_SLACK = 64 * 1024
LARGE = 256 * 1024  # bytes, whose comparison takes long enough to hold up every other episode
SHARED_MEMORY = tuple(f"/proc/sysvipc/{name}" for name in ("shm", "msg", "sem"))  # outlives its processes


async def run(task: Task, grader: StdioGrader, workspace: Archive, boxes: Boxes) -> Report:
    """Every case in order of name, until the time for all of them is over. Exit code 0 when all pass, else 1."""
    deadline = time.monotonic() + grader.timeout
    command = _limited(grader)
    results: list[TestResult] = []
    reason = ""
    timeouts = 0
    async with AsyncExitStack() as stack:
        bench = _Bench(boxes, workspace, stack)
        for name in sorted(path[:-3] for path in task.tests if path.endswith(".in")):
            if time.monotonic() >= deadline:
                reason = f"the {grader.timeout:g} s for all cases ran out"
            elif timeouts == grader.max_timeouts:
                reason = f"{timeouts} cases ran out of their {grader.case_timeout:g} s"
            if reason:
                results.append(TestResult(id=name, passed=False, message=NOT_RUN))
                continue
            expected = task.tests[f"{name}.out"]
            box = await bench.ready()
            left = max(0.0, deadline - time.monotonic())
            done = await box.exec(
                command,
                stdin=task.tests[f"{name}.in"],
                timeout=min(grader.case_timeout, left),
                output_limit=2 * (len(expected) + OUTPUT_SLACK),
            )
            timeouts += done.timed_out
            if len(expected) + len(done.stdout) > LARGE:
                message = await to_thread.run_sync(_fault, done, expected, grader)
            else:
                message = _fault(done, expected, grader)
            results.append(TestResult(id=name, passed=not message, message=shorten(message), seconds=done.seconds))
    return Report(0 if all(result.passed for result in results) else 1, tuple(results), reason)


def _limited(grader: StdioGrader) -> tuple[str, ...]:
    """The command with all the stack that the box allows, as contests have it: CPython 3.11 with the usual 8 MiB dies
    of a recursion through C (`lru_cache`, `sorted`) of 20,000 levels, whatever recursion limit a program has set. And
    under its ceiling of memory: RLIMIT_DATA counts what is written to, not address space, of which many runtimes
    reserve far more than they use."""
    stack = 'ulimit -s "$(ulimit -H -s)" 2>/dev/null'
    memory = "" if grader.case_memory_mb is None else f"ulimit -d {grader.case_memory_mb * 1024} && "
    return ("/bin/sh", "-c", f'{stack}; {memory}exec "$@"', "sh", *grader.command)


class _Bench:
    """The box that the cases run in, one after the other: no case finds anything of an earlier one. Starting a box
    takes longer than most programs, and few programs leave anything: so the box is looked at, and replaced only then.
    """

    def __init__(self, boxes: Boxes, workspace: Archive, stack: AsyncExitStack) -> None:
        self._boxes = boxes
        self._workspace = workspace
        self._stack = stack
        self._box: Sandbox | None = None
        self._clean: object = None

    async def ready(self) -> Sandbox:
        """A box as it was before the first case, with no process in it."""
        if self._box is not None and await self._state(self._box) == self._clean:
            return self._box
        await self._stack.aclose()
        self._box = await self._stack.enter_async_context(self._boxes.open(self._workspace))
        self._clean = await self._state(self._box)
        return self._box

    async def _state(self, box: Sandbox) -> object:
        """All that a command can leave behind in the box, whose processes are ended first."""
        shared = self._boxes.provider.capabilities.isolation != "none"  # else /dev/shm and the like are the host's
        try:
            work = await box.export(stop_processes=True)
            trees = [box.scratch, "/dev/shm"] if shared else [box.scratch]
            files = SHARED_MEMORY if shared else ()
            others: list[Callable[[], Awaitable[object]]] = [partial(box.export, path) for path in trees]
            others += [partial(box.read_file, path) for path in files]
            return work, await together(*others)
        except (ExportTooLarge, OSError):
            return object()  # too much to look at: like nothing else


def _fault(done: ExecResult, expected: bytes, grader: StdioGrader) -> str:
    if done.timed_out:
        return f"no end within {done.seconds:.1f} s"
    if done.exit_code != 0:
        said = done.stderr[-SHOWN:].decode("utf-8", "replace").strip()
        return "; ".join(filter(None, [f"exit code {done.exit_code}: {said}", done.notice]))
    if done.stdout_bytes > len(done.stdout):
        return f"{done.stdout_bytes} bytes of output, far more than expected"
    return difference(
        done.stdout,
        expected,
        grader.compare,
        grader.tolerance,
        relative=grader.relative,
        ignore_case=grader.ignore_case,
    )
