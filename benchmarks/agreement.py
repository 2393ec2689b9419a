"""HumanEval's verdicts, ours against those of the set's own harness: every reference, every untouched stub, and mutants
of the references. Each difference is named."""

from __future__ import annotations

import argparse
import sys
from collections import Counter

import anyio
from measure import report
from official import judge_officially

from codeenv.grading import box_spec, grade, workspace_of
from codeenv.mutants import mutants
from codeenv.sandbox import get_provider
from codeenv.sandbox.archive import Archive
from codeenv.sources import load_tasks
from codeenv.task import Task

LIKELY = 60.0  # seconds for one that the two do not agree on, asked again: a busy machine is no difference


def submissions(tasks: list[Task], count: int) -> list[tuple[Task, str, str]]:
    """Task, what it is, and the code of `solution.py`."""
    found: list[tuple[Task, str, str]] = []
    for task in tasks:
        assert task.solution is not None
        made = mutants(task.solution, task.files, count=count, seed=f"0 {task.id}")
        codes = [("reference", task.solution), ("stub", task.files), *((one.name, one.files) for one in made)]
        found += [(task, name, files["solution.py"].decode()) for name, files in codes]
    return found


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of a table")
    parser.add_argument("--every", type=int, default=1, help="only every so many tasks")
    parser.add_argument("--mutants", type=int, default=5, help="mutants of each reference")
    parser.add_argument("--jobs", type=int, default=2, help="gradings at a time")
    wanted = parser.parse_args()
    provider = get_provider("bubblewrap")
    every = submissions(load_tasks("humaneval")[:: wanted.every], wanted.mutants)

    async def ours(task: Task, code: str) -> bool:
        left = workspace_of(task).overlay(Archive.of({"solution.py": code.encode()}))
        return (await grade(task, left, provider, box_spec(task))).solved

    async def officially(task: Task, code: str, timeout: float) -> bool:
        return (await judge_officially([(task.id, "\n" + code)], workers=1, timeout=timeout))[0][0]

    mine: dict[int, bool] = {}
    limiter = anyio.CapacityLimiter(wanted.jobs)

    async def one(number: int) -> None:
        async with limiter:
            mine[number] = await ours(*every[number][::2])

    # The completion stands below the prompt, whose stub it replaces: a whole function is as good as a body.
    theirs, _ = await judge_officially([(task.id, "\n" + code) for task, _, code in every], workers=wanted.jobs)
    async with anyio.create_task_group() as group:
        for number in range(len(every)):
            group.start_soon(one, number)
    differences: list[str] = []
    counts: Counter[tuple[str, str]] = Counter()
    for number, (task, name, code) in enumerate(every):
        what = name if name in ("reference", "stub") else "mutant"
        we, they = mine[number], theirs[number]
        if we != they:
            we, they = await ours(task, code), await officially(task, code, LIKELY)
        counts[what, "all"] += 1
        counts[what, "ours"] += we
        counts[what, "theirs"] += they
        if we != they:
            counts[what, "differ"] += 1
            differences.append(f"{task.id}, {name}: ours {we}, theirs {they}")
    rows: list[dict[str, object]] = [
        {"work": what, "all": counts[what, "all"], "we pass": counts[what, "ours"], "they pass": counts[what, "theirs"],
         "differ": counts[what, "differ"]}
        for what in ("reference", "stub", "mutant")
    ]  # fmt: skip
    report("HumanEval: our verdicts and its own harness's", rows, as_json=wanted.json, notes=differences)
    sys.exit(bool(differences))


anyio.run(main)
