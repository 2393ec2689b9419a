"""The `functions` kind in real boxes: how a run goes, and what a solution may do to itself in it."""

from __future__ import annotations

import os
import signal
from typing import Any

import anyio
import pytest

from codeenv.grading import Verdict
from codeenv.grading.functions import modules_of, needs_pytest
from codeenv.sandbox.api import Sandbox, SandboxError, SandboxLost, SandboxProvider, SandboxSpec
from codeenv.sandbox.archive import Archive
from codeenv.task import Task
from tests.episodes import Watching, encoded, judge

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


async def test_memory_fails_only_the_call_that_fills_it(provider: SandboxProvider) -> None:
    tests = "from solution import fill, fine\ndef test_fill(): fill()\ndef test_fine(): assert fine() == 1\n"
    solution = "def fill():\n    x = []\n    while True: x.append(bytes(10**7))\ndef fine(): return 1\n"
    task = task_of(tests, solution, call_timeout=10)
    task = task.model_copy(update={"limits": task.limits.model_copy(update={"memory_mb": 200, "disk_mb": 16})})
    found = outcomes(await judge(task, provider))
    assert found["test_fine"] == ""
    assert "MemoryError" in found["test_fill"] or "out of memory" in found["test_fill"]


async def test_what_was_made_before_a_crash_is_gone_and_says_so(provider: SandboxProvider) -> None:
    tests = (
        "from solution import Stack, leave, add\nstack = Stack([1])\n"
        "def test_before(): assert len(stack) == 1\ndef test_leave(): leave()\n"
        "def test_object(): assert len(stack) == 1\n"
        "def test_names(): assert add(1, 2) == 3 and len(Stack([1])) == 1 and isinstance(Stack(), Stack)\n"
    )
    found = outcomes(await judge(task_of(tests, SOLUTION), provider))
    assert (found["test_before"], found["test_names"]) == ("", "")
    assert "exit code 0" in found["test_object"]


async def test_the_time_for_all_tests_runs_out(provider: SandboxProvider) -> None:
    tests = "from solution import add, hang\ndef test_one(): assert add(1, 1) == 2\ndef test_two(): hang()\ndef test_three(): pass\n"  # noqa: E501
    verdict = await judge(task_of(tests, SOLUTION, timeout=1.5, call_timeout=60), provider)
    assert (verdict.outcome, verdict.reason) == ("failed", "the tests did not end within 1.5 s")
    found = outcomes(verdict)
    assert found["test_one"] == ""
    assert found["test_two"] == found["test_three"] == "did not run: the tests did not end within 1.5 s"


@pytest.mark.parametrize(
    ("tests", "says"),
    [
        pytest.param("def test_x(:\n", "SyntaxError", id="syntax"),
        pytest.param("def helper(): pass\n", "no test was found", id="none"),
        pytest.param("import unittest\n@unittest.skip('no')\nclass T(unittest.TestCase):\n    def test_x(self): pass\n", "skipped: ", id="skipped"),  # noqa: E501
        pytest.param("import pytest\n@pytest.mark.xfail\ndef test_x(): assert 0\n", "skipped: ", id="xfail"),
        pytest.param("import os\ndef test_x(): os._exit(0)\n", "the tests' process ended with exit code 0", id="exit"),
        pytest.param("import nothing_there\ndef test_x(): pass\n", "No module named 'nothing_there'", id="no-module"),
    ],
)  # fmt: skip
async def test_tests_that_prove_nothing(provider: SandboxProvider, tests: str, says: str) -> None:
    verdict = await judge(task_of(tests, SOLUTION), provider)
    assert verdict.outcome == "failed"
    assert says in " ".join([verdict.reason, *outcomes(verdict).values()])


async def test_helpers_and_data_beside_the_tests(provider: SandboxProvider) -> None:
    files = {
        "test_it.py": "import os\nfrom helping import twice\nfrom solution import add\ndef test_x(): assert twice(add(1, 1)) == int(open('data.txt').read()) == 4\n",  # noqa: E501
        "helping.py": "def twice(x): return 2 * x\n",
        "data.txt": "4",
        "more/test_more.py": "from solution import add\nclass TestMore:\n    def test_y(self): assert add(1, 2) == 3\n",
    }
    task = task_of("", SOLUTION).model_copy(update={"tests": encoded(dict(files))})
    verdict = await judge(task, provider)
    assert [(test.id, test.passed) for test in verdict.tests] == [
        ("more/test_more.py::TestMore::test_y", True),
        ("test_it.py::test_x", True),
    ]


