"""The `pytest` kind in real boxes: evidence for every test, and nothing of the workspace's in the framework."""

# ruff: noqa: E501 - tables: one case a line
from __future__ import annotations

import time

import pytest

from codeenv.graders import PytestGrader
from codeenv.grading import box_spec, grade, judged_workspace, workspace_of
from codeenv.grading.report import MESSAGE_LIMIT
from codeenv.sandbox.api import SandboxError, SandboxProvider
from codeenv.sandbox.archive import Archive, Entry
from tests.episodes import BAD, GOOD, TEST_ADD, Files, Watching, by_name, judge, pytest_task

pytestmark = pytest.mark.anyio
BOTH = {"test_small": True, "test_negative": True}


async def test_a_right_and_a_wrong_solution(provider: SandboxProvider) -> None:
    verdict = await judge(pytest_task(), provider, {"adding.py": GOOD})
    assert (verdict.outcome, verdict.reward, verdict.exit_code) == ("solved", 1.0, 0)
    assert by_name(verdict) == BOTH
    assert 0 < sum(test.seconds for test in verdict.tests) < verdict.seconds
    verdict = await judge(pytest_task(), provider)
    assert (verdict.outcome, verdict.reward, verdict.exit_code) == ("failed", 0.0, 1)
    assert by_name(verdict) == {"test_small": True, "test_negative": False}
    assert verdict.tests[1].message.startswith("assert 3 == -3")


# --- what an honest solution may have beside it -----------------------------------------------------------------

FRIENDLY = {
    "conftest": {"conftest.py": "raise RuntimeError('not yours')"},
    "conftest-skips": {"conftest.py": "def pytest_collection_modifyitems(items):\n    items.clear()\n"},
    "pytest-ini": {"pytest.ini": "[pytest]\naddopts = -k nothing --nonsense\n"},
    "pyproject": {"pyproject.toml": "[tool.pytest.ini_options]\naddopts = '--deselect test_adding.py -x --co'\n"},
    "setup-cfg": {"setup.cfg": "[tool:pytest]\naddopts = --nonsense\n", "tox.ini": "[pytest]\naddopts = --nonsense\n"},
    "pytest.py": {"pytest.py": "import os; os._exit(0)", "_pytest/__init__.py": "raise SystemExit(0)"},
    "stdlib-names": {f"{name}.py": "raise RuntimeError" for name in ("json", "os", "ast", "inspect", "typing", "queue")},
    "plugin-names": {f"{name}.py": "raise RuntimeError" for name in ("pluggy", "iniconfig", "pygments", "pdb", "packaging")},
    "sitecustomize": {"sitecustomize.py": "import os; os._exit(0)", "usercustomize.py": "import os; os._exit(0)"},
    "own-tests": {"test_adding.py": "def test_small(): assert 0", "tests/test_adding.py": "x =", "test_other.py": "assert 0"},
    "entry-point": {"x-1.dist-info/entry_points.txt": "[pytest11]\nx = evil\n", "x-1.dist-info/METADATA": "Name: x\n", "evil.py": "import os; os._exit(0)"},
    "pth": {"evil.pth": "import os; os._exit(0)\n"},
    "odd-files": {"new\nline ☃": b"\xff", "-k": "", "a b/c.py": ""},
    "byte-code": {"adding.pyc": b"\0\0", "__pycache__/adding.cpython-311.pyc": b"\0\0", "sub/__pycache__/x.pyc": b""},
}  # fmt: skip


@pytest.mark.parametrize("files", [pytest.param(files, id=name) for name, files in FRIENDLY.items()])
async def test_what_else_lies_in_the_workspace_is_not_honoured_and_breaks_nothing(
    provider: SandboxProvider, files: Files
) -> None:
    verdict = await judge(pytest_task(), provider, {"adding.py": GOOD, **files})
    assert (verdict.outcome, by_name(verdict)) == ("solved", BOTH)
    verdict = await judge(pytest_task(), provider, files)
    assert (verdict.outcome, by_name(verdict)["test_negative"]) == ("failed", False)


