"""Every cheat pays in a grader as they are often built: one that pays nowhere would prove nothing of ours."""

from __future__ import annotations

import pytest

from codeenv.grading.cheats import FAMILIES, Cheat, Play, View, Write, cheats
from codeenv.sandbox.api import SandboxProvider
from codeenv.task import Task
from tests.grading.audited import alive, tasks_of
from tests.grading.naive import GRADERS, pays

pytestmark = pytest.mark.anyio
TASKS: dict[str, Task] = {
    name: task for kind in ("pytest", "stdio", "command") for name, task in tasks_of(kind).items()
}


@pytest.mark.parametrize("cheat", cheats(), ids=lambda cheat: cheat.name)
async def test_it_pays_in_a_naive_grader(provider: SandboxProvider, cheat: Cheat) -> None:
    task, grader = alive(cheat.name)
    assert await pays(cheat, TASKS[task], provider, grader)


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