@pytest.mark.parametrize(
    ("text", "needed"),
    [
        ("def test_x(): pass", False),
        ("import unittest\nclass T(unittest.TestCase):\n    def test_x(self): pass", False),
        ("import pytest", True),
        ("def helper():\n    from pytest import raises", True),
        ("def test_x(tmp_path): pass", True),
        ("async def test_x(): pass", True),
        ("def test_x(:", True),
    ],
)
def test_when_pytest_is_needed(text: str, needed: bool) -> None:
    assert needs_pytest(task_of(text, "")) is needed


def test_the_modules_that_a_workspace_offers() -> None:
    paths = [
        "a.py",
        "b/c.py",
        "b/d/e.py",
        "f/data.txt",
        "g.txt",
        "h-i.py",
        "j.cpython-311-x86_64-linux-gnu.so",
        "k/l.so",
    ]
    assert modules_of(Archive.of(dict.fromkeys(paths, b""))) == ("a", "b", "j", "k")


async def test_a_box_that_cannot_be_made_is_never_the_solutions_fault(provider: SandboxProvider) -> None:
    failing = Failing(provider)
    with pytest.raises(SandboxError, match="no more boxes"):
        await judge(task_of(TESTS, SOLUTION), failing)
    assert failing.alive == 0


@pytest.mark.parametrize("which", [0, 1])
async def test_nor_is_one_that_is_lost(provider: SandboxProvider, which: int) -> None:
    watched = Watching(provider)
    task = task_of("from solution import hang\ndef test_x(): hang()", SOLUTION, call_timeout=20)
    async with anyio.create_task_group() as group:

        async def strike() -> None:
            while len(watched.boxes) < 2:
                await anyio.sleep(0.01)
            await anyio.sleep(0.3)
            os.kill(watched.boxes[which].pid, signal.SIGKILL)

        group.start_soon(strike)
        with pytest.raises(SandboxLost):
            await judge(task, watched)
    assert watched.alive == 0


class Failing(Watching):
    """The second box cannot be made."""

    async def open(self, spec: SandboxSpec) -> Sandbox:
        if self.live_at_creation:
            raise SandboxError("no more boxes", stage="create")
        return await super().open(spec)


@pytest.mark.parametrize(
    "anyio_backend", ["asyncio", ("asyncio", {"use_uvloop": True})], ids=["asyncio", "uvloop"]
)  # fmt: skip
async def test_many_at_once_and_cancelled_ones_leave_nothing(provider: SandboxProvider) -> None:
    watched = Watching(provider)
    good, endless = (
        task_of(TESTS.replace("def test_hang", "def hang").replace("def test_leave", "def leave"), SOLUTION),
        (task_of("from solution import hang\ndef test_x(): hang()", SOLUTION, call_timeout=60)),
    )
    await judge(good, watched)
    before = len(os.listdir("/proc/self/fd"))
    verdicts: list[Verdict] = []

    async def one() -> None:
        verdicts.append(await judge(good, watched))

    async with anyio.create_task_group() as group:
        for _ in range(6):
            group.start_soon(one)
    assert [verdict.outcome for verdict in verdicts] == ["solved"] * 6
    for seconds in (0.0, 0.02, 0.1, 0.4):
        with anyio.move_on_after(seconds):
            await judge(endless, watched)
    assert watched.alive == 0
    assert len(os.listdir("/proc/self/fd")) == before


async def test_tests_that_passed_before_one_that_never_calls_back(provider: SandboxProvider) -> None:
    tests = (
        "from solution import f\ndef test_a(): assert f() == 1\ndef test_b(): assert f() == 1\n"
        "def test_c():\n    assert f() == 1\n    while True: pass\n"
    )
    found = outcomes(await judge(task_of(tests, "def f(): return 1\n", timeout=2), provider))
    assert found["test_a"] == found["test_b"] == ""
    assert "did not end within 2 s" in found["test_c"]
