"""100,000 tasks: seconds and memory to load them and to build the environment, whole and as a sample, against the floor:
to read the file as JSON, a row at a time; and to keep all tasks in memory. Each in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter

from measure import options, report

TASKS = 100_000
STATEMENT = (
    "Read integers from standard input until its end, and print the {n}th largest of those that are divisible by {n}. "
)
COLUMNS = {"instruction": "question", "tests": "tests", "solution": "code", "id": "name", "metadata.level": "level"}

PARTS = {
    "json.loads of each line": "for line in open(path, 'rb'): json.loads(line)",
    "open_tasks, one pass": "tasks = open_tasks(path, columns=columns, kind='stdio'); len(tasks)",
    "open_tasks, filter": "tasks = open_tasks(path, columns=columns, kind='stdio', filter={'level': {'<': 10}}); len(tasks)",
    "open_tasks, limit=1000, seed=1": "tasks = open_tasks(path, columns=columns, kind='stdio', limit=1000, seed=1); len(tasks)",
    "load_tasks: all in memory": "tasks = load_tasks(path, columns=columns, kind='stdio')",
    "load_environment, limit=1000, seed=1": "env = load_environment(path, columns=columns, kind='stdio', limit=1000, seed=1)",
    "load_environment": "env = load_environment(path, columns=columns, kind='stdio')",
    "load_environment, system_prompt=''": "env = load_environment(path, columns=columns, kind='stdio', system_prompt='')",
}
PROGRAM = """
import gc, json, sys
from time import perf_counter
from codeenv.load import load_environment
from codeenv.sources import load_tasks, open_tasks
path, columns, work = sys.argv[1], json.loads(sys.argv[2]), sys.argv[3]
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
        started = perf_counter()
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
        f"{TASKS:,} rows of our own, {size:.0f} MiB of JSON lines, by a mapping of columns; written in {perf_counter() - started:.0f} s with all of this",
        "memory beyond a process that has loaded a one-task environment; a row of the environment holds its prompt, and the system prompt once more in each",
    ]
    report("Large task sets", rows, as_json=wanted.json, notes=notes)


if __name__ == "__main__":
    main()
