"""HumanEval: its rows, and what becomes of their tests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from codeenv.grading import Verdict, box_spec, grade, workspace_of
from codeenv.sandbox.api import SandboxProvider
from codeenv.sandbox.archive import Archive
from codeenv.sources import load_tasks, open_tasks
from codeenv.task import Task

PROMPT = '''import math


def widen(text: str) -> str:
    """ Put a dot between the letters. """
    return ".".join(text)


def narrow(text: str) -> str:
    """ Undo widen.
    >>> narrow("a.b")
    'ab'
    """
'''
TEST = """

METADATA = {"author": "us", "dataset": "test"}


def check(candidate):
    import random
    rng = random.Random(1)
    assert candidate("a.b") == "ab", "a message"
    assert True, "says nothing"
    for _ in range(5):
        text = "".join(rng.choice("abc") for _ in range(4))
        assert candidate(widen(text)) == text
    assert math.isclose(len(candidate("")), 0)
"""
ROW: dict[str, Any] = {
    "task_id": "HumanEval/0",
    "prompt": PROMPT,
    "entry_point": "narrow",
    "canonical_solution": '    return text.replace(".", "")\n',
    "test": TEST,
}
FLOAT = {
    **ROW,
    "prompt": "def half(x):\n    'Halve it.'\n",
    "entry_point": "half",
    "canonical_solution": "    return x / 2\n",
    "test": "def check(f):\n    assert abs(f(5) - 2.5) < 1e-6\n    assert abs(f(0.3) - 0.15) < 1e-6\n",
}


def write(path: Path, *rows: Any) -> str:
    path.write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    return f"humaneval:{path}"


def loaded(tmp_path: Path, **fields: Any) -> Task:
    (task,) = load_tasks(write(tmp_path / "rows.jsonl", {**ROW, **fields}))
    return task


async def judged(task: Task, provider: SandboxProvider, code: str) -> Verdict:
    left = workspace_of(task).overlay(Archive.of({"solution.py": code.encode()}))
    return await grade(task, left, provider, box_spec(task))


def test_a_row(tmp_path: Path) -> None:
    task = loaded(tmp_path)
    assert task.id == "HumanEval/0"
    assert task.files == {"solution.py": PROMPT.encode()}
    assert PROMPT.rstrip() in task.instruction
    assert task.answer is not None
    assert (task.answer.path, task.answer.entry_point, task.answer.head) == ("solution.py", "narrow", PROMPT)
    assert (task.family, task.grader.kind) == ("function", "functions")
    assert task.metadata == {"entry_point": "narrow", "source": "HumanEval"}
    hidden = task.tests["test_solution.py"].decode()
    assert hidden.count("def test_") == 3  # without the assert that always holds
    assert hidden.count("random.Random(1)") == 1  # where it is needed
    assert "METADATA" not in hidden
    assert "message" not in task.instruction


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("code", "passed"),
    [
        pytest.param(PROMPT + ROW["canonical_solution"], 3, id="reference"),
        pytest.param(PROMPT, 0, id="stub"),
        pytest.param('def narrow(text):\n    return text.replace(".", "")', 3, id="without-what-the-prompt-gives"),
        pytest.param('def narrow(text):\n    return text\ndef widen(text):\n    return text', 1, id="helper-redefined"),
        pytest.param('def narrow(text):\n    return "ab"', 1, id="partly"),
        pytest.param("def narrow(text)", 0, id="no-python"),
        pytest.param("import os\nos._exit(0)", 0, id="exits"),
    ],
)  # fmt: skip
async def test_what_passes(tmp_path: Path, provider: SandboxProvider, code: str, passed: int) -> None:
    verdict = await judged(loaded(tmp_path), provider, code)
    assert (verdict.solved, verdict.tests_total) == (passed == 3, 3)
    assert verdict.tests_passed == passed


@pytest.mark.anyio
async def test_a_failure_says_which_call_it_was(tmp_path: Path, provider: SandboxProvider) -> None:
    (task,) = load_tasks(write(tmp_path / "rows.jsonl", FLOAT))
    verdict = await judged(task, provider, "def half(x):\n    return x\n")
    assert [test.message for test in verdict.tests] == ["AssertionError: half(5)", "AssertionError: half(0.3)"]
    verdict = await judged(loaded(tmp_path), provider, "def narrow(text):\n    return ''\n")
    assert [test.message for test in verdict.tests] == ["AssertionError: a message", "AssertionError", ""]


@pytest.mark.anyio
async def test_the_tests_own_tolerance_counts_and_no_more(tmp_path: Path, provider: SandboxProvider) -> None:
    (task,) = load_tasks(write(tmp_path / "rows.jsonl", FLOAT))
    for error, solved in ((0, True), (1e-8, True), (1e-3, False), (float("nan"), False)):
        verdict = await judged(task, provider, f"def half(x):\n    return x / 2 + float('{error}')\n")
        assert verdict.solved is solved, error


WHOLE: dict[str, str] = {
    "what-prepares-calls": "    x = candidate('a.b')\n    assert x == 'ab'\n    assert x != 'a'\n",
    "a-loop-leaves-something": "    for n in 'ab':\n        assert candidate(n) == n\n    assert candidate(n) == n\n",
    "helper-inside": "    def same(a, b):\n        assert candidate(a) == b\n    same('a.b', 'ab')\n",
}


@pytest.mark.anyio
@pytest.mark.parametrize("body", [pytest.param(body, id=name) for name, body in WHOLE.items()])
async def test_a_check_that_cannot_be_taken_apart_is_one_test(
    tmp_path: Path, provider: SandboxProvider, body: str
) -> None:
    task = loaded(tmp_path, test=f"def check(candidate):\n{body}")
    verdicts = [await judged(task, provider, PROMPT + rest) for rest in (ROW["canonical_solution"], "")]
    assert [(verdict.solved, verdict.tests_total) for verdict in verdicts] == [(True, 1), (False, 1)]


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "no-check": ({"test": "def test(candidate):\n    assert 'SECRET'"}, "test: must define `check` once"),
    "check-without-parameter": ({"test": "def check():\n    assert 'SECRET'"}, "test: must define `check` once"),
    "asserts-nothing": ({"test": "def check(candidate):\n    candidate('SECRET')"}, "test: `check` asserts nothing"),
    "asserts-a-constant": ({"test": "def check(candidate):\n    assert 'SECRET'"}, "test: `check` asserts nothing"),
    "test-is-no-python": ({"test": "def check(candidate)\n    assert 'SECRET'"}, "test: no Python at line 1"),
    "no-test": ({"test": None}, "test: must be text, not NoneType"),
    "empty-prompt": ({"prompt": "  "}, "prompt: is empty"),
    "other-entry-point": ({"entry_point": "narrows"}, "entry_point: 'narrows' is not defined"),
    "solution-is-no-python": ({"canonical_solution": "    return ("}, "prompt: no Python at line"),
    "null-byte": ({"test": "def check(candidate):\n    assert '\0SECRET'"}, "test: no Python"),
    "two-million": ({"test": "#" * 2_000_000}, "test: 2000000 characters of code, more than 1000000"),
    "no-id": ({"task_id": None}, "task_id: must be text"),
}  # fmt: skip


@pytest.mark.parametrize(("fields", "says"), [pytest.param(*case, id=name) for name, case in BAD.items()])
def test_a_bad_row_is_named_and_the_rest_load(tmp_path: Path, fields: dict[str, Any], says: str) -> None:
    good = {**ROW, "task_id": "HumanEval/1"}
    tasks = open_tasks(write(tmp_path / "rows.jsonl", {**ROW, **fields}, good))
    bad = tasks.bad
    assert [task.id for task in tasks] == ["HumanEval/1"]
    assert [row.place for row in bad] == [0]
    assert bad[0].reason.startswith(says)
    assert "SECRET" not in bad[0].reason


def test_the_packaged_rows() -> None:
    tasks = load_tasks("humaneval")
    assert len(tasks) == 164
    assert {task.grader.kind for task in tasks} == {"functions"}
    assert sum(task.tests["test_solution.py"].count(b"def test_") for task in tasks) > 1000
