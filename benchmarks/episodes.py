"""Scripted episodes per second: create, three writes, the tests in a fresh box, destroy; at concurrency 1, 8 and 32.

Rivals in one run: bare subprocesses and directories (the floor), our own program without isolation, our default
sandbox, and inspect_ai's `local` sandbox (isolates nothing; `pip install inspect-ai`) where it is installed.
"""

from __future__ import annotations

import shutil
import statistics
import sys
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from time import perf_counter, process_time

import anyio
from measure import options, report

from codeenv.grading import turn
from codeenv.sandbox import get_provider
from codeenv.sandbox.api import SandboxProvider, SandboxSpec
from codeenv.sandbox.python import resolve_python

FILES = {
    "stats.py": b"def mean(xs):\n    return sum(xs) / len(xs)\n",
    "text.py": b"def shout(s):\n    return s.upper() + '!'\n",
    "main.py": b"from stats import mean\nfrom text import shout\n\ndef run(xs):\n    return shout(str(mean(xs)))\n",
}
TESTS = b"""
import unittest
from main import run

class Tests(unittest.TestCase):
    def test_run(self):
        self.assertEqual(run([1, 2, 3]), "2.0!")

    def test_one(self):
        self.assertEqual(run([5]), "5.0!")
"""
COMMAND = ["python3", "-B", "-m", "unittest", "-q", "hidden_test"]
PYTHON = resolve_python().executable
Play = Callable[[], Awaitable[None]]


async def bare() -> None:
    """Two directories, the files, one process."""
    work, judge = Path(tempfile.mkdtemp()), Path(tempfile.mkdtemp())
    try:
        for name, data in FILES.items():
            await anyio.Path(work, name).write_bytes(data)
        for name in FILES:
            shutil.copy(work / name, judge / name)
        (judge / "hidden_test.py").write_bytes(TESTS)
        done = await anyio.run_process([PYTHON, *COMMAND[1:]], cwd=judge, check=False)
        assert done.returncode == 0, done.stderr
    finally:
        shutil.rmtree(work)
        shutil.rmtree(judge)


def ours(provider: SandboxProvider) -> Play:
    async def play() -> None:
        async with provider.create(SandboxSpec()) as box:
            for name, data in FILES.items():
                await box.write_file(name, data)
            left = await box.export()
        async with turn(provider), provider.create(SandboxSpec()) as judge:
            await judge.import_(left)
            await judge.write_file("hidden_test.py", TESTS)
            done = await judge.exec(COMMAND, timeout=60)
            assert done.exit_code == 0, done.stderr

    return play


def inspect_local() -> Play | None:
    try:
        from inspect_ai.util._sandbox.local import LocalSandboxEnvironment
    except ImportError:
        return None

    async def play() -> None:
        work, judge = LocalSandboxEnvironment(), LocalSandboxEnvironment()
        try:
            for name, data in FILES.items():
                await work.write_file(name, data)
            for name in FILES:
                await judge.write_file(name, await work.read_file(name, text=False))
            await judge.write_file("hidden_test.py", TESTS)
            done = await judge.exec([PYTHON, *COMMAND[1:]], timeout=60)
            assert done.returncode == 0, done.stderr
        finally:
            work.directory.cleanup()
            judge.directory.cleanup()

    return play


async def rate(play: Play, concurrency: int, episodes: int) -> tuple[float, float]:
    """Episodes per wall second, and our own process's CPU milliseconds per episode."""
    limiter = anyio.CapacityLimiter(concurrency)

    async def one() -> None:
        async with limiter:
            await play()

    started, cpu = perf_counter(), process_time()
    async with anyio.create_task_group() as group:
        for _ in range(episodes):
            group.start_soon(one)
    return episodes / (perf_counter() - started), (process_time() - cpu) / episodes * 1000


async def main() -> None:
    wanted = options(__doc__ or "")
    rounds = wanted.rounds or 5
    rivals = {
        "bare": bare,
        "no isolation": ours(get_provider("unsafe-subprocess")),
        "bubblewrap": ours(get_provider("bubblewrap")),
        "bubblewrap, each box started": ours(get_provider("bubblewrap", fork=False)),
    }
    local = inspect_local()
    if local:
        rivals["inspect_ai local"] = local
    rows: list[dict[str, object]] = []
    for concurrency, episodes in ((1, 16), (8, 96), (32, 128)):  # many, or the last ones, on idle cores, count
        rates: dict[str, list[float]] = {name: [] for name in rivals}
        cpus: dict[str, list[float]] = {name: [] for name in rivals}
        for number in range(rounds + 1):
            for name, play in rivals.items():
                per_second, cpu = await rate(play, concurrency, episodes)
                if number:
                    rates[name].append(per_second)
                    cpus[name].append(cpu)
        medians = {name: statistics.median(values) for name, values in rates.items()}
        for name, value in medians.items():
            rows.append(
                {
                    "concurrency": concurrency,
                    "rival": name,
                    "episodes/s": value,
                    "of bare": value / medians["bare"],
                    "of no isolation": value / medians["no isolation"],
                    "host CPU ms": statistics.median(cpus[name]),
                }
            )
    notes = [
        f"medians of {rounds} rounds in turn; Python {sys.version.split()[0]}",
        f"the test run is `{' '.join(COMMAND)}` everywhere",
        "two boxes an episode, the work's and the grader's: directories where nothing isolates them",
        "ours run their tests in turns, as its grader does, inspect_ai as many commands at a time as there are cores",
        "bounds: bubblewrap at least 0.6 of bare and 0.9 of no isolation",
    ]
    if not local:
        notes.append("inspect_ai is not installed: not measured")
    report("Scripted episodes", rows, as_json=wanted.json, notes=notes)


anyio.run(main)
