"""100,000 tasks: seconds and memory to load them and to build the environment, whole and as a sample; beside the floor,
which is to read the file as JSON a line at a time, and beside all tasks in memory. Each in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from measure import options, report

TASKS = 100_000
STATEMENT = (
    "Read integers from standard input until its end, and print the {n}th largest of those that are divisible by {n}. "
)
COLUMNS = {"instruction": "question", "tests": "tests", "solution": "code", "id": "name", "metadata.level": "level"}

PARTS = {
    "json.loads of each line": "for line in open(path, 'rb'): json.loads(line)",
    "open_tasks": "tasks = open_tasks(path, **own); len(tasks)",
    "open_tasks, a filter": "tasks = open_tasks(path, filter={'level': {'<': 10}}, **own); len(tasks)",
    "open_tasks, limit=1000, seed=1": "tasks = open_tasks(path, limit=1000, seed=1, **own); len(tasks)",
    "load_tasks: all in memory": "tasks = load_tasks(path, **own)",
    "load_environment, limit=1000, seed=1": "env = load_environment(path, limit=1000, seed=1, **own)",
    "load_environment": "env = load_environment(path, **own)",
    "load_environment, system_prompt=''": "env = load_environment(path, system_prompt='', **own)",
}
PROGRAM = """
import gc, json, sys
from time import perf_counter
from codeenv.load import load_environment
from codeenv.sources import load_tasks, open_tasks
path, own, work = sys.argv[1], {"columns": json.loads(sys.argv[2]), "kind": "stdio"}, sys.argv[3]
load_environment("starter", limit=1)  # what is imported and made once
def resident(name):
    return next(int(line.split()[1]) / 1024 for line in open("/proc/self/status") if line.startswith(name))
before = resident("VmRSS")
started = perf_counter()
exec(work)
seconds = perf_counter() - started
gc.collect()
print(json.dumps([seconds, resident("VmRSS") - before, resident("VmHWM") - before]))
"""


def row(number: int) -> dict[str, object]:
    cases = [{"input": f"{n}\n{number}\n" * 8, "output": f"{n * number}\n"} for n in range(4)]
    return {
        "name": f"task-{number}",
        "question": STATEMENT.format(n=number) * 6,
        "tests": cases,
        "code": f"import sys\nnumbers = [int(line) for line in sys.stdin]\nprint(sorted(numbers)[-{number % 7 + 1}])\n",
        "level": number % 100,
    }


def main() -> None:
    wanted = options(__doc__ or "")
    rows: list[dict[str, object]] = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "rows.jsonl")
        with path.open("w") as file:
            file.writelines(json.dumps(row(number)) + "\n" for number in range(TASKS))
        size = path.stat().st_size / 1024 / 1024
        floor = 0.0
        for name, work in PARTS.items():
            arguments = [sys.executable, "-c", PROGRAM, str(path), json.dumps(COLUMNS), work]
            done = subprocess.run(
                arguments, capture_output=True, text=True, check=True, env={**os.environ, "HF_HUB_OFFLINE": "1"}
            )
            seconds, kept, most = json.loads(done.stdout.splitlines()[-1])
            floor = floor or seconds
            rows.append(
                {"work": name, "s": seconds, "times json": seconds / floor, "MiB kept": kept, "MiB at most": most}
            )
    notes = [
        f"{TASKS:,} rows of our own, {size:.0f} MiB of JSON lines, by a mapping of columns",
        "memory beyond a process that has loaded an environment of one task",
        "a row of the environment holds its prompt, and the system prompt once more",
    ]
    report("Large task sets", rows, as_json=wanted.json, notes=notes)


if __name__ == "__main__":
    main()