# --- what a solution may do under the tests ---------------------------------------------------------------------

FORGED = """\
import json, os
for fd in range(64):
    for record in ({"kind": "start"}, *({"kind": "test", "id": f"test_adding.py::{n}", "outcome": "passed", "seconds": s}
                   for n in ("test_small", "test_negative") for s in (1, "x")), {"kind": "collected", "ids": 7}):
        try:
            os.write(fd, (chr(10) + json.dumps(record) + chr(10)).encode())
        except OSError:
            pass
"""
HOSTILE = {
    "exit-at-import": "import os\nos._exit(0)",
    "sys-exit-at-import": "import sys\nsys.exit(0)",
    "sys-exit-and-threads": "import sys, threading, time\nthreading.Thread(target=time.sleep, args=(99,)).start()\nsys.exit(0)",
    "system-exit-in-test": "def add(a, b):\n    if a < 0: raise SystemExit(0)\n    return a + b",
    "exit-in-test": "import os\ndef add(a, b):\n    if a < 0: os._exit(0)\n    return a + b",
    "pytest-exit": "import pytest\npytest.exit('done', returncode=0)",
    "pytest-skip": "import pytest\npytest.skip('no', allow_module_level=True)",
    "skip-in-test": "import pytest\ndef add(a, b):\n    if a < 0: pytest.skip('no')\n    return a + b",
    "xfail-in-test": "import pytest\ndef add(a, b):\n    if a < 0: pytest.xfail('no')\n    return a + b",
    "keyboard-interrupt": "raise KeyboardInterrupt",
    "syntax-error": "def add(a, b:\n",
    "kills-parent": "import os\nos.kill(os.getppid(), 9)\nos.kill(os.getpid(), 9)",
    "kills-all": "import os\nos.kill(-1, 9)\n" + BAD,
    "forged-stdout": "import json\nfor n in ('test_small', 'test_negative'):\n print(json.dumps({'kind': 'test', 'id': f'test_adding.py::{n}', 'outcome': 'passed'}), flush=True)\nimport os\nos._exit(0)",
    "forged-everywhere": FORGED + "os._exit(0)",
    "forged-and-wrong": FORGED + BAD,
    "deletes-tests": "import shutil, glob\nfor d in glob.glob('/tmp/*'): shutil.rmtree(d, ignore_errors=True)\n" + BAD,
    "memory": "x = []\nwhile True: x.append(bytearray(50_000_000))",
    "memory-in-test": "def add(a, b):\n    x = []\n    while a < 0: x.append(bytearray(50_000_000))\n    return a + b",
    "endless-threads": "import threading, time\nfor _ in range(9): threading.Thread(target=time.sleep, args=(99,)).start()\n" + BAD,
    "recursion": "def add(a, b):\n    return a + b if a > 0 else add(a, b)",
    "segfault": "import ctypes\ndef add(a, b):\n    return a + b if a > 0 else ctypes.string_at(0)",
    "leaves-processes": "import subprocess\nfor _ in range(5): subprocess.Popen(['sleep', '99'], start_new_session=True)\n" + BAD,
    "floods": "def add(a, b):\n    import os\n    for fd in range(1, 20):\n        for _ in range(30):\n            try: os.write(fd, b'x' * 50000)\n            except OSError: pass\n    return abs(a) + abs(b)",
    "swallows-atexit": "import atexit, os\natexit.register(os._exit, 0)\n" + BAD,
    "os-exit-replaced": "import os\nos._exit = lambda code: None\n" + BAD,
    "json-replaced": "import json\njson.dumps = lambda *a, **k: '{}'\n" + BAD,
    "gc-hunt-less": "import sys\nsys.stdout = sys.stderr = None\n" + BAD,
    "fork-bomb": "import os\ntry:\n    while True: os.fork()\nexcept OSError: os._exit(0)",
}  # fmt: skip


