"""Gradings that are made again, and say so."""

from __future__ import annotations

from typing import Any

import pytest
from env_support import WrappedProvider

from codeenv.episode import Episode
from codeenv.grading import box_spec, grade, workspace_of
from codeenv.sandbox.api import SandboxError, SandboxProvider
from codeenv.tools import ToolCall
from tests.episodes import BAD, GOOD, Watching, pytest_task, stdio_task

pytestmark = pytest.mark.anyio

# The boxes' host name, clock and files are alike: what tells an attempt from another is chance.
CHANCE = "__import__('os').urandom(1)[0] < 64"


@pytest.mark.parametrize(
    ("own", "given", "gradings"),
    [(None, 0, 1), (None, 2, 3), (1, 0, 2), (0, 2, 1), (1, 3, 2)],
    ids=["none", "environment", "task", "task-forbids", "task-first"],
)
async def test_a_failed_grade_is_made_again_in_a_fresh_box(
    provider: SandboxProvider, own: int | None, given: int, gradings: int
) -> None:
    watching = Watching(provider)
    task = stdio_task({"a": ("", "9")}, "print(8)", retries=own)
    verdict = await grade(task, workspace_of(task), watching, box_spec(task), retries=given)
    assert (verdict.outcome, verdict.attempts, len(watching.boxes)) == ("failed", gradings, gradings)
    assert watching.live_at_creation == [0] * gradings


async def test_a_pass_is_never_made_again(provider: SandboxProvider) -> None:
    watching = Watching(provider)
    task = stdio_task({"a": ("", "9")}, "print(9)", retries=5)
    verdict = await grade(task, workspace_of(task), watching, box_spec(task), retries=5)
    assert (verdict.outcome, verdict.attempts, len(watching.boxes)) == ("solved", 1, 1)


async def test_a_flaky_pass_shows_what_it_took(provider: SandboxProvider) -> None:
    program = f"print(9 if {CHANCE} else 8)"
    task = stdio_task({"a": ("", "9")}, program, retries=10)
    seen: set[tuple[str, bool]] = set()
    for _ in range(12):
        verdict = await grade(task, workspace_of(task), provider, box_spec(task))
        seen.add((verdict.outcome, verdict.attempts > 1))
    assert ("solved", True) in seen  # but for one chance in some millions
    assert ("failed", False) not in seen


async def test_what_no_grading_can_change_is_judged_once(provider: SandboxProvider) -> None:
    task = pytest_task(limits={"disk_mb": 1}, files={"big": b"x" * 3_000_000})
    verdict = await grade(task, workspace_of(task), provider, box_spec(task), retries=3)
    assert (verdict.outcome, verdict.attempts) == ("failed", 1)


async def test_a_fault_of_the_sandbox_is_none_of_the_attempts() -> None:
    async def second_breaks(number: int) -> None:
        if number == 2:
            raise SandboxError("no room", stage="create")

    task: Any = stdio_task({"a": ("", "9")}, "print(8)", retries=3)
    with pytest.raises(SandboxError, match="no room"):
        await grade(task, workspace_of(task), WrappedProvider(before=second_breaks), box_spec(task))


@pytest.mark.parametrize(("solution", "attempts"), [(BAD, 2), (GOOD, 1)], ids=["wrong", "right"])
async def test_an_episode(provider: SandboxProvider, solution: str, attempts: int) -> None:
    async with Episode.start(pytest_task(), provider, grading_retries=1) as episode:
        await episode.step(ToolCall("write_file", {"path": "adding.py", "content": solution}))
        verdict = await episode.finish()
    assert verdict.attempts == attempts
