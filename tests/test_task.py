from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from codeenv.graders import PytestGrader
from codeenv.task import Task, TaskError
from tests.episodes import pytest_task, stdio_task


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        ("id", "", "id"),
        ("id", "a b", "id"),
        ("id", "../x", "id"),
        ("id", "x" * 201, "id"),
        ("instruction", "", "instruction"),
        ("files", {"../x": b""}, "'../x' is not a relative path below the root"),
        ("files", {"/etc/passwd": b""}, "'/etc/passwd' is not a relative path"),
        ("files", {"a/../../x": b""}, "is not a relative path"),
        ("files", {".": b""}, "is not a relative path"),
        ("files", {"a\0b": b""}, "is not a relative path"),
        ("files", {"\ud800": b""}, "is not valid Unicode"),
        ("files", {"a": b"", "a/b": b""}, "'a/b' lies below 'a', which is a file"),
        ("tests", {"../test_x.py": b""}, "is not a relative path"),
        ("tests", {}, "a task needs hidden tests"),
        ("tests", {"x.py": b""}, "the pytest grader needs at least one test_*.py"),
        ("wrong", {"w": {"/x": b""}}, "is not a relative path"),
        ("grader", {"kind": "magic"}, "expected tags: 'command', "),
        ("grader", {"kind": "pytest", "timeout": 0}, "greater than 0"),
        ("grader", {"kind": "stdio"}, "command"),
        ("grader", {"kind": "stdio", "command": ()}, "at least 1 item"),
        (
            "grader",
            {"kind": "stdio", "command": ("x",), "compare": "fuzzy"},
            "'tokens', 'exact', 'lines', 'rows' or 'numbers'",
        ),
        ("grader", {"kind": "command", "command": ()}, "at least 1 item"),
        ("grader", {"kind": "command", "command": ("python3", "x.py")}, "an absolute path of the system's"),
        ("grader", {"kind": "command", "command": ("./check.sh",)}, "an absolute path of the system's"),
        ("grader", {"kind": "command", "command": ("/workspace/run",)}, "an absolute path of the system's"),
        ("grader", {"kind": "command", "command": ("/bin/../workspace/run",)}, "an absolute path of the system's"),
        ("grader", {"kind": "command", "command": ("/tmp/hidden-tests/run",)}, "an absolute path of the system's"),
        ("limits", {"memory_mb": 1}, "greater than or equal to 64"),
        ("limits", {"memory": 100}, "Extra inputs"),
        ("difficulty", "easy", "Extra inputs"),
    ],
)
def test_what_is_not_a_task(field: str, value: Any, says: str) -> None:
    fields: dict[str, Any] = {"id": "a", "instruction": "b", "tests": {"test_x.py": b""}, field: value}
    with pytest.raises(ValidationError) as raised:
        Task(**fields)
    assert says in str(raised.value)


@pytest.mark.parametrize(
    ("names", "odd"),
    [(["a.in"], "a"), (["a.in", "a.out", "b.out"], "b"), (["x.txt"], "there is none")],
    ids=["no-output", "no-input", "none"],
)
def test_stdio_cases_come_in_pairs(names: list[str], odd: str) -> None:
    grader = {"kind": "stdio", "command": ("x",)}
    with pytest.raises(ValidationError, match=rf"pairs NAME\.in and NAME\.out \({odd}\)"):
        Task(id="a", instruction="b", tests=dict.fromkeys(names, b""), grader=grader)  # type: ignore[arg-type]


HIDDEN: dict[str, Any] = {
    "tests": {"test_x.py": b"SECRET_TEST"},
    "solution": {"x.py": b"SECRET_SOLUTION"},
    "wrong": {"w": {"x.py": b"SECRET_WRONG"}},
}


def test_hidden_content_is_in_no_repr_and_in_no_error() -> None:
    task = Task(id="a", instruction="b", **HIDDEN)
    assert "SECRET" not in repr(task) + str(task)
    for more in ({"nonsense": "SECRET_FIELD"}, {"files": "SECRET_FILES"}, {"id": " "}, {"files": {"../x": b"SECRET"}}):
        with pytest.raises(ValidationError) as raised:
            Task(**{"id": "a", "instruction": "b", **HIDDEN, **more})  # type: ignore[arg-type]
        assert "SECRET" not in str(raised.value) + repr(raised.value)
    grader = {"kind": "stdio", "command": ("x",)}
    with pytest.raises(ValidationError) as raised:
        Task(id="a", instruction="b", grader=grader, **HIDDEN)  # type: ignore[arg-type]
    assert "SECRET" not in str(raised.value)


def test_a_task_is_frozen() -> None:
    with pytest.raises(ValidationError):
        pytest_task().id = "other"  # type: ignore[misc]


CHANGES: dict[str, dict[str, Any]] = {
    "id": {"id": "other"},
    "instruction": {"instruction": "Other."},
    "file-content": {"files": {"adding.py": b"x"}},
    "file-name": {"files": {"adding2.py": b""}},
    "tests": {"tests": {"test_adding.py": b"x"}},
    "solution": {"solution": {"adding.py": b""}},
    "empty-solution": {"solution": {}},
    "wrong": {"wrong": {"w": {}}},
    "executable": {"executable": frozenset({"adding.py"})},
    "protected": {"protected": ("x",)},
    "grader": {"grader": PytestGrader(timeout=61)},
    "limits": {"limits": {"memory_mb": 100}},
    "packages": {"packages": ("numpy",)},
    "python": {"python": "3.12"},
    "metadata": {"metadata": {"a": 1}},
}


def test_the_digest_is_of_everything() -> None:
    task = pytest_task()
    assert task.digest == pytest_task().digest == Task.model_validate(task.model_dump()).digest
    assert len(task.digest) == 64
    digests = {name: Task.model_validate({**task.model_dump(), **change}).digest for name, change in CHANGES.items()}
    assert len({task.digest, *digests.values()}) == len(CHANGES) + 1


def test_the_digest_does_not_depend_on_order_or_process() -> None:
    files = {"a": b"1", "b": b"2", "c": b"3"}
    one = pytest_task(files=files, executable=frozenset({"a", "b", "c"}), metadata={"x": 1, "y": [1, 2]})
    two = pytest_task(
        files=dict(reversed(files.items())), executable=frozenset({"c", "b", "a"}), metadata={"y": [1, 2], "x": 1}
    )
    assert one.digest == two.digest
    assert stdio_task({"a": ("1", "2")}).digest == stdio_task({"a": (b"1", b"2")}).digest


def test_faults_are_one_a_line() -> None:
    assert str(TaskError(["a: b"])) == "a: b"
    assert str(TaskError(["a: b", "c: d"])) == "2 faults in tasks:\na: b\nc: d"
