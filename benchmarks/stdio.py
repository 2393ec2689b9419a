"""The `stdio` grader: fifty cases of one program in one box, against the same program started fifty times bare."""

from __future__ import annotations

import tempfile
from pathlib import Path

import anyio
from measure import alternate, options, report

from codeenv.grading import box_spec, grade, workspace_of
from codeenv.sandbox import get_provider
from codeenv.sandbox.python import resolve_python
from codeenv.task import Task

CASES = 50
PROGRAM = b"print(sum(int(word) for word in input().split()))\n"


async def main() -> None:
    wanted = options(__doc__ or "")
    rounds = wanted.rounds or 7
    provider = get_provider("bubblewrap")
    inputs = [f"{number} {number * number}\n".encode() for number in range(CASES)]
    tests = {f"{number:02}.in": data for number, data in enumerate(inputs)}
    tests |= {f"{number:02}.out": b"%d\n" % (number + number * number) for number in range(CASES)}
    task = Task(
        id="stdio", instruction="-", files={"main.py": PROGRAM}, tests=tests,
        grader={"kind": "stdio", "command": ["python3", "main.py"]},  # type: ignore[arg-type]
    )  # fmt: skip

    async def judged() -> None:
        verdict = await grade(task, workspace_of(task), provider, box_spec(task))
        assert verdict.solved, verdict

    with tempfile.TemporaryDirectory() as folder:
        await anyio.Path(folder, "main.py").write_bytes(PROGRAM)
        python = resolve_python().executable

        async def bare() -> None:
            for data in inputs:
                done = await anyio.run_process([python, "main.py"], input=data, cwd=folder)
                assert done.stdout

        medians = await alternate({"grade": judged, "bare": bare}, rounds=rounds, warm_up=1)
    rows: list[dict[str, object]] = [
        {"work": f"{CASES} cases, started bare, ms", "figure": medians["bare"]},
        {"work": f"{CASES} cases graded in one box, ms", "figure": medians["grade"]},
        {"work": "... of the bare ones", "figure": medians["grade"] / medians["bare"]},
    ]
    notes = [f"medians of {rounds} rounds; {Path(python).name}; bare: no isolation, no look at what a case leaves"]
    report("The stdio grader", rows, as_json=wanted.json, notes=notes)


anyio.run(main)
