"""MBPP: its rows, full and sanitized, and what becomes of their asserts."""

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

CODE = """import math\r
\r
class Box:\r
    def __init__(self, side):\r
        self.side = side\r
\r
def volume(box):\r
    return box.side ** 3\r
"""
FULL: dict[str, Any] = {
    "task_id": 7,
    "text": "Write a function to find the volume of a box.",
    "code": CODE,
    "test_list": ["assert volume(Box(2)) == 8", "assert volume(small) == 1", "assert math.sqrt(volume(Box(4))) == 8"],
    "test_setup_code": "small = Box(1)",
    "challenge_test_list": ["assert volume(Box(10)) == 1000"],
}
SANITIZED: dict[str, Any] = {
    "source_file": "a.ipynb",
    "task_id": 8,
    "prompt": "Write a function to halve.",
    "code": "def half(x):\n    return x / 2",
    "test_imports": ["import math"],
    "test_list": ["assert math.isclose(half(1), 0.5, rel_tol=0.001)", "assert half(4) == 2.0"],
}


def write(path: Path, *rows: Any, name: str = "mbpp") -> str:
    path.write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    return f"{name}:{path}"


async def judged(task: Task, provider: SandboxProvider, code: str | None = None) -> Verdict:
    files = {"solution.py": code.encode()} if code is not None else task.solution or {}
    return await grade(task, workspace_of(task).overlay(Archive.of(files)), provider, box_spec(task))


def test_a_full_row(tmp_path: Path) -> None:
    (task,) = load_tasks(write(tmp_path / "rows.jsonl", FULL))
    assert task.id == "MBPP/7"
    assert task.files == {"solution.py": b"# Write a function to find the volume of a box.\n"}
    assert (
        "Write it as `volume` in `solution.py`. The tests also use `Box`, which it has to define." in task.instruction
    )
    assert "assert volume(Box(2)) == 8" in task.instruction
    assert "1000" not in task.instruction
    assert "small" not in task.instruction
    assert task.answer is not None
    assert (task.answer.entry_point, task.answer.head, task.family) == ("volume", "", "function")
    assert task.tests["test_solution.py"].decode().count("def test_") == 4


def test_a_sanitized_row(tmp_path: Path) -> None:
    (task,) = load_tasks(write(tmp_path / "rows.jsonl", SANITIZED, name="mbpp-sanitized"))
    assert task.metadata == {"entry_point": "half", "source": "MBPP"}
    assert task.instruction.startswith(
        "Write a function to halve.\n\nWrite it as `half` in `solution.py`. One of the tests:"
    )


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("row", "code", "passed"),
    [
        pytest.param(FULL, None, 4, id="full-reference"),
        pytest.param(FULL, CODE.replace("import math", ""), 4, id="an-import-that-only-the-tests-need"),
        pytest.param(FULL, CODE.replace("** 3", "* 4"), 1, id="wrong-for-some"),
        pytest.param(FULL, "", 0, id="untouched"),
        pytest.param(SANITIZED, None, 2, id="sanitized-reference"),
        pytest.param(SANITIZED, "def half(x):\n    return x / 2 + 1e-4", 1, id="within-the-tests-own-tolerance"),
        pytest.param(SANITIZED, "def half(x):\n    return x / 2 + 1e-3", 0, id="beyond-it"),
    ],
)  # fmt: skip
async def test_what_passes(provider: SandboxProvider, tmp_path: Path, row: Any, code: str | None, passed: int) -> None:
    (task,) = load_tasks(write(tmp_path / "rows.jsonl", row))
    verdict = await judged(task, provider, code)
    assert verdict.tests_passed == passed
    assert verdict.solved is (passed == verdict.tests_total)


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "no-tests": ({"test_list": []}, "test_list: is empty"),
    "tests-are-text": ({"test_list": "assert 'SECRET'"}, "test_list: must be a list, not str"),
    "a-test-is-a-number": ({"test_list": [1]}, "test_list: must be a list of texts"),
    "asserts-nothing": ({"test_list": ["volume('SECRET')"], "challenge_test_list": []}, "test_list: asserts nothing"),
    "other-function": ({"test_list": ["assert a('SECRET')"], "challenge_test_list": None}, "test_list: calls no"),
    "test-is-no-python": ({"test_list": ["assert 'SECRET"]}, "test_list: no Python at line 1"),
    "setup-is-no-python": ({"test_setup_code": "'SECRET"}, "test_setup_code: no Python at line"),
    "code-is-no-python": ({"code": "def volume(:"}, "code: no Python at line 1"),
    "empty-text": ({"text": " "}, "text: is empty"),
    "no-number": ({"task_id": "x"}, "task_id: must be a number"),
}  # fmt: skip


@pytest.mark.parametrize(("fields", "says"), [pytest.param(*case, id=name) for name, case in BAD.items()])
def test_a_bad_row_is_named_and_the_rest_load(tmp_path: Path, fields: dict[str, Any], says: str) -> None:
    tasks = open_tasks(write(tmp_path / "rows.jsonl", {**FULL, **fields}, SANITIZED))
    bad = tasks.bad
    assert [task.id for task in tasks] == ["MBPP/8"]
    assert len(bad) == 1
    assert bad[0].reason.startswith(says)
    assert "SECRET" not in bad[0].reason
