"""Every cheat pays in a grader as they are often built: one that pays nowhere would prove nothing of ours."""

from __future__ import annotations

from typing import Any

import anyio
import pytest
from conftest import provider_or_skip

from codeenv.grading.cheats import FAMILIES, Cheat, Play, View, Write, cheats
from codeenv.sandbox.api import SandboxProvider
from codeenv.task import Task
from tests.grading.audited import alive, tasks_of
from tests.grading.naive import GRADERS, pays

pytestmark = pytest.mark.anyio
TASKS: dict[str, Task] = {
    name: task for kind in ("pytest", "stdio", "command") for name, task in tasks_of(kind).items()
}
AT_ONCE = 4


@pytest.fixture(scope="module")
async def paid(anyio_backend: Any) -> dict[str, bool]:
    """By cheat, whether it paid where it should. All are played at once: most of the time goes by in waiting."""
    provider, found, playing = provider_or_skip("bubblewrap"), {}, anyio.CapacityLimiter(AT_ONCE)

    async def play(cheat: Cheat) -> None:
        task, grader = alive(cheat.name)
        async with playing:
            found[cheat.name] = await pays(cheat, TASKS[task], provider, grader)

    async with anyio.create_task_group() as group:
        for cheat in cheats():
            group.start_soon(play, cheat)
    return found


@pytest.mark.parametrize("cheat", [cheat.name for cheat in cheats()])
async def test_it_pays_in_a_naive_grader(paid: dict[str, bool], cheat: str) -> None:
    assert paid[cheat]


SOLUTIONS = [("honest", True), ("untouched", False)]


@pytest.mark.parametrize(("name", "solved"), SOLUTIONS, ids=[name for name, _ in SOLUTIONS])
@pytest.mark.parametrize("grader", GRADERS)
async def test_naive_graders_know_right_from_wrong(
    provider: SandboxProvider, grader: str, name: str, solved: bool
) -> None:
    """Whoever does not cheat gets what he deserves of them: it is the cheat that pays, and not the grader that pays
    for everything."""
    task = TASKS[{"checker": "prime", "contains": "prime", "command": "check"}.get(grader, "cases")]
    solution = task.solution or {}

    def play(view: View) -> Play:
        for path, data in (solution if solved else view.files).items():
            yield Write(path, data.decode())

    assert await pays(Cheat(name, FAMILIES[0], "", play), task, provider, grader) == solved
