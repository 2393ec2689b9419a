"""Small tasks and one-line episodes for the tests of everything above the sandbox."""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from codeenv.episode import Episode
from codeenv.grading import Verdict, box_spec, grade, workspace_of
from codeenv.sandbox.api import Sandbox, SandboxProvider, SandboxSpec
from codeenv.sandbox.archive import Archive
from codeenv.task import Task
from codeenv.tools import Observation, ToolCall
from tests.wrapping import Wrapping

Files = dict[str, str | bytes]

TEST_ADD = """\
from adding import add


def test_small():
    assert add(1, 2) == 3


def test_negative():
    assert add(-1, -2) == -3
"""
GOOD = "def add(a, b):\n    return a + b\n"
BAD = "def add(a, b):\n    return abs(a) + abs(b)\n"


def encoded(files: Files) -> dict[str, bytes]:
    return {path: text.encode() if isinstance(text, str) else text for path, text in files.items()}


def pytest_task(tests: Files | None = None, files: Files | None = None, **fields: Any) -> Task:
    """`adding.py` with an `add` that is wrong for negative numbers, or whatever is given."""
    return Task(
        id=fields.pop("id", "adding"),
        instruction=fields.pop("instruction", "Make `add` right."),
        files=encoded({"adding.py": BAD} if files is None else files),
        tests=encoded({"test_adding.py": TEST_ADD} if tests is None else tests),
        **fields,
    )


def stdio_task(
    cases: dict[str, tuple[str | bytes, str | bytes]],
    program: str | bytes = "",
    *,
    files: Files | None = None,
    **grader: Any,
) -> Task:
    """A task whose program is `main.py`, beside `files`; cases by name: its input and its output."""
    tests: Files = {f"{name}.in": case[0] for name, case in cases.items()}
    tests |= {f"{name}.out": case[1] for name, case in cases.items()}
    return Task(
        id="program",
        instruction="Write main.py.",
        files=encoded({"main.py": program, **(files or {})}),
        tests=encoded(tests),
        grader={"kind": "stdio", "command": ("python3", "main.py"), **grader},  # type: ignore[arg-type]
    )


async def judge(task: Task, provider: SandboxProvider, files: Files | None = None) -> Verdict:
    """The verdict on the task's own workspace with `files` laid over it."""
    left = workspace_of(task).overlay(Archive.of(encoded(files or {})))
    return await grade(task, left, provider, box_spec(task))


class Player:
    """An episode, with its tools as methods that give the observation."""

    def __init__(self, episode: Episode) -> None:
        self.episode = episode

    async def call(self, tool: str, **arguments: Any) -> Observation:
        return await self.episode.step(ToolCall(tool, arguments))

    async def bash(self, command: str) -> str:
        return (await self.call("bash", command=command)).text

    async def finish(self) -> Verdict:
        return await self.episode.finish()


class Watching(Wrapping):
    """The real provider, and a list of the boxes that it made."""

    def __init__(self, inner: SandboxProvider) -> None:
        super().__init__(inner)
        self.boxes: list[Any] = []
        self.live_at_creation: list[int] = []

    async def open(self, spec: SandboxSpec) -> Sandbox:
        self.live_at_creation.append(self.alive)
        box = await self.inner.open(spec)
        self.boxes.append(box)
        return box

    @property
    def alive(self) -> int:
        return sum(is_alive(box) for box in self.boxes)


async def destroy(box: Any) -> None:
    """Behind its owner's back."""
    if hasattr(box, "pid"):
        os.kill(box.pid, signal.SIGKILL)
    else:
        assert (await box.container.gateway.call("StopContainer", container_id=box.container.id)).ok


def is_alive(box: Any) -> bool:
    """Of one that runs elsewhere, whether it counts as closed: its gateway's own tests look at what is left there."""
    return os.path.exists(f"/proc/{box.pid}") if hasattr(box, "pid") else not box._closed


@asynccontextmanager
async def playing(provider: SandboxProvider, task: Task | None = None, **settings: Any) -> AsyncIterator[Player]:
    settings = {"max_turns": 0, "command_timeout": 20.0, **settings}
    async with Episode.start(task or pytest_task(), provider, **settings) as episode:
        yield Player(episode)


def by_name(verdict: Verdict) -> dict[str, bool]:
    """Which tests passed, by the last part of their id."""
    return {test.id.rpartition("::")[2]: test.passed for test in verdict.tests}
