"""Validation of tasks, on the real sandbox."""

from __future__ import annotations

import time
from typing import Any

import pytest
from env_support import WrappedProvider, double_task

from codeenv.graders import FunctionsGrader
from codeenv.sandbox.api import SandboxError, SandboxProvider
from codeenv.task import Task
from codeenv.validate import TaskReport, validate
from tests.episodes import GOOD, pytest_task

pytestmark = pytest.mark.anyio

FLAKY = b"import os\nassert os.urandom(1)[0] % 2 or True\nprint(int(input()) * (2 + os.urandom(1)[0] % 2))\n"


async def reports_of(tasks: list[Task], provider: SandboxProvider, **options: Any) -> dict[str, TaskReport]:
    async with validate(tasks, provider, **options) as arriving:
        return {report.task: report async for report in arriving}


async def test_sound_and_unsound_tasks(provider: SandboxProvider) -> None:
    right: dict[str, bytes] = {"main.py": b"print(int(input()) * 2)\n"}
    tasks = [
        double_task(0),
        double_task(1, solution={"main.py": b"print(1)\n"}),
        double_task(2, files=right),
        double_task(3, wrong={"right": right, "bad": {"main.py": b""}}),
        double_task(4, solution=None),
        double_task(5, wrong={}),
    ]
    found = await reports_of(tasks, provider, jobs=4)
    assert sorted(found) == [task.id for task in tasks]
    faults = {name: [(fault.check, fault.message) for fault in report.faults] for name, report in found.items()}
    assert faults["double-0"] == []
    assert found["double-0"].gradings == 5
    assert found["double-0"].seconds > 0
    ((check, message),) = faults["double-1"]
    assert check == "reference"
    assert message.startswith("fails every time: one")
    assert faults["double-2"] == [("untouched", "passes all 1 tests; it must fail")]
    assert faults["double-3"] == [("wrong/right", "passes all 1 tests; it must fail")]
    assert [check for check, _ in faults["double-4"]] == ["reference"]
    assert found["double-5"].sound


async def test_flaky_reference(provider: SandboxProvider) -> None:
    flaky = double_task(solution={"main.py": FLAKY}, wrong={})
    (report,) = (
        await reports_of([flaky], provider, runs=16, jobs=4)
    ).values()  # even by chance, 1 in 32,768 does not show
    assert "of 16 times: the tests are flaky" in report.faults[0].message
    assert report.flake_rate is not None
    assert 0 < report.flake_rate < 1
    known = flaky.model_copy(update={"grader": flaky.grader.model_copy(update={"retries": 10})})
    (report,) = (await reports_of([known], provider, runs=16, jobs=4)).values()
    assert report.sound
    assert report.flake_rate  # measured all the same, as no retry hides it
    assert report.ids == ()


CHANGING = """\
import os, pytest
@pytest.mark.parametrize("n", [os.urandom(4).hex()])
def test_a(n): import adding; assert adding.add(-1, -2) == -3
"""


async def test_the_tests_that_a_sound_reference_passed(provider: SandboxProvider) -> None:
    solution = {"adding.py": GOOD.encode()}
    tasks = [
        pytest_task(id="sound", solution=solution),
        pytest_task({"test_a.py": CHANGING}, id="changing", solution=solution),
        pytest_task(id="bad", solution={"adding.py": b""}),
    ]
    found = await reports_of(tasks, provider, runs=2)
    assert found["sound"].sound
    assert found["sound"].ids == ("test_adding.py::test_negative", "test_adding.py::test_small")
    assert found["sound"].flake_rate == 0
    assert "the tests differ from run to run: test_a.py::test_a[" in found["changing"].faults[0].message
    assert found["changing"].ids == found["bad"].ids == ()
    assert found["bad"].flake_rate == 1


async def test_failures_of_the_sandbox_are_not_the_tasks() -> None:
    async def no_room(number: int) -> None:
        if number == 2:
            raise SandboxError("no room", stage="create")

    (report,) = (await reports_of([double_task()], WrappedProvider(before=no_room))).values()
    assert report.faults == []
    assert [fault.message for fault in report.errors] == ["grading: create: no room"]
    assert not report.sound


async def test_leaving_early_ends_the_gradings() -> None:
    provider = WrappedProvider()
    async with validate([double_task(n) for n in range(20)], provider, jobs=1) as arriving:
        async for _ in arriving:
            break
    assert provider.made < 20


WEAK = {
    "test_it.py": b"from calc import clip\n\n\ndef test_it():\n    assert clip(3) == 3\n    assert clip(11) == 10\n"
}
CLIP = b"""def clip(number):
    if number > 10:
        return 10
    while number != number:
        number = 0
    return number
"""


async def test_mutants_of_sound_references(provider: SandboxProvider) -> None:
    base = {"files": {"calc.py": b"def clip(number):\n    pass\n"}, "tests": WEAK, "grader": FunctionsGrader()}
    tasks = [
        Task(id="sound", instruction="-", solution={"calc.py": CLIP}, **base),  # type: ignore[arg-type]
        Task(id="bad", instruction="-", solution={"calc.py": b""}, **base),  # type: ignore[arg-type]
        double_task(0),
    ]
    began = time.monotonic()
    found = await reports_of(tasks, provider, runs=1, mutants=20)
    assert time.monotonic() - began < 50  # those that never end do not take as long as the task allows them
    sound, bad = found["sound"], found["bad"]
    assert sound.sound
    assert (sound.digest, sound.grader, sound.passed) == (tasks[0].digest, "functions", 1)
    assert sound.gradings == 1 + 1 + sound.mutants
    assert 8 <= sound.mutants <= 20
    assert sound.killed + len(sound.survived) == sound.mutants
    assert any(name.startswith("comparison in calc.py:2 ") for name in sound.survived)  # 10 itself is never asked for
    assert not any(name.startswith("branches in calc.py:2 ") for name in sound.survived)
    assert sound.killed > len(sound.survived)
    assert (bad.mutants, bad.killed, bad.survived) == (0, 0, ())
    assert found["double-0"].killed >= 2


async def test_mutants_are_the_same_each_time(provider: SandboxProvider) -> None:
    task = Task(id="sound", instruction="-", tests=WEAK, files={}, solution={"calc.py": CLIP}, grader=FunctionsGrader())
    first, again = [(await reports_of([task], provider, runs=1, mutants=3, jobs=4))["sound"] for _ in range(2)]
    assert (first.mutants, first.survived) == (again.mutants, again.survived)
    assert first.mutants == 3