@pytest.mark.parametrize("solution", [pytest.param(text, id=name) for name, text in HOSTILE.items()])
async def test_no_trick_is_solved_and_none_is_infra(provider: SandboxProvider, solution: str) -> None:
    task = pytest_task(grader=PytestGrader(timeout=15), limits={"memory_mb": 512, "processes": 32})
    watching = Watching(provider)
    verdict = await judge(task, watching, {"adding.py": solution})
    assert (len(watching.boxes), watching.alive) == (1, 0)
    assert verdict.seconds < 14
    assert verdict.outcome == "failed"
    assert verdict.reward == 0.0
    assert len(verdict.tests) == 2
    assert not all(test.passed for test in verdict.tests)
    assert all(len(test.message) <= MESSAGE_LIMIT for test in verdict.tests)


async def test_a_right_solution_with_threads_and_processes_left_is_solved(provider: SandboxProvider) -> None:
    left = "import subprocess, threading, time, atexit\nsubprocess.Popen(['sleep', '99'])\n"
    left += "threading.Thread(target=time.sleep, args=(99,)).start()\natexit.register(time.sleep, 99)\n"
    verdict = await judge(pytest_task(), provider, {"adding.py": left + GOOD})
    assert verdict.outcome == "solved"
    assert verdict.seconds < 15


async def test_a_run_that_does_not_end_keeps_what_it_had(provider: SandboxProvider) -> None:
    task = pytest_task(grader=PytestGrader(timeout=1.5))
    started = time.monotonic()
    verdict = await judge(task, provider, {"adding.py": "def add(a, b):\n    while a < 0: pass\n    return a + b"})
    assert time.monotonic() - started < 10
    assert verdict.outcome == "failed"
    assert verdict.reason == "the tests did not end within 1.5 s"
    assert by_name(verdict) == {"test_small": True, "test_negative": False}
    assert verdict.tests[1].message == "did not run: the tests did not end within 1.5 s"


# --- evidence ---------------------------------------------------------------------------------------------------

STYLES = """\
import unittest

import pytest

from adding import add


@pytest.mark.parametrize("pair", [(1, 2), (-1, -2)], ids=["eins", "zwei ☃[]::x"])
def test_many(pair):
    assert add(*pair) == sum(pair)


@pytest.mark.parametrize("a", [1, -1])
@pytest.mark.parametrize("b", [2, -2])
def test_product(a, b):
    assert add(a, b) == a + b


class TestPlain:
    def test_one(self, tmp_path, capsys, monkeypatch, caplog, tmpdir):
        print("captured")
        assert capsys.readouterr().out == "captured\\n"
        assert add(0, -1) == -1


class Adding(unittest.TestCase):
    def test_case(self):
        with self.subTest("x"):
            self.assertEqual(add(2, -2), 0)


def test_größe():
    assert add("a", "ß") == "aß"


def helper():
    raise AssertionError
"""


async def test_tests_of_every_style(provider: SandboxProvider) -> None:
    task = pytest_task({"test_styles.py": STYLES, "deep/test_more.py": "def test_more():\n    import adding\n"})
    verdict = await judge(task, provider, {"adding.py": GOOD})
    assert [test for test in verdict.tests if not test.passed] == []
    assert verdict.outcome == "solved"
    assert verdict.tests_total == 2 + 4 + 1 + 1 + 1 + 1
    verdict = await judge(task, provider, {"adding.py": "def add(a, b):\n    return a + b if a == 1 else None"})
    assert verdict.outcome == "failed"
    assert sum(test.passed for test in verdict.tests) == 1 + 2 + 1


