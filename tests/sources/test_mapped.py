"""Rows of any schema by a mapping of their columns: the common shapes, judged for real; and what a mapping lacks."""

# ruff: noqa: E501 - tables: one case a line
from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import datasets
import pytest
from public_rows import write_rows

from codeenv.sandbox.api import SandboxProvider
from codeenv.sources import load_tasks, open_tasks
from codeenv.task import Task
from tests.episodes import judge

pytestmark = pytest.mark.anyio

ADD, SUB = "def add(a, b):\n    return a + b\n", "def add(a, b):\n    return a - b\n"
DOUBLE, SAME = "print(int(input()) * 2)\n", "print(int(input()))\n"
PAIRS = [{"input": "1\n", "output": "2\n"}, {"input": "4\n", "output": "8\n"}]
PYTEST = "import pytest\nfrom solution import add\n\n\n@pytest.mark.parametrize('n', [1, 2])\ndef test_add(n):\n    assert add(n, 1) == n + 1\n"
FUNCTION = {"instruction": "text", "tests": "tests", "entry_point": "name", "solution": "code"}
PROGRAM = {"instruction": "text", "tests": "tests", "solution": "code"}

SHAPES: dict[str, tuple[str, dict[str, str], dict[str, Any], str]] = {
    "asserts-list": ("asserts", FUNCTION, {"tests": ["assert add(1, 2) == 3", "assert add(0, 0) == 0"], "name": "add"}, ADD),
    "asserts-text": ("asserts", FUNCTION, {"tests": "x = '''a\nb'''\nassert add(x, '') == 'a\\nb'", "name": "add"}, ADD),
    "asserts-json": ("asserts", FUNCTION, {"tests": json.dumps(["assert add(1, 2) == 3"]), "name": "add"}, ADD),
    "check": ("check", FUNCTION, {"tests": "def check(candidate):\n    assert candidate(1, 2) == 3\n", "name": "add"}, ADD),
    "functions": ("functions", PROGRAM, {"tests": PYTEST}, ADD),
    "pytest": ("pytest", PROGRAM, {"tests": PYTEST}, ADD),
    "stdio-list": ("stdio", PROGRAM, {"tests": PAIRS}, DOUBLE),
    "stdio-json": ("stdio", PROGRAM, {"tests": json.dumps(PAIRS)}, DOUBLE),
    "stdio-inputs-outputs": ("stdio", PROGRAM, {"tests": {"inputs": ["1", ["4"]], "outputs": ["2", ["8"]]}}, DOUBLE),
    "stdio-columns": ("stdio", {"instruction": "text", "inputs": "i", "outputs": "o", "solution": "code"}, {"i": ["1", "4"], "o": ["2", "8"]}, DOUBLE),
    "nested": ("stdio", {**PROGRAM, "tests": "judge.cases.all"}, {"judge": {"cases": json.dumps({"all": PAIRS})}}, DOUBLE),
}  # fmt: skip


def mapped(path: Path, rows: list[dict[str, Any]], columns: dict[str, str], kind: str, **choice: Any) -> list[Task]:
    return load_tasks(write_rows(path / "rows.jsonl", rows), columns=columns, kind=kind, **choice)


@pytest.mark.parametrize("name", SHAPES)
async def test_a_shape(tmp_path: Path, provider: SandboxProvider, name: str) -> None:
    kind, columns, row, right = SHAPES[name]
    wrong = {ADD: SUB, DOUBLE: SAME}[right]
    (task,) = mapped(tmp_path, [{"text": "Do it.", "code": right, **row}], columns, kind)
    assert task.solution == {"solution.py": right.encode()}
    assert task.family == {"stdio": "program", "pytest": "project"}.get(kind, "function")
    assert (await judge(task, provider, dict(task.solution))).solved
    verdict = await judge(task, provider, {"solution.py": wrong})
    assert (verdict.outcome, verdict.tests_total > 0) == ("failed", True)


def test_all_that_a_column_may_hold(tmp_path: Path) -> None:
    row = {
        "n": 7, "text": "Add {b}.", "level": "hard", "sig": "import math\n\ndef add(a, b):\n", "name": "add",
        "tests": ["assert add(1, 2) == 3"], "code": {"solution.py": ADD, "x/y.py": "", "none": None}, "when": "2024-05-01",
        "extra": json.dumps({"data.txt": "1", "raw.bin": {"base64": "/w=="}}),
    }  # fmt: skip
    columns = {
        "instruction": "{text} Level: {level}.", "tests": "tests", "entry_point": "name", "solution": "code", "id": "n",
        "head": "sig", "files": "extra", "metadata.difficulty": "level", "metadata.date": "when",
    }  # fmt: skip
    (task,) = mapped(tmp_path, [row], columns, "asserts", grader={"timeout": 7})
    assert (task.id, task.instruction) == ("7", "Add {b}. Level: hard.")
    assert task.files == {"data.txt": b"1", "raw.bin": b"\xff", "solution.py": row["sig"].encode()}
    assert task.solution == {"solution.py": ADD.encode(), "x/y.py": b""}
    assert task.metadata == {"difficulty": "hard", "date": "2024-05-01"}
    assert (task.grader.timeout, task.grader.kind) == (7, "functions")
    columns = {"instruction": "text", "tests": "tests", "entry_point": "name", "head": "sig"}
    (plain,) = mapped(tmp_path, [row], columns, "asserts")
    assert plain.id.startswith("row-")
    assert plain.answer is not None
    assert (plain.answer.head, plain.answer.entry_point, plain.solution) == (row["sig"], "add", None)


