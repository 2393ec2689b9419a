"""The tasks of recordings, found again."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from env_support import double_task, write_set

from codeenv import load_environment
from codeenv.grading.workspace import start_digest
from codeenv.record import Recording
from codeenv.record import tasks as book
from codeenv.record.schema import Opening, TaskRef
from codeenv.record.tasks import TaskBook, TaskChanged, TaskMissing
from codeenv.sources import load_tasks, open_tasks
from codeenv.task import Task


def of(task: Task, source: Any, **changes: Any) -> Recording:
    """The beginning of a recording of the task."""
    ref = TaskRef(id=task.id, digest=task.digest, start=start_digest(task), source=source)
    ref = ref.model_copy(update=changes)
    opening = Opening(id="a", started="", task=ref, sandbox="", settings={}, spec={}, versions={})
    return Recording(Path("run/r.jsonl"), opening)


@pytest.mark.parametrize("form", ["a-name", "one-task", "an-object", "several", "weights", "eval-dataset"])
def test_where_the_environment_had_it_from(form: str, tmp_path: Path) -> None:
    mine = str(write_set(tmp_path, [double_task(n) for n in range(3)]))
    (shipped,) = load_tasks("starter/drain-pool")
    given: dict[str, dict[str, Any]] = {
        "a-name": {"dataset": mine},
        "one-task": {"dataset": "starter/drain-pool"},
        "an-object": {"dataset": {"dataset": mine, "limit": 2}},
        "several": {"dataset": [mine, {"dataset": "starter", "tasks": ["drain-pool"]}]},
        "weights": {"dataset": {mine: 1.0, "starter": 2.0}, "seed": 4},
        "eval-dataset": {"dataset": mine, "limit": 2, "eval_dataset": "starter/drain-pool"},
    }
    env = load_environment(**given[form], record=str(tmp_path / "run"))
    assert env.record is not None
    source = json.loads(json.dumps(env.record.source))
    assert len(env.tasks) > 0
    for task in [*env.tasks.values()][:3]:
        assert TaskBook().find(of(task, source)) == task
    if form == "eval-dataset":
        assert TaskBook().find(of(shipped, source)) == shipped


def test_an_id_that_got_its_sets_name_in_front(tmp_path: Path) -> None:
    other = double_task(instruction="Another one of the same name.")
    (tmp_path / "other").mkdir()
    source = [str(write_set(tmp_path, [double_task()])), str(write_set(tmp_path / "other", [other]))]
    env = load_environment(source[0], eval_dataset=source[1])
    name = next(name for name in env.tasks if name != "double-0")
    assert name == "tasks/double-0"
    recording = of(env.tasks[name], {"dataset": source[0], "eval_dataset": source[1]})
    assert TaskBook().find(recording) == env.tasks[name]
    assert TaskBook(source[1]).find(recording).instruction == other.instruction


def test_each_dataset_is_opened_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[Any] = []

    def counted(*args: Any) -> Any:
        opened.append(args)
        return open_tasks(args[0]), None

    monkeypatch.setattr(book, "train_and_eval", counted)
    source = str(write_set(tmp_path, [double_task(n) for n in range(50)]))
    tasks = TaskBook()
    for number in range(1000):
        assert tasks.find(of(double_task(number % 50), source)).id == f"double-{number % 50}"
    missing = str(tmp_path / "gone.jsonl")
    for _ in range(3):
        with pytest.raises(TaskMissing):
            tasks.find(of(double_task(), missing))
    assert [args[0] for args in opened] == [source, missing]


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (None, "does not say from which dataset"),
        ("no-such-set", "'no-such-set', cannot be opened; another can be named"),
        ({"dataset": "starter", "colour": 3}, "cannot be opened.*colour"),
        ({"dataset": "starter", "limit": "many"}, "cannot be opened.*limit"),
        (17, "cannot be opened"),
        ("starter/drain-pool", "'double-0' is not in 'starter/drain-pool'"),
    ],
    ids=["none", "no-such-set", "unknown-field", "bad-field", "nonsense", "no-such-task"],
)
def test_what_is_not_to_be_had_is_named(source: Any, said: str) -> None:
    with pytest.raises(TaskMissing, match=said) as error:
        TaskBook().find(of(double_task(), source))
    assert str(error.value).startswith("run/r.jsonl: ")


def test_a_task_that_has_changed(tmp_path: Path) -> None:
    source = str(write_set(tmp_path, [double_task()]))
    other_tests = of(double_task(), source, digest="e" * 64)
    other_start = of(double_task(), source, digest="e" * 64, start="f" * 64)
    with pytest.raises(TaskChanged, match="regrade"):
        TaskBook().find(other_tests)
    assert TaskBook(changed="tests").find(other_tests) == double_task()
    for allowed in ("refuse", "tests"):
        with pytest.raises(TaskChanged, match="starts with are others"):
            TaskBook(changed=allowed).find(other_start)
    assert TaskBook(changed="any").find(other_start) == double_task()


def test_a_dataset_that_is_named_comes_first(tmp_path: Path) -> None:
    mine = str(write_set(tmp_path, [double_task()]))
    recording = of(double_task(), "starter")
    assert TaskBook(mine).find(recording) == double_task()
    assert TaskBook(mine).find(replace(recording, path=Path("x"))) == double_task()
