"""Validating `starter` whole: every reference three times, every untouched workspace and wrong solution once. The time
and what it goes on: the tests themselves, the start of pytest, the boxes, waiting for time limits."""

from __future__ import annotations

import resource
import statistics
from time import perf_counter

import anyio
from measure import options, report

from codeenv.graders import PytestGrader
from codeenv.grading import box_spec, grade, workspace_of
from codeenv.sandbox import get_provider
from codeenv.sandbox.api import SandboxProvider, SandboxSpec
from codeenv.sources import load_tasks
from codeenv.task import Task
from codeenv.validate import validate

EMPTY = Task(id="empty", instruction="-", tests={"test_empty.py": b"def test_nothing():\n    pass\n"})
ALONE = 20


def cpu_seconds() -> float:
    """Of this process and of all processes below it that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


async def cost_of(provider: SandboxProvider) -> tuple[float, float]:
    """CPU seconds of one box alone, and of grading an empty test, which is a box and the start of pytest."""
    start = cpu_seconds()
    for _ in range(ALONE):
        async with provider.create(SandboxSpec()):
            pass
    boxes = (cpu_seconds() - start) / ALONE
    start = cpu_seconds()
    for _ in range(ALONE):
        await grade(EMPTY, workspace_of(EMPTY), provider, box_spec(EMPTY))
    return boxes, (cpu_seconds() - start) / ALONE


async def main() -> None:
    wanted = options(__doc__ or "")
    provider = get_provider("bubblewrap")
    tasks = load_tasks("starter")
    provider.check(box_spec(EMPTY))
    box, empty = await cost_of(provider)
    rounds: list[tuple[float, float, int, list[tuple[float, str]]]] = []
    for _ in range(wanted.rounds or 1):
        begin, cpu = perf_counter(), cpu_seconds()
        async with validate(tasks, provider) as reports:
            found = [one async for one in reports]
        assert all(one.sound for one in found), [one for one in found if not one.sound]
        slowest = sorted(((one.seconds, one.task) for one in found), reverse=True)[:5]
        rounds.append((perf_counter() - begin, cpu_seconds() - cpu, sum(one.gradings for one in found), slowest))
    wall = statistics.median(one[0] for one in rounds)
    used = statistics.median(one[1] for one in rounds)
    gradings, slowest = rounds[-1][2:]
    by_pytest = sum(3 + 1 + len(task.wrong) for task in tasks if isinstance(task.grader, PytestGrader))
    parts = {
        "boxes": gradings * box,
        "start of pytest": by_pytest * (empty - box),
        "tests and programs": used - gradings * box - by_pytest * (empty - box),
    }
    rows: list[dict[str, object]] = [
        {"work": f"all: {len(tasks)} tasks, {gradings} gradings", "wall s": wall, "CPU s": used, "of CPU": 1.0}
    ]
    rows += [{"work": name, "wall s": "", "CPU s": part, "of CPU": part / used} for name, part in parts.items()]
    notes = [
        f"{gradings / wall:.1f} gradings/s; two at a time",
        f"slowest tasks, s: {', '.join(f'{name} {seconds:.1f}' for seconds, name in slowest)}",
        "a wrong solution that is too slow waits for its time limit",
    ]
    report("Validating starter", rows, as_json=wanted.json, notes=notes)


anyio.run(main)
