"""The `functions` grader: calls per second across the relay, a task of twenty tests against the same tests in one bare
process, gradings per second, and what they are spent on."""

from __future__ import annotations

import statistics
import sys
import tempfile
from pathlib import Path
from time import perf_counter

import anyio
from measure import alternate, options, report

from codeenv.grading import Verdict, box_spec, grade, workspace_of
from codeenv.grading.functions.program import command
from codeenv.sandbox import get_provider
from codeenv.sandbox.api import SandboxSpec
from codeenv.sandbox.python import resolve_python
from codeenv.task import Task

SOLUTION = b"""
def add(a, b):
    return a + b

def words(text):
    found = {}
    for word in text.split():
        found[word] = found.get(word, 0) + 1
    return found
"""
CALLS = 5000
MANY = f"""
from solution import add

def test_many():
    for number in range({CALLS}):
        assert add(number, 1) == number + 1
""".encode()
TWENTY = b"\nfrom solution import add, words\n" + b"".join(
    b"""
def test_add_%d():
    assert add(%d, 1) == %d + 1
    assert words("a b a") == {"a": 2, "b": 1}
    try:
        add(1, "x")
    except TypeError:
        pass
    else:
        assert False
"""
    % (number, number, number)
    for number in range(20)
)
BARE = b"""
import test_it
for name, function in list(vars(test_it).items()):
    if name.startswith("test"):
        function()
"""


def task_of(tests: bytes) -> Task:
    return Task(
        id="functions", instruction="-", files={"solution.py": SOLUTION}, tests={"test_it.py": tests},
        grader={"kind": "functions"},  # type: ignore[arg-type]
    )  # fmt: skip


async def main() -> None:
    wanted = options(__doc__ or "")
    rounds = wanted.rounds or 15
    provider = get_provider("bubblewrap")

    async def judged(task: Task) -> Verdict:
        verdict = await grade(task, workspace_of(task), provider, box_spec(task))
        assert verdict.solved, verdict
        return verdict

    many, twenty = task_of(MANY), task_of(TWENTY)
    speeds = [CALLS / (await judged(many)).tests[0].seconds for _ in range(max(3, rounds // 3))]
    rows: list[dict[str, object]] = [
        {"work": "plain calls a second", "figure": statistics.median(speeds), "bound": "4000"}
    ]
    with tempfile.TemporaryDirectory() as folder:
        for name, data in {"solution.py": SOLUTION, "test_it.py": TWENTY, "all.py": BARE}.items():
            await anyio.Path(folder, name).write_bytes(data)
        python = resolve_python().executable

        async def bare() -> None:
            await anyio.run_process([python, "all.py"], cwd=folder)

        async def two_boxes() -> None:
            async with anyio.create_task_group() as group:
                for _ in range(2):
                    group.start_soon(one_box)

        async def one_box() -> None:
            async with provider.create(SandboxSpec(ttl_seconds=60)):
                pass

        async def idle() -> None:
            """Both interpreters as the grader starts them, in parallel, without boxes."""
            async with anyio.create_task_group() as group:
                for role in ("tests", "solution"):
                    flags = [flag for flag in command(role) if flag.startswith("-") and flag != "-c"]
                    group.start_soon(anyio.run_process, [python, *flags, "-c", "pass"])

        work = {"grade": lambda: judged(twenty), "bare": bare, "boxes": two_boxes, "pythons": idle}
        medians = await alternate(work, rounds=rounds)
    rows += [
        {"work": "20 tests, one bare process, ms", "figure": medians["bare"], "bound": ""},
        {"work": "20 tests graded, ms", "figure": medians["grade"], "bound": ""},
        {"work": "... of the bare process", "figure": medians["grade"] / medians["bare"], "bound": "2.5"},
        {"work": "... of it two boxes made and destroyed, ms", "figure": medians["boxes"], "bound": ""},
        {"work": "... of it two bare Pythons' start, ms", "figure": medians["pythons"], "bound": ""},
    ]
    rates: list[float] = []
    for _ in range(3):
        started = perf_counter()
        limiter = anyio.CapacityLimiter(2)

        async def one(limiter: anyio.CapacityLimiter = limiter) -> None:
            async with limiter:
                await judged(twenty)

        async with anyio.create_task_group() as group:
            for _ in range(20):
                group.start_soon(one)
        rates.append(20 / (perf_counter() - started))
    rows.append({"work": "such gradings a second, two at a time", "figure": statistics.median(rates), "bound": "20"})
    notes = [
        f"medians of {rounds} rounds; Python {sys.version.split()[0]}, {Path(python).name}",
        "a bare process is a plain `python3` that imports both modules and runs the tests without isolation",
    ]
    report("The functions grader", rows, as_json=wanted.json, notes=notes)


anyio.run(main)
