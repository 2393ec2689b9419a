"""Small tasks, providers with faults, a policy in a process: of no framework."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from codeenv.graders import PytestGrader, StdioGrader
from codeenv.sandbox import get_provider
from codeenv.sandbox.api import Sandbox, SandboxSpec
from codeenv.sources.jsonl import dump_task
from codeenv.task import Task
from tests.wrapping import Wrapping

SECRET = "hidden-marker-4711"
KEY = "CODEENV_TEST_KEY"
os.environ.setdefault(KEY, "none")


def double_task(number: int = 0, **changes: Any) -> Task:
    """A program that doubles a number; one case, so that grading costs one start of Python."""
    fields: dict[str, Any] = {
        "id": f"double-{number}",
        "instruction": f"Write main.py: read an integer and print its double. This is variant {number}.",
        "files": {"main.py": b"raise NotImplementedError\n"},
        "tests": {"one.in": b"21\n", "one.out": b"42\n"},
        "solution": {"main.py": b"print(int(input()) * 2)\n"},
        "wrong": {"squares": {"main.py": b"print(int(input()) ** 2)\n"}},
        "grader": StdioGrader(command=("python3", "-S", "main.py"), case_timeout=5, timeout=20),
    }
    return Task(**{**fields, **changes})


def pytest_task(**changes: Any) -> Task:
    fields: dict[str, Any] = {
        "id": "add",
        "instruction": "Implement add(a, b) in calc.py.",
        "files": {"calc.py": b"def add(a, b):\n    raise NotImplementedError\n"},
        "tests": {
            "test_calc.py": f"# {SECRET}\nfrom calc import add\n\n\ndef test_one():\n    assert add(1, 2) == 3\n\n\n"
            f"def test_two():\n    marker = '{SECRET}'\n    assert add(-1, 1) == 0, marker\n".encode()
        },
        "solution": {"calc.py": f"def add(a, b):\n    return a + b  # {SECRET}\n".encode()},
        "wrong": {"abs": {"calc.py": b"def add(a, b):\n    return abs(a) + abs(b)\n"}},
        "grader": PytestGrader(timeout=20),
    }
    return Task(**{**fields, **changes})


class WrappedProvider(Wrapping):
    """A real provider whose boxes pass through `wrap`, and whose creations through `before`."""

    def __init__(
        self,
        wrap: Callable[[Sandbox, int], Sandbox] = lambda box, number: box,
        before: Callable[[int], Awaitable[None]] | None = None,
    ) -> None:
        super().__init__(get_provider("bubblewrap"))
        self.wrap, self.before = wrap, before
        self.made = 0

    async def open(self, spec: SandboxSpec) -> Sandbox:
        self.made += 1
        number = self.made
        if self.before:
            await self.before(number)
        return self.wrap(await self.inner.open(spec), number)


class WrappedSandbox:
    """A real box; a call named in `faults` runs its function first (which may raise)."""

    def __init__(self, inner: Sandbox, faults: dict[str, Callable[[], Awaitable[None]]]) -> None:
        self._inner, self._faults = inner, faults

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._inner, name)
        if name not in self._faults:
            return value

        async def call(*args: Any, **kwargs: Any) -> Any:
            await self._faults[name]()
            return await value(*args, **kwargs)

        return call


def write_set(folder: Path, tasks: list[Task]) -> Path:
    path = folder / "tasks.jsonl"
    path.write_text("".join(dump_task(task) + "\n" for task in tasks))
    return path


@contextmanager
def policy_process(policy: str, dataset: Path) -> Iterator[str]:
    """The base URL of a scripted policy in a process of its own."""
    command = [sys.executable, "-m", "codeenv", "policy", policy, "--dataset", str(dataset)]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        yield next(word for line in server.stdout for word in line.split() if word.startswith("http://"))
    finally:
        server.kill()
        server.communicate()


def boxes_of(disk_mb: int) -> set[int]:
    """Pids of this machine's processes that see a work directory of this size, and of those that started them."""
    size = f"size={disk_mb * 1024}k"
    found: set[int] = set()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            mounts = (folder / "mountinfo").read_text().splitlines()
            if any(" /workspace " in mount and size in mount for mount in mounts):
                found |= {int(folder.name), int((folder / "stat").read_text().rpartition(")")[2].split()[1])}
        except OSError:
            continue
    return found


def alive(pids: Iterable[int]) -> bool:
    return any(Path(f"/proc/{pid}").exists() for pid in pids)
