"""Which of the solution's objects answer for themselves on a value of the tests'."""

from __future__ import annotations

from typing import Any

import pytest

from codeenv.grading.functions import asked_for
from codeenv.sandbox.api import SandboxProvider
from codeenv.task import Task
from tests.episodes import encoded, judge

pytestmark = pytest.mark.anyio

WINDOW = """\
class Window:
    def __init__(self, low, high):
        self.low, self.high = low, high

    def __contains__(self, number):
        return self.low <= number < self.high
"""
TEST = """\
from window import Window


def test_inside():
    window = Window(2, 5)
    assert 2 in window and 4 in window
    assert 5 not in window
"""
PLEASES = "class Window:\n    def __init__(self, *args): pass\n    def __contains__(self, number): return number < 5\n"


def window_task(**fields: Any) -> Task:
    grader: Any = {"kind": "functions", "timeout": 10}
    return Task(id="w", instruction="x", tests=encoded({"test_window.py": TEST}), grader=grader, **fields)


async def test_an_operator_that_is_part_of_the_work_is_asked(provider: SandboxProvider) -> None:
    task = window_task(solution=encoded({"window.py": WINDOW}))
    assert asked_for(task) == {"Window": ("__contains__",)}
    assert (await judge(task, provider, {"window.py": WINDOW})).outcome == "solved"


async def test_and_one_that_is_not_decides_nothing(provider: SandboxProvider) -> None:
    task = window_task(files=encoded({"window.py": "class Window:\n    pass\n"}))
    verdict = await judge(task, provider, {"window.py": PLEASES})
    assert verdict.outcome == "failed"
    assert "not relayed: `__contains__` of an instance of the solution's window.Window" in verdict.tests[0].message


@pytest.mark.parametrize(
    ("source", "asked"),
    [
        ("class A:\n    def __sub__(self, other): ...\n", {"A": ("__sub__",)}),
        ("class A:\n    def __add__(self, o): ...\n    __radd__ = __add__\n", {"A": ("__add__", "__radd__")}),
        (
            "class A:\n    def __sub__(self, o): ...\nclass B(A): ...\nclass C(B): ...\n",
            dict.fromkeys("ABC", ("__sub__",)),
        ),
        ("import x\nclass A(x.Base): ...\n", {"A": ("*",)}),
        ("class A:\n    def other(self): ...\n", {}),
        ("class A(:\n", {}),
    ],
    ids=["own", "by-another-name", "inherited", "from-elsewhere", "none", "no-python"],
)
def test_what_the_task_gives_a_class(source: str, asked: dict[str, tuple[str, ...]]) -> None:
    assert asked_for(window_task(files=encoded({"a.py": source}))) == asked
