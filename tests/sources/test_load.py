"""Tasks from directories, JSONL files and the shipped sets."""

# ruff: noqa: E501 - tables: one case a line
from __future__ import annotations

import base64
import json
import os
from pathlib import Path
from typing import Any

import pytest

from codeenv.sources import load_tasks, shipped
from codeenv.sources.jsonl import dump_task
from codeenv.task import Answer, Task, TaskError
from tests.episodes import pytest_task


def author(root: Path, name: str = "adding", **files: str | bytes | None) -> Path:
    """A good task directory with some files replaced; None removes one. `__` in a name is `/`, `_DOT_` is `.`."""
    folder = root / name
    good: dict[str, str | bytes | None] = {
        "task.toml": '[grader]\nkind = "pytest"\n[metadata]\nwhen = 2024-05-06\n',
        "instruction.md": "Make it right.\n",
        "workspace/adding.py": "x = 1\n",
        "workspace/run.sh": "#!/bin/sh\n",
        "tests/test_adding.py": "def test_a(): pass\n",
        "tests/data.bin": b"\xff\x00",
        "solution/adding.py": "x = 2\n",
        "wrong/never/adding.py": "x = 3\n",
    }
    good.update({key.replace("__", "/").replace("_DOT_", "."): value for key, value in files.items()})
    for path, content in good.items():
        if content is not None:
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(content.encode() if isinstance(content, str) else content)
    if (folder / "workspace/run.sh").exists():
        (folder / "workspace/run.sh").chmod(0o755)
    return folder


def faults(dataset: Path) -> list[str]:
    with pytest.raises(TaskError) as raised:
        load_tasks(dataset)
    assert all(fault in str(raised.value) for fault in raised.value.faults)
    return raised.value.faults


# --- directories ------------------------------------------------------------------------------------------------


def test_a_task_that_can_be_answered_with_one_block(tmp_path: Path) -> None:
    text = 'family = "function"\nworkdir = "/app"\n[answer]\npath = "adding.py"\nentry_point = "add"\n'
    (task,) = load_tasks(author(tmp_path, task_DOT_toml=text))
    assert (task.family, task.workdir, task.answer) == ("function", "/app", Answer(path="adding.py", entry_point="add"))


def test_a_directory_of_tasks(tmp_path: Path) -> None:
    author(tmp_path, "b")
    author(tmp_path, "a", solution__adding_DOT_py=None)
    (tmp_path / "notes").mkdir()
    (tmp_path / "b/workspace/__pycache__").mkdir()
    (tmp_path / "b/workspace/__pycache__/x.pyc").write_bytes(b"")
    first, second = load_tasks(tmp_path)
    assert (first.id, second.id) == ("a", "b")
    assert first.solution is None
    assert second.files == {"adding.py": b"x = 1\n", "run.sh": b"#!/bin/sh\n"}
    assert second.executable == frozenset({"run.sh"})
    assert second.tests["data.bin"] == b"\xff\x00"
    assert second.solution == {"adding.py": b"x = 2\n"}
    assert second.wrong == {"never": {"adding.py": b"x = 3\n"}}
    assert load_tasks(tmp_path / "b") == [second]


