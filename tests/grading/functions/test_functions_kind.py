"""The `functions` kind in real boxes: how a run goes, and what a solution may do to itself in it."""

from __future__ import annotations

from typing import Any

import pytest

from codeenv.grading import Verdict
from codeenv.sandbox.api import SandboxProvider
from codeenv.task import Task
from tests.episodes import encoded, judge

pytestmark = pytest.mark.anyio


def task_of(tests: str, solution: str | dict[str, str], **grader: Any) -> Task:
    files = {"solution.py": solution} if isinstance(solution, str) else solution
    settings = {"kind": "functions", "timeout": 30, "call_timeout": 2, **grader}
    return Task(
        id="plain", instruction="Write it.", files=encoded(dict(files)), tests=encoded({"test_it.py": tests}),
        grader=settings,  # type: ignore[arg-type]
    )  # fmt: skip


def outcomes(verdict: Verdict) -> dict[str, str]:
    """By test name: empty when it passed, else the message."""
    return {test.id.partition("::")[2]: "" if test.passed else test.message or "?" for test in verdict.tests}


SOLUTION = """
import os, sys
X = 3
class MyError(ValueError):
    def __init__(self, code):
        super().__init__(f"code {code}")
        self.code = code
def add(a, b): return a + b
def boom(): raise MyError(7)
def push(items): items.append(1); return items
def leave(): os._exit(0)
def hang():
    while True: pass
def apply(f, x): return f(x)
def gen(n):
    for i in range(n): yield i
class Stack:
    def __init__(self, items=()): self._items = list(items)
    def push(self, x): self._items.append(x)
    @property
    def top(self): return self._items[-1]
    def __len__(self): return len(self._items)
    def __contains__(self, x): return x in self._items
    def __iter__(self): return iter(self._items)
    def __repr__(self): return "Stack!"
"""
TESTS = """
import unittest
import solution
from solution import add, boom, MyError, push, Stack

def test_add(): assert add(1, 2) == 3

def test_boom():
    try: boom()
    except MyError as e: assert e.code == 7 and str(e) == "code 7" and isinstance(e, ValueError)
    else: assert 0

def test_push():
    a = []
    assert push(a) is a and a == [1]

def test_leave(): solution.leave()
def test_after(): assert add(2, 2) == 4
def test_hang(): solution.hang()

def test_stack():
    s = Stack()
    s.push(4)
    s.push(5)
    assert s.top == 5 and len(s) == 2 and 4 in s and list(s) == [4, 5] and repr(s) == "Stack!" and isinstance(s, Stack)

def test_callback():
    seen = []
    assert solution.apply(lambda x: seen.append(x) or x * 2, 4) == 8 and seen == [4]

def test_generator(): assert list(solution.gen(5)) == [0, 1, 2, 3, 4]

class Case(unittest.TestCase):
    def test_raises(self):
        with self.assertRaises(MyError): boom()
"""


@pytest.mark.parametrize("framework", [False, True], ids=["light", "pytest"])
async def test_a_solution_crashes_hangs_and_the_rest_goes_on(provider: SandboxProvider, framework: bool) -> None:
    verdict = await judge(task_of("import pytest\n" * framework + TESTS, SOLUTION), provider)
    found = outcomes(verdict)
    assert list(found) == [
        "test_add", "test_boom", "test_push", "test_leave", "test_after", "test_hang", "test_stack", "test_callback",
        "test_generator", "Case::test_raises",
    ]  # fmt: skip
    assert "the solution's process ended with exit code 0" in found.pop("test_leave")
    assert "no answer within 2 s" in found.pop("test_hang")
    assert set(found.values()) == {""}
    assert (verdict.outcome, verdict.exit_code) == ("failed", 1)