@pytest.mark.parametrize(
    ("test", "says"),
    [
        ("import pytest\n@pytest.mark.skip(reason='why')\ndef test_a(): pass", "skipped: "),
        ("import pytest\n@pytest.mark.xfail\ndef test_a(): assert 0", "skipped: "),
        ("import pytest\n@pytest.mark.xfail\ndef test_a(): pass", ""),
        ("import pytest\n@pytest.mark.parametrize('x', [])\ndef test_a(x): pass", "skipped: "),
        ("import nowhere\ndef test_a(): pass", "did not run: ModuleNotFoundError: No module named 'nowhere'"),
        ("if 1:\n    raise ValueError('at import')\ndef test_a(): pass", "did not run: ValueError: at import"),
        ("def test_a(): pass\ntest_a = None", "did not run"),
        ("import pytest\n@pytest.fixture\ndef f(): 1/0\ndef test_a(f): pass", "ZeroDivisionError"),
        ("import pytest\n@pytest.fixture\ndef f():\n    yield\n    1/0\ndef test_a(f): pass", "ZeroDivisionError"),
        ("async def test_a(): pass", ""),
        ("def test_a(): return\ndef test_b(): assert 0, 'é' * 9000", "éé ..."),
        ("def test_a(): return\ndef test_b(): assert 0, '\\ud800'", "\\ud800"),
    ],
    ids=[
        "skip", "xfail", "xpass", "no-parameters", "missing-import", "import-error", "shadowed", "fixture", "teardown",
        "async", "long-message", "surrogate-message",
    ],
)  # fmt: skip
async def test_what_did_not_run_did_not_pass(provider: SandboxProvider, test: str, says: str) -> None:
    verdict = await judge(pytest_task({"test_a.py": test}), provider)
    assert verdict.outcome == "failed"
    (failed,) = [result for result in verdict.tests if not result.passed]
    assert says in failed.message
    assert len(failed.message) <= MESSAGE_LIMIT


async def test_what_a_task_ships_with_its_tests_is_honoured(provider: SandboxProvider) -> None:
    tests: Files = {
        "conftest.py": "import adding, pytest\n@pytest.fixture\ndef three():\n    return adding.add(1, 2)\n",
        "pytest.ini": "[pytest]\npython_functions = check_*\naddopts = -q --strict-markers\nmarkers = own\n",
        "helping.py": "VALUE = 3\n",
        "data/value.bin": b"\xff\x00",
        "tool.sh": "#!/bin/sh\necho ran\n",
        "test_a.py": """\
import pathlib, subprocess
import pytest
from helping import VALUE
HERE = pathlib.Path(__file__).parent

@pytest.mark.own
def check_three(three):
    assert three == VALUE
    assert (HERE / "data/value.bin").read_bytes() == b"\\xff\\x00"
    assert subprocess.run([HERE / "tool.sh"], capture_output=True).stdout == b"ran\\n"
""",
    }
    grader = PytestGrader(expected=("test_a.py::check_three",))
    task = pytest_task(tests, grader=grader, executable=frozenset({"tool.sh"}))
    verdict = await judge(task, provider, {"adding.py": GOOD})
    assert [(test.id, test.passed, test.message) for test in verdict.tests] == [("test_a.py::check_three", True, "")]
    assert verdict.outcome == "solved"
    verdict = await judge(task, provider, {"adding.py": "def add(:"})
    assert (verdict.outcome, verdict.tests[0].passed) == ("failed", False)
    more = PytestGrader(expected=("test_a.py::check_three", "test_a.py::check_four"))
    verdict = await judge(task.model_copy(update={"grader": more}), provider, {"adding.py": GOOD})
    assert (verdict.outcome, verdict.tests_passed, verdict.tests_total) == ("failed", 1, 2)


@pytest.mark.parametrize(
    ("expected", "missing"),
    [
        (
            (
                "test_styles.py::test_many[eins]",
                "test_styles.py::test_product[2-1]",
                "test_styles.py::Adding::test_case",
            ),
            [],
        ),
        (("test_styles.py::test_many",), []),
        (("test_styles.py::test_many[drei]",), ["test_styles.py::test_many[drei]"]),
        (("test_styles.py::test_many", "test_styles.py::test_none"), ["test_styles.py::test_none"]),
        (("test_gone.py::test_many[eins]",), ["test_gone.py::test_many[eins]"]),
    ],
    ids=["recorded", "without-parameters", "other-parameters", "other-name", "other-file"],
)
async def test_the_tests_that_are_expected(
    provider: SandboxProvider, expected: tuple[str, ...], missing: list[str]
) -> None:
    task = pytest_task({"test_styles.py": STYLES}, grader=PytestGrader(expected=expected))
    verdict = await judge(task, provider, {"adding.py": GOOD})
    assert [test.id for test in verdict.tests if not test.passed] == missing
    assert verdict.tests_total == 9 + len(missing)
    assert (verdict.outcome == "solved") == (not missing)