MALFORMED: dict[str, tuple[dict[str, Any], str, str]] = {
    "not-toml": ({"task_DOT_toml": "[grader"}, "task.toml", "not valid TOML"),
    "not-utf8-toml": ({"task_DOT_toml": b"x = '\xff'"}, "task.toml", "not valid TOML"),
    "unknown-table": ({"task_DOT_toml": "[graders]"}, "task.toml", "graders: unknown; allowed: grader, limits"),
    "unknown-limit": ({"task_DOT_toml": "[limits]\nmem = 1"}, "task.toml", "limits.mem: unknown; allowed: memory_mb, disk_mb"),
    "unknown-grader-field": ({"task_DOT_toml": '[grader]\nkind = "pytest"\ntimout = 1'}, "task.toml", "grader.timout: unknown; allowed: timeout, "),
    "unknown-kind": ({"task_DOT_toml": '[grader]\nkind = "magic"'}, "task.toml", "expected tags: 'command', "),
    "no-kind": ({"task_DOT_toml": "[grader]\ntimeout = 5"}, "task.toml", "grader"),
    "bad-number": ({"task_DOT_toml": "[limits]\nmemory_mb = 3"}, "task.toml", "limits.memory_mb: Input should be greater than or equal to 64"),
    "bad-type": ({"task_DOT_toml": "packages = 7"}, "task.toml", "packages: Input should be a valid tuple"),
    "no-instruction": ({"instruction_DOT_md": None}, "instruction.md", "missing; it holds what the policy reads"),
    "instruction-not-utf8": ({"instruction_DOT_md": b"\xff"}, "instruction.md", "must be UTF-8"),
    "empty-instruction": ({"instruction_DOT_md": ""}, "task.toml", "instruction: String should have at least 1 character"),
    "no-tests": ({"tests__test_adding_DOT_py": None, "tests__data_DOT_bin": None}, "task.toml", "tests: a task needs hidden tests"),
    "no-test-file": ({"tests__test_adding_DOT_py": None}, "task.toml", "tests: the pytest grader needs at least one test_*.py"),
    "misspelt-folder": ({"solutions__x": ""}, "solutions", "unknown; the folders of a task are workspace, tests, solution, wrong"),
    "folder-is-a-file": ({"wrong__never__adding_DOT_py": None, "wrong": "x"}, "wrong", "must be a folder"),
}  # fmt: skip


@pytest.mark.parametrize(("files", "file", "says"), [pytest.param(*case, id=name) for name, case in MALFORMED.items()])
def test_a_malformed_directory_says_which_file_and_what_is_allowed(
    tmp_path: Path, files: dict[str, Any], file: str, says: str
) -> None:
    folder = author(tmp_path, **files)
    for root in (tmp_path, folder):
        found = [fault for fault in faults(root) if says in fault]
        assert found, faults(root)
        assert found[0].startswith(str(folder / file))


def test_all_faults_come_at_once(tmp_path: Path) -> None:
    author(tmp_path, "a", task_DOT_toml="[x]\n[limits]\nmemory_mb = 3\ny = 1", instruction_DOT_md=None)
    author(tmp_path, "b")
    author(tmp_path, "c", task_DOT_toml="[")
    author(tmp_path, "d", task_DOT_toml=None)
    found = faults(tmp_path)
    assert len(found) == 6
    assert [Path(fault.split(":")[0]).relative_to(tmp_path).parts[0] for fault in found] == ["d", *"aaaa", "c"]
    assert "task.toml is missing" in found[0]


def test_hidden_content_is_in_no_fault(tmp_path: Path) -> None:
    author(
        tmp_path,
        tests__test_adding_DOT_py="SECRET",
        tests__x_DOT_in="SECRET",
        task_DOT_toml='[grader]\nkind = "stdio"\ncommand = 5',
    )
    assert "SECRET" not in str(faults(tmp_path))


def test_no_tasks(tmp_path: Path) -> None:
    assert faults(tmp_path) == [f"{tmp_path}: no tasks; each is a folder with a task.toml"]


# --- JSONL ------------------------------------------------------------------------------------------------------


def test_what_is_dumped_is_read_back(tmp_path: Path) -> None:
    author(tmp_path / "set", "a")
    author(
        tmp_path / "set", "b", workspace__r_DOT_bin=bytes(range(256)), workspace__e_DOT_py="# é☃\r\n\n", workspace__z=""
    )
    tasks = [*load_tasks(tmp_path / "set"), pytest_task(id="c/d", protected=("x*",), python="3.12", packages=("a",))]
    path = tmp_path / "tasks.jsonl"
    path.write_text("\n\n".join(map(dump_task, tasks)) + "\n\n", encoding="utf-8")
    back = load_tasks(path)
    assert [task.digest for task in back] == [task.digest for task in tasks]
    assert back[1].files == tasks[1].files
    assert back[1].executable == frozenset({"run.sh"})


