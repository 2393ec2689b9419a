"""Whether tasks are sound: the reference passes every time, the untouched workspace fails, every wrong solution
fails. And how much their tests see: how many mutants of the reference fail."""

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
from codeenv.grading.workspace import laid_over
from codeenv.mutants import Mutant, mutants
from codeenv.sandbox.api import SandboxError, SandboxProvider, SandboxSpec
from codeenv.sandbox.archive import Archive
from codeenv.task import Task

RUNS = 3
JOBS = 2
NAMED_TESTS = 5
MESSAGE_LIMIT = 200  # characters of a failing test's message
PATIENCE = 10.0
"""Times as long as the reference took, that a mutant may take; at least `LEAST` seconds. Many a mutant never ends."""
LEAST = 3.0


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
    digest: str = ""
    """The task's, when this was found."""
    grader: str = ""
    passed: int = 0
    """Of the reference's gradings."""
    mutants: int = 0
    """Graded; of a task that is not sound, none."""
    killed: int = 0
    """Of them, failed."""
    survived: tuple[str, ...] = ()
    """The mutants that pass all tests: the tests ask too little, or it means the same as the reference."""
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
    mutants: int = 0,
    seed: int = 0,
) -> AsyncGenerator[AsyncIterator[TaskReport]]:
    """Grade every task's own solutions, at most `jobs` gradings at a time; the block's value yields a report as each
    task is done.

    :param runs: times that the reference must pass. :param spec: what the boxes are like where a task does not say.
    :param mutants: how many mutants of each sound task's reference are graded as well; :param seed: which ones.
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
                one = _Validation(task, provider, box, runs, mutants, seed, grading)
                group.start_soon(one.run, started, send.clone())
        yield receive
        group.cancel_scope.cancel()  # a caller that left early wants no more


@dataclass
class _Validation:
    """One task's."""

    task: Task
    provider: SandboxProvider
    spec: SandboxSpec
    runs: int
    mutants: int
    seed: int
    grading: CapacityLimiter
    verdicts: dict[str, list[Verdict]] = field(default_factory=dict[str, list[Verdict]])

    async def run(self, started: CapacityLimiter, send: MemoryObjectSendStream[TaskReport]) -> None:
        async with send, started:
            report = TaskReport(self.task.id, digest=self.task.digest, grader=self.task.grader.kind)
            begin = time.monotonic()
            # What a retry would hide is what is looked for.
            once = self.task.model_copy(update={"grader": self.task.grader.model_copy(update={"retries": 0})})
            await self._grade(once, list(_submissions(self.task, self.runs)), report)
            report.faults += _faults(self.task, self.verdicts, self.runs)
            if reference := self.verdicts.get("reference"):
                report.passed = sum(verdict.solved for verdict in reference)
                report.flake_rate = 1 - report.passed / len(reference)
                if report.sound and not report.flake_rate:
                    report.ids = tuple(sorted(test.id for test in reference[0].tests))
                if report.sound and self.mutants:
                    await self._grade_mutants(once, reference, report)
            report.seconds = time.monotonic() - begin
            await send.send(report)

    async def _grade(self, task: Task, submissions: Sequence[tuple[str, Archive]], report: TaskReport) -> None:
        async def run(check: str, left: Archive) -> None:
            try:
                async with self.grading:
                    verdict = await grade(task, left, self.provider, self.spec, fresh_hashes=True)
                self.verdicts.setdefault(check, []).append(verdict)
            except SandboxError as error:
                report.errors.append(Fault(check, f"{error.stage}: {error}"))

        report.gradings += len(submissions)
        async with anyio.create_task_group() as group:
            for check, left in submissions:
                group.start_soon(run, check, left)

    async def _grade_mutants(self, task: Task, reference: Sequence[Verdict], report: TaskReport) -> None:
        made = await to_thread.run_sync(partial(_mutants, task, self.mutants, self.seed))
        checks = [(f"mutant/{mutant.name}", laid_over(task, mutant.files)) for mutant in made]
        await self._grade(_hurried(task, reference), checks, report)
        solved = [check for check, _ in checks if any(verdict.solved for verdict in self.verdicts.get(check, ()))]
        report.mutants = sum(check in self.verdicts for check, _ in checks)
        report.killed = report.mutants - len(solved)
        report.survived = tuple(check.removeprefix("mutant/") for check in solved)


def _mutants(task: Task, count: int, seed: int) -> list[Mutant]:
    return mutants(task.solution or {}, task.files, count=count, seed=f"{seed} {task.id}")


def _hurried(task: Task, reference: Sequence[Verdict]) -> Task:
    """The task with time limits that fit what its reference needs."""
    whole = max(verdict.seconds for verdict in reference)
    longest = max((test.seconds for verdict in reference for test in verdict.tests), default=whole)
    limits = {"timeout": whole, "call_timeout": longest, "case_timeout": longest}
    plain = task.grader.model_dump()
    enough = {name: min(plain[name], max(LEAST, PATIENCE * took)) for name, took in limits.items() if name in plain}
    return task.model_copy(update={"grader": task.grader.model_copy(update=enough)})


def _submissions(task: Task, runs: int) -> Iterator[tuple[str, Archive]]:
    if task.solution is not None:
        for _ in range(runs):
            yield "reference", laid_over(task, task.solution)
    yield "untouched", workspace_of(task)
    for name, files in sorted(task.wrong.items()):
        yield f"wrong/{name}", laid_over(task, files)


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