async def test_every_test_may_pass_and_the_exit_code_still_decides(provider: SandboxProvider) -> None:
    ini = "[pytest]\naddopts = --continue-on-collection-errors\n"
    task = pytest_task({"test_adding.py": TEST_ADD, "test_b.py": "import adding\nadding.subtract\n", "pytest.ini": ini})
    verdict = await judge(task, provider, {"adding.py": GOOD})
    assert all(test.passed for test in verdict.tests)
    assert (verdict.outcome, verdict.exit_code) == ("failed", 1)


async def test_the_workspace_is_where_the_tests_run(provider: SandboxProvider) -> None:
    test = (
        "import os\ndef test_a():\n    assert os.getcwd() == '/workspace'\n    assert open('data.txt').read() == 'x'\n"
    )
    verdict = await judge(pytest_task({"test_a.py": test}, {"data.txt": "x"}), provider)
    assert verdict.outcome == "solved"


async def test_a_box_without_pytest_is_infra(provider: SandboxProvider) -> None:
    task = pytest_task()
    spec = box_spec(task).model_copy(update={"packages": ()})
    with pytest.raises(SandboxError, match="pytest did not start in the grading box") as raised:
        await grade(task, workspace_of(task), provider, spec)
    assert raised.value.stage == "grading: start"
    assert raised.value.seconds is not None


# --- what is judged ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "left",
    [
        [Entry("keep/a.py", "link", 0o777, 3, b"b.py"), Entry("keep/b.py", "file", 0o644, 3, b"bad")],
        [Entry("keep", "link", 0o777, 5, b"other"), Entry("other/a.py", "file", 0o644, 3, b"bad")],
        [Entry("keep", "file", 0o644, 3, b"bad")],
        [Entry("keep/a.py/x", "file", 0o644, 3, b"bad")],
        [Entry("keep/a.py", "directory", 0o755), Entry("keep/a.py/a.py", "file", 0o644, 3, b"bad")],
        [Entry("keep/a.py", "file", 0o644, 3, b"bad"), Entry("keep/new.py", "file", 0o644, 3, b"bad")],
        [],
    ],
    ids=["link", "parent-link", "parent-file", "directory", "directory-entry", "changed", "removed"],
)
async def test_protected_files_are_as_they_were(provider: SandboxProvider, left: list[Entry]) -> None:
    test = "import os, keep.a\ndef test_a():\n    assert keep.a.X == 1\n    assert os.access('/workspace/keep/a.py', os.X_OK)\n"
    test += "    assert os.listdir('/workspace/keep') == ['a.py']\n"
    task = pytest_task(
        {"test_a.py": test},
        {"keep/a.py": "X = 1\n", "free.py": ""},
        protected=("keep/*",),
        executable=frozenset({"keep/a.py"}),
    )
    archive = Archive({entry.path: entry for entry in left})
    assert judged_workspace(task, archive).files["keep/a.py"] == b"X = 1\n"
    assert (await grade(task, archive, provider, box_spec(task))).outcome == "solved"


async def test_a_workspace_that_needs_more_room_than_the_box_has_is_failed(provider: SandboxProvider) -> None:
    task = pytest_task(limits={"disk_mb": 1})
    verdict = await judge(task, provider, {"adding.py": GOOD, "holes": b"\0" * 3_000_000})
    assert (verdict.outcome, verdict.reason) == (
        "failed", "the workspace takes 3006464 bytes, more than the box's disk",
    )  # fmt: skip