def test_parquet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    path = tmp_path / "rows.parquet"
    rows = [{"text": f"Do {n}.", "tests": PAIRS, "level": n} for n in range(5)]
    datasets.Dataset.from_list(rows).to_parquet(str(path))
    columns = {"instruction": "text", "tests": "tests", "metadata.level": "level"}
    tasks = open_tasks(path, columns=columns, kind="stdio", filter={"level": {">": 2}})
    assert [task.instruction for task in tasks] == ["Do 3.", "Do 4."]
    assert tasks[1].tests == {"1.in": b"1\n", "1.out": b"2\n", "2.in": b"4\n", "2.out": b"8\n"}
    path.write_bytes(b"PAR1")
    with pytest.raises(ValueError, match=r"rows.parquet: cannot be read as Parquet"):
        open_tasks(path, columns=columns, kind="stdio")


@pytest.mark.parametrize(
    ("columns", "kind", "grader", "says"),
    [
        ({}, "asserts", {}, "columns: say what is in which column: instruction (what the policy reads"),
        ({"prompt": "x"}, "asserts", {}, "columns: unknown: prompt; valid: instruction, tests, inputs"),
        (FUNCTION, "", {}, "kind: must say what the tests are: asserts ("),
        (FUNCTION, "unit", {}, "; not 'unit'"),
        (PROGRAM, "check", {}, "columns: kind 'check' needs entry_point: the function or class"),
        ({"instruction": "t"}, "stdio", {}, "columns: kind 'stdio' needs tests"),
        (PROGRAM, "stdio", {"compare": "x"}, "grader: stdio.compare: Input should be 'tokens', 'exact'"),
        (PROGRAM, "stdio", {"kind": "magic"}, "grader: task: Input tag 'magic'"),
    ],
    ids=str,
)
def test_a_mapping_that_cannot_be(
    tmp_path: Path, columns: dict[str, str], kind: str, grader: dict[str, Any], says: str
) -> None:
    path = write_rows(tmp_path / "rows.jsonl", [{}])
    with pytest.raises(ValueError) as raised:  # noqa: PT011
        load_tasks(path, columns=columns, kind=kind, grader=grader)
    assert says in str(raised.value)


GOOD = {"text": "Do it.", "tests": ["assert add(1, 2) == 3"], "name": "add", "code": ADD}


@pytest.mark.parametrize(
    ("kind", "changes", "says"),
    [
        ("asserts", {"text": None}, "text: must be text, not NoneType"),
        ("asserts", {"text": " "}, "text: is empty"),
        ("asserts", {"tests": []}, "tests: must be statements"),
        ("asserts", {"tests": ["assert ("]}, "tests: statement 1 does not parse: SyntaxError"),
        ("asserts", {"tests": ["", "x"]}, "tests: statement 1 is empty"),
        ("asserts", {"tests": [7]}, "tests: must be texts, not int"),
        ("asserts", {"name": "a b"}, "name: must be a Python name"),
        ("asserts", {"name": ""}, "name: must be a Python name"),
        ("asserts", {"code": {"x": 7}}, 'code.x: must be text or {"base64": "..."}'),
        ("check", {"tests": ""}, "tests: is empty"),
        ("stdio", {"tests": "none"}, "tests: must be a list of {input, output}, or {inputs: [...], outputs: [...]}"),
        ("stdio", {"tests": ["x"]}, "tests: each must be an object with input and output"),
        ("stdio", {"tests": {"input": ["1"], "output": []}}, "tests: must be lists of inputs and outputs"),
        ("stdio", {"tests": {"input": ["1"], "output": ["1", "2"]}}, "tests: 1 inputs and 2 outputs"),
        ("stdio", {"tests": []}, "tests: 0 inputs and 0 outputs"),
    ],
    ids=str,
)
def test_a_row_that_is_no_task(tmp_path: Path, kind: str, changes: dict[str, Any], says: str) -> None:
    path = write_rows(tmp_path / "rows.jsonl", [GOOD, {**GOOD, **changes, "id": "bad"}])
    columns = FUNCTION if kind in ("asserts", "check") else PROGRAM
    with pytest.raises(ValueError) as raised:  # noqa: PT011
        load_tasks(path, columns=columns, kind=kind, strict=True)
    assert f"{path}:2: {says}" in str(raised.value)


def test_a_column_that_is_not_there_says_which_are(tmp_path: Path) -> None:
    with pytest.raises(
        ValueError, match="instruction: there is no column 'question'; there are text, tests, name, code"
    ):
        mapped(tmp_path, [GOOD], {**FUNCTION, "instruction": "question"}, "asserts")
    with pytest.raises(ValueError, match=r"tests: there is no column 'name.x'; there are"):
        mapped(tmp_path, [GOOD], {**FUNCTION, "tests": "name.x"}, "asserts")