def test_shipped_tasks_survive_the_round_trip(tmp_path: Path) -> None:
    tasks = load_tasks("starter")
    path = tmp_path / "tasks.ndjson"
    path.write_text("\n".join(map(dump_task, tasks)), encoding="utf-8")
    assert [task.digest for task in load_tasks(path)] == [task.digest for task in tasks]


def row(**fields: Any) -> str:
    return json.dumps({"id": "a", "instruction": "b", "tests": {"test_x.py": "SECRET"}, **fields})


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (row()[:-1], "Expecting"),
        ("[]", "a line must be one JSON object"),
        ("7", "a line must be one JSON object"),
        ("[" * 100_000, "recursion"),
        (row(files=7), "files: must be an object of path -> content"),
        (row(files={"a": 7}), 'files.a: must be text or {"base64": "..."}'),
        (row(files={"a": {"base64": "!"}}), "files.a: not base64"),
        (row(tests={"test_x.py": {"b64": ""}}), "tests.test_x.py: must be text"),
        (row(wrong={"w": []}), "wrong.w: must be an object"),
        (row(files={"../x": ""}), "files.../x: '../x' is not a relative path below the root"),
        (row(files={"/x": ""}), "'/x' is not a relative path below the root"),
        (row(files={"\ud800": ""}), "is not valid Unicode"),
        (row(difficulty=1), "difficulty: unknown; allowed: id, instruction, files"),
        (row(tests={}), "tests: a task needs hidden tests"),
        (row(id="a b"), "id: String should match pattern"),
        ("{}", "id: Field required"),
    ],
    ids=lambda value: None if len(value) > 40 else value,
)
def test_a_malformed_line_says_where_and_what(tmp_path: Path, line: str, says: str) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text(f"{row(id='ok')}\n\n{line}\n{row(id='ok2')}\n")
    found = [fault for fault in faults(path) if says.lower() in fault.lower()]
    assert found, faults(path)
    assert found[0].startswith(f"{path}:3: ")
    assert "SECRET" not in str(faults(path))


def test_lines_that_are_no_utf8_and_many_faults(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + row(id="bom").encode() + b"\n\xff\n" + b"{}\n" + row(id="é").encode() + b"\r\n")
    found = faults(path)
    assert [fault.split(":")[1] for fault in found] == ["2", "3", "3", "4"]


def test_base64_is_bytes(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text(row(files={"a": {"base64": base64.b64encode(b"\xff\0").decode()}, "b": "\r\n\u2028é"}))
    (task,) = load_tasks(path)
    assert task.files == {"a": b"\xff\0", "b": "\r\n\u2028é".encode()}


# --- names ------------------------------------------------------------------------------------------------------


def test_two_tasks_with_one_id_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text("\n".join([row(), row(id="b"), row(), row(id="b"), row(id="c")]))
    assert faults(path) == [f"{path}: id: '{name}' is used by more than one task" for name in "ab"]


def test_an_unknown_dataset_lists_the_shipped_ones(tmp_path: Path) -> None:
    assert "starter" in shipped()
    for name in ("startr", "starter/nothing", str(tmp_path / "no.jsonl"), "../starter", "./starter-x"):
        with pytest.raises(FileNotFoundError) as raised:
            load_tasks(name)
        assert repr(name) in str(raised.value)
        assert ", ".join(shipped()) in str(raised.value)
    (tmp_path / "tasks.csv").write_text("")
    assert "must be JSONL and end in .jsonl" in faults(tmp_path / "tasks.csv")[0]


def test_a_shipped_task_by_name() -> None:
    (task,) = load_tasks("starter/knot-numerals")
    assert task.id == "knot-numerals"
    assert isinstance(task, Task)


def test_a_path_is_never_taken_for_a_shipped_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    author(tmp_path / "starter", "mine")
    monkeypatch.chdir(tmp_path)
    assert [task.id for task in load_tasks("./starter")] == ["mine"]
    assert len(load_tasks("starter")) > 1
    assert os.path.exists("starter")
