"""Recorded ids of tests, in directories and JSONL files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from test_load import author, faults

from codeenv.graders import PytestGrader, digest_of
from codeenv.sources import load_tasks, record
from codeenv.sources.jsonl import dump_task
from codeenv.task import Task
from tests.episodes import pytest_task, stdio_task

IDS = ["test_adding.py::test_a[1]", "test_adding.py::test_a[é]"]


def grader_of(task: Task) -> PytestGrader:
    assert isinstance(task.grader, PytestGrader)
    return task.grader


@pytest.mark.parametrize("one", [True, False], ids=["one-task", "set"])
def test_a_directory(tmp_path: Path, one: bool) -> None:
    folder = author(tmp_path, "a")
    author(tmp_path, "b")
    path = folder if one else tmp_path
    assert record(path, load_tasks(path), {"a": IDS, "b": []}) == ["a"]
    loaded = {task.id: grader_of(task) for task in load_tasks(tmp_path)}
    assert loaded["a"].expected == tuple(IDS)
    assert loaded["b"] == PytestGrader()
    assert grader_of(load_tasks(tmp_path, recorded=False)[0]) == PytestGrader()
    assert sorted(p.name for p in folder.iterdir() if p.is_file()) == ["expected.json", "instruction.md", "task.toml"]
    assert (folder / "expected.json").stat().st_mode & 0o777 == 0o644


def test_a_jsonl_file(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    own = PytestGrader(expected=("test_adding.py::test_small",), timeout=7)
    tasks = [
        pytest_task(id="a", metadata={"x": "\u2028"}),
        pytest_task(id="b", grader=own),
        stdio_task({"a": ("", "")}),
    ]
    plain: dict[str, Any] = json.loads(dump_task(pytest_task(id="c")))
    del plain["grader"]
    lines = [*map(dump_task, tasks), "", json.dumps(plain)]
    path.write_text("\n".join(lines) + "\n")
    ids = {"a": IDS, "b": IDS, "c": IDS[:1], "program": ["a"]}
    assert record(path, load_tasks(path), ids) == ["a", "c"]
    a, b, program, c = load_tasks(path)
    assert (grader_of(a).expected, grader_of(c).expected) == (tuple(IDS), tuple(IDS[:1]))
    assert grader_of(a).expected_of == digest_of(a.tests)
    assert (b, program) == (tasks[1], tasks[2])
    again = path.read_text().split("\n")
    assert [again[n] for n in (1, 2, 3, 5)] == [lines[1], lines[2], "", ""]
    assert load_tasks(path, recorded=False) == [*tasks, pytest_task(id="c")]
    assert record(path, load_tasks(path, recorded=False), {"a": IDS[:1]}) == ["a"]
    assert grader_of(load_tasks(path)[0]).expected == tuple(IDS[:1])


def test_recorded_for_other_tests(tmp_path: Path) -> None:
    folder = author(tmp_path)
    record(tmp_path, load_tasks(tmp_path), {"adding": IDS})
    (folder / "tests/data.bin").write_bytes(b"other")
    says = "the expected ids were recorded for other tests; `codeenv validate --record` writes them anew"
    assert faults(tmp_path) == [f"{folder / 'task.toml'}: tests: {says}"]
    assert len(load_tasks(tmp_path, recorded=False)) == 1
    row = json.loads(dump_task(pytest_task()))
    row["grader"] |= {"expected": ["x"], "expected_of": "0" * 64}
    path = tmp_path / "x.jsonl"
    path.write_text(json.dumps(row))
    assert says in faults(path)[0]


@pytest.mark.parametrize(
    ("toml", "text", "says"),
    [
        ('[grader]\nkind = "pytest"', "{", "not as `codeenv validate --record` writes it: JSONDecodeError"),
        ('[grader]\nkind = "pytest"', "[]", "not as `codeenv validate --record` writes it: TypeError"),
        ('[grader]\nkind = "pytest"', "{}", "not as `codeenv validate --record` writes it: KeyError"),
        ('[grader]\nkind = "pytest"', '{"expected": 7, "expected_of": ""}', "grader.expected: Input should be a valid"),
        ('[grader]\nkind = "pytest"\nexpected = ["x"]', "{}", "one of the two has to go"),
        (
            '[grader]\nkind = "command"\ncommand = ["/bin/true"]',
            "{}",
            "only tasks with a grader of kind functions or pytest have one; remove it",
        ),
    ],
    ids=["no-json", "list", "empty", "type", "both", "kind"],
)
def test_a_malformed_record(tmp_path: Path, toml: str, text: str, says: str) -> None:
    author(tmp_path, task_DOT_toml=toml, expected_DOT_json=text)
    assert [says in fault for fault in faults(tmp_path)] == [True]
