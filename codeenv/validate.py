"""Whether tasks are sound: the reference passes every time, the untouched workspace fails, every wrong solution
fails."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial

import anyio
from anyio import CapacityLimiter, to_thread
from anyio.streams.memory import MemoryObjectSendStream

from codeenv.grading import box_spec, grade, workspace_of
from codeenv.grading.verdict import Verdict
from codeenv.sandbox.api import SandboxError, SandboxProvider, SandboxSpec
from codeenv.sandbox.archive import Archive
from codeenv.task import Task

RUNS = 3
JOBS = 2
NAMED_TESTS = 5
MESSAGE_LIMIT = 200  # characters of a failing test's message


@dataclass(frozen=True)
class Fault:
    """What is wrong with a task. `check` is `reference`, `untouched` or `wrong/NAME`."""

    check: str
    message: str


@dataclass
class TaskReport:
    """One task's validation. `faults` are the task's; `errors` are the sandbox's, and say nothing of the task."""

    task: str
    faults: list[Fault] = field(default_factory=list[Fault])
    errors: list[Fault] = field(default_factory=list[Fault])
    gradings: int = 0
    seconds: float = 0.0
    """Wall time from the first grading's start to the last one's end."""
    flake_rate: float | None = None
    """The part of the reference's gradings that failed, without retries; None when none was made."""
    ids: tuple[str, ...] = ()
    """The tests that every run of a sound reference had, for `codeenv validate --record`."""

    @property
    def sound(self) -> bool:
        """Every check was made and passed."""
        return not self.faults and not self.errors


@asynccontextmanager
async def validate(
    tasks: Sequence[Task],
    provider: SandboxProvider,
    *,
    spec: SandboxSpec | None = None,
    runs: int = RUNS,
    jobs: int = JOBS,
) -> AsyncGenerator[AsyncIterator[TaskReport]]:
    """Grade every task's own solutions, at most `jobs` gradings at a time; the block's value yields a report as each
    task is done.

    :param runs: times that the reference must pass. :param spec: what the boxes are like where a task does not say.
    :raises UnsupportedSpec: the sandbox cannot provide what a task needs; before anything is graded.
    """
    for needed in dict.fromkeys(box_spec(task, spec).model_dump_json() for task in tasks):
        await to_thread.run_sync(provider.check, SandboxSpec.model_validate_json(needed))
    send, receive = anyio.create_memory_object_stream[TaskReport](len(tasks))
    grading, started = CapacityLimiter(jobs), CapacityLimiter(jobs)
    async with anyio.create_task_group() as group, receive:
        async with send:
            for task in tasks:
                box = box_spec(task, spec)
                group.start_soon(_validate_one, task, provider, box, runs, grading, started, send.clone())
        yield receive
        group.cancel_scope.cancel()  # a caller that left early wants no more


async def _validate_one(
    task: Task,
    provider: SandboxProvider,
    spec: SandboxSpec,
    runs: int,
    grading: CapacityLimiter,
    started: CapacityLimiter,
    send: MemoryObjectSendStream[TaskReport],
) -> None:
    async with send, started:
        report = TaskReport(task.id)
        begin = time.monotonic()
        verdicts: dict[str, list[Verdict]] = {}

        # What a retry would hide is what is looked for.
        once = task.model_copy(update={"grader": task.grader.model_copy(update={"retries": 0})})

        async def run(check: str, left: Archive) -> None:
            try:
                async with grading:
                    verdicts.setdefault(check, []).append(await grade(once, left, provider, spec))
            except SandboxError as error:
                report.errors.append(Fault(check, f"{error.stage}: {error}"))

        async with anyio.create_task_group() as group:
            for check, left in _submissions(task, runs):
                report.gradings += 1
                group.start_soon(run, check, left)
        report.faults += _faults(task, verdicts, runs)
        if reference := verdicts.get("reference"):
            report.flake_rate = sum(not verdict.solved for verdict in reference) / len(reference)
            if report.sound and not report.flake_rate:
                report.ids = tuple(sorted(test.id for test in reference[0].tests))
        report.seconds = time.monotonic() - begin
        await send.send(report)


def _submissions(task: Task, runs: int) -> Iterator[tuple[str, Archive]]:
    workspace = workspace_of(task)
    laid_over = partial(Archive.of, modes=dict.fromkeys(task.executable, 0o755))
    if task.solution is not None:
        for _ in range(runs):
            yield "reference", workspace.overlay(laid_over(task.solution))
    yield "untouched", workspace
    for name, files in sorted(task.wrong.items()):
        yield f"wrong/{name}", workspace.overlay(laid_over(files))


def _faults(task: Task, verdicts: Mapping[str, list[Verdict]], runs: int) -> Iterator[Fault]:
    if task.solution is None:
        yield Fault("reference", "there is no solution, so nothing shows that the task can be solved")
    reference = verdicts.get("reference", [])
    failed = [verdict for verdict in reference if not verdict.solved]
    if failed and not (task.grader.retries and len(failed) < len(reference)):
        how = "every time" if len(failed) == len(reference) else f"{len(failed)} of {runs} times: the tests are flaky"
        yield Fault("reference", f"fails {how}: {_why(failed)}")
    times = Counter(test.id for verdict in reference for test in verdict.tests)
    odd = sorted(name for name, count in times.items() if count != len(reference))
    if not failed and odd:
        yield Fault("reference", f"the tests differ from run to run: {', '.join(odd[:NAMED_TESTS])}")
    for check, found in sorted(verdicts.items()):
        for verdict in found:
            if check != "reference" and verdict.solved:
                yield Fault(check, f"passes all {verdict.tests_total} tests; it must fail")


def _why(failed: Sequence[Verdict]) -> str:
    names = Counter(test.id for verdict in failed for test in verdict.tests if not test.passed)
    first = failed[0]
    message = next((test.message for test in first.tests if not test.passed and test.message), "")
    shown = ", ".join(name for name, _ in names.most_common(NAMED_TESTS))
    more = ", ..." if len(names) > NAMED_TESTS else ""
    parts = [first.reason, shown + more, " ".join(message.split())[:MESSAGE_LIMIT]]
    return "; ".join(filter(None, parts)) or f"exit code {first.exit_code} without evidence of any test"
