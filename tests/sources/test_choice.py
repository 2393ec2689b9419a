"""Which tasks of a dataset, in which order: splits, filters, samples, allow-lists, several sets, decontamination."""

from __future__ import annotations

import json
import logging
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from public_rows import humaneval_row, levels, write_rows

from codeenv.sources import load_tasks, open_tasks, public, train_and_eval
from codeenv.sources.jsonl import dump_task
from codeenv.sources.pool import ListRows, Rows
from codeenv.sources.rows import Hub
from codeenv.sources.sets import public_sets
from codeenv.task import TaskError


def ids(dataset: Any, **choice: Any) -> list[str]:
    return [task.id for task in load_tasks(dataset, **choice)]


@pytest.fixture
def own(tmp_path: Path) -> str:
    return str(write_rows(tmp_path / "own.jsonl", [dump_task(task) for task in levels()]))


@pytest.fixture
def rows(tmp_path: Path) -> str:
    return f"humaneval:{write_rows(tmp_path / 'rows.jsonl', [humaneval_row(n) for n in range(6)])}"


# --- filters --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wanted", "numbers"),
    [
        ({"difficulty": "easy"}, [0, 3, 6, 9]),
        ({"difficulty": ["easy", "hard"], "rating": {">=": 500, "<": 900}}, [5, 6, 8]),
        ({"date": {">=": "2024-08-01"}}, [7, 8, 9, 10, 11]),
        ({"date": {">": "2024-03-01", "<=": "2024-05-01"}}, [3, 4]),
        ({"rating": 300}, [3]),
        ({"tags": "graphs"}, [1, 3, 5, 7, 9, 11]),
        ({"tags": {"!=": "graphs"}, "rating": {"<": 500}}, [0, 2, 4]),
        ({"difficulty": {"not in": ["easy", "medium"]}}, [2, 5, 8, 11]),
        ({"difficulty": {"==": "easy"}, "odd": True}, [3, 9]),
        ({"odd": {"!=": True}}, [0, 2, 4, 6, 8, 10]),
    ],
    ids=str,
)
def test_a_filter(own: str, wanted: dict[str, Any], numbers: list[int]) -> None:
    tasks = open_tasks(own, filter=wanted)
    assert [task.id for task in tasks] == [f"t{number}" for number in numbers]
    assert tasks.left_out == {"filter": 12 - len(numbers)}


@pytest.mark.parametrize(
    ("wanted", "says"),
    [
        ({"level": "easy"}, "filter: no task has 'level'; they have: date (2024-01-01, "),
        ({"difficulty": {"~": "easy"}}, "filter: difficulty: unknown operator '~'; valid: <, <="),
        ({"difficulty": {"in": "easy"}}, "filter: difficulty: 'in' needs a list"),
        ({"rating": {">": "100"}}, "filter: rating: 0 cannot be compared with '100' by '>'"),
        ({"rating": {">": 100000}}, "no tasks are left; left out: 12 filter"),
    ],
    ids=str,
)
def test_a_filter_that_cannot_be(own: str, wanted: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError) as raised:  # noqa: PT011
        ids(own, filter=wanted)
    assert says in str(raised.value)


# --- samples and allow-lists ------------------------------------------------------------------------------------


def test_a_sample(own: str) -> None:
    everything = ids(own)
    assert ids(own, limit=3) == everything[:3]
    sample = ids(own, limit=5, seed=3)
    assert sample == ids(own, limit=5, seed=3)
    assert sample != ids(own, limit=5, seed=4)
    assert len(set(sample)) == 5
    assert ids(own, seed=3)[:5] == sample, "a larger sample begins with the smaller one"
    assert sorted(ids(own, seed=3)) == sorted(everything)
    assert len(ids(own, limit=99)) == 12


def test_a_sample_looks_at_no_more_than_it_needs(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "rows.jsonl", [humaneval_row(0), "{", *map(humaneval_row, range(1, 9)), "{"])
    tasks = open_tasks(f"humaneval:{path}", limit=3)
    assert [task.id for task in tasks] == ["Own/0", "Own/1", "Own/2"]
    assert [row.place for row in tasks.bad] == [1]


def report(path: Path, dataset: str, sound: dict[str, bool], **changes: Any) -> str:
    tasks = [{"task": name, "sound": is_sound} for name, is_sound in sound.items()]
    path.write_text(json.dumps({"codeenv_report": 1, "dataset": dataset, "tasks": tasks, **changes}))
    return str(path)


def test_the_sound_tasks_of_a_report(own: str, tmp_path: Path) -> None:
    path = report(tmp_path / "r.json", own, {"t5": True, "t1": False, "t3": True, "gone": True})
    tasks = open_tasks(own, tasks=path)
    assert [task.id for task in tasks] == ["t3", "t5"]
    assert tasks.left_out == {"not sound by the report": 10}
    assert ids(own, tasks=["t5", "t1"]) == ["t5", "t1"]


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"codeenv_report": 2}, "a report of version 2; this codeenv reads 1"),
        ({"dataset": "humaneval"}, "is a report of 'humaneval', not of"),
        ({"tasks": [{"task": "t1", "sound": False}]}, "none of its 1 tasks is sound"),
        ({"tasks": [{"id": "t1"}]}, "not a report of `codeenv validate`: KeyError: 'sound'"),
        ({"tasks": [{"task": "x", "sound": True}]}, "no tasks are left; left out: 12 not sound by the report"),
    ],
    ids=["version", "dataset", "none-sound", "form", "none-of-these"],
)
def test_a_report_that_cannot_be(own: str, tmp_path: Path, changes: dict[str, Any], says: str) -> None:
    path = report(tmp_path / "r.json", **{"dataset": own, "sound": {}, **changes})
    with pytest.raises(ValueError) as raised:  # noqa: PT011
        ids(own, tasks=path)
    assert says in str(raised.value)


def test_tasks_that_are_not_there(own: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="tasks: no such task: x, y; there are: t0, t1, "):
        ids(own, tasks=["t1", "x", "y"])
    with pytest.raises(ValueError, match="tasks: no such task: none named"):
        ids(own, tasks=[])
    with pytest.raises(FileNotFoundError, match=r"tasks: .*nope.json: no such report"):
        ids(own, tasks=str(tmp_path / "nope.json"))


# --- several datasets -------------------------------------------------------------------------------------------


def test_shares_are_true_at_every_beginning(own: str, rows: str) -> None:
    weighted = [{"dataset": own, "weight": 3}, {"dataset": rows, "weight": 1}]
    names = ids(weighted)
    assert names == ids(weighted), "the same each time"
    for count in range(1, len(names) + 1):
        mine = sum(name.startswith("t") for name in names[:count])
        assert abs(mine - count * 3 / 4) < 1
    assert len(names) == 16, "it ends where one has no more: 12 and 4"
    assert ids({own: 3, rows: 1}) == names
    assert ids(weighted, limit=8) == names[:8]


def test_without_weights_each_has_all_its_tasks(own: str, rows: str) -> None:
    assert ids([rows, {"dataset": own, "filter": {"rating": {"<": 200}}}]) == [
        *(f"Own/{n}" for n in range(6)),
        "t0",
        "t1",
    ]
    assert ids([rows, own], limit=7) == [*(f"Own/{n}" for n in range(6)), "t0"]
    assert ids([rows, own], seed=1) != ids([rows, own])


def test_ids_that_clash_get_their_sets_name(own: str, tmp_path: Path) -> None:
    other = write_rows(tmp_path / "Other one.jsonl.gz", [dump_task(task) for task in levels(2)])
    tasks = open_tasks([{"dataset": own, "limit": 1}, str(other), str(other)])
    names = ["t0", "Other-one/t0", "t1", "Other-one/Other-one/t0", "Other-one/t1"]
    assert [task.id for task in tasks] == names
    assert [task.id for task in tasks[:]] == names, "also when they are made again"


@pytest.mark.parametrize(
    ("dataset", "choice", "says"),
    [
        ([], {}, "dataset: no dataset is named"),
        (["starter", "nope"], {}, "no dataset 'nope'"),
        ([{"dataset": "starter", "weight": 1}, "starter"], {}, "weight: each of several datasets has one, or none has"),
        ({"starter": 0}, {}, "weight: Input should be greater than 0"),
        ({"dataset": "starter", "wieght": 1}, {}, "dataset: unknown: wieght; valid: dataset, split, filter"),
        (["starter"], {"tasks": ["a"]}, "tasks: with several datasets each entry has its own"),
        ("starter", {"limit": 0}, "limit: Input should be greater than or equal to 1"),
        (["starter"], {"limit": 0}, "limit: Input should be greater than or equal to 1"),
        ("starter", {"seed": "x"}, "seed: Input should be a valid integer"),
        ("starter", {"split": "train"}, "split: starter has no splits; public sets have"),
        ("humaneval", {"split": "train"}, "split: humaneval has no 'train'; it has eval (test)"),
        ("humaneval:x.jsonl", {}, "x.jsonl: there is no such file of rows"),
        ("starter", {"columns": {"tests": "t"}}, "columns, kind and grader go with hf:REPO and with files of rows"),
        ("humaneval", {"kind": "check"}, "columns: humaneval has a mapping of its own"),
        ("hf:a@b:c@d", {"kind": "check"}, "columns: say what is in which column: instruction ("),
        ("hf:", {}, "dataset: 'hf:' must be hf:REPO[:CONFIG][@REVISION]"),
    ],
    ids=str,
)  # fmt: skip
def test_what_cannot_be_is_said_by_its_name(dataset: Any, choice: dict[str, Any], says: str) -> None:
    with pytest.raises((ValueError, FileNotFoundError)) as raised:
        ids(dataset, **choice)
    assert says in str(raised.value)


# --- splits, train and eval -------------------------------------------------------------------------------------


def both(dataset: Any, *more: Any, **choice: Any) -> tuple[list[str], list[str] | None]:
    train, held_out = train_and_eval(dataset, choice, *more)
    return [task.id for task in train], None if held_out is None else [task.id for task in held_out]


def test_train_and_eval(own: str, rows: str) -> None:
    assert both(rows, limit=2) == (["Own/0", "Own/1"], None)
    assert both({"dataset": own, "limit": 1}, {"dataset": rows, "limit": 2}) == (["t0"], ["Own/0", "Own/1"])
    assert both(own, rows, limit=1) == (["t0"], [f"Own/{n}" for n in range(6)])
    with pytest.raises(ValueError, match=r"split: .* is a file, which has no splits"):
        both(rows, None, "test")


@pytest.mark.parametrize(
    ("choice", "eval_split", "found"),
    [
        ({}, "", ("train", "test")),
        ({"split": "train"}, "", ("train", None)),
        ({"split": "train"}, "eval", ("train", "test")),
        ({"split": "train"}, "validation", ("train", "validation")),
        ({"tasks": ["x"]}, "", ("test", None)),
    ],
    ids=str,
)
def test_splits_of_a_set_with_both(
    monkeypatch: pytest.MonkeyPatch, choice: dict[str, Any], eval_split: str, found: tuple[str, str | None]
) -> None:
    splits = {"train": "train", "eval": "test"}
    two = replace(public_sets()["humaneval"], name="two", splits=splits, package=None, hub=Hub("a/b", ""))

    def read_hub(hub: Hub, split: str, name: str) -> Rows:
        return ListRows([humaneval_row(1, task_id="x"), humaneval_row(2, task_id=split)])

    monkeypatch.setattr(public, "public_sets", lambda: {"two": two})
    monkeypatch.setattr(public, "read_hub", read_hub)
    train, held_out = train_and_eval("two", choice, None, eval_split)
    last = [list(tasks)[-1].id if tasks is not None else None for tasks in (train, held_out)]
    assert last == (list(found) if "tasks" not in choice else ["x", None])


# --- decontamination --------------------------------------------------------------------------------------------


def test_decontamination(tmp_path: Path, rows: str, caplog: pytest.LogCaptureFixture) -> None:
    prompt = humaneval_row(3)["prompt"]
    reworded = prompt.upper().replace(" ", "  ").replace(",", ";")
    mine = [
        *levels(2),
        levels(1)[0].model_copy(update={"id": "exact", "instruction": f"\n{prompt}"}),
        levels(1)[0].model_copy(update={"id": "case", "instruction": reworded}),
        levels(1)[0].model_copy(update={"id": "more", "instruction": prompt + "And say why."}),
        levels(1)[0].model_copy(update={"id": "file", "files": {"solution.py": prompt.encode()}}),
        levels(1)[0].model_copy(update={"id": "stub", "files": {"solution.py": b"def f(x):\n    pass\n"}}),
    ]
    path = write_rows(tmp_path / "mine.jsonl", [dump_task(task) for task in mine])
    tasks = open_tasks(path, decontaminate=[rows])
    with caplog.at_level(logging.INFO, "codeenv"):
        assert [task.id for task in tasks] == ["t0", "t1", "more", "stub"]
    assert tasks.left_out == {"contaminated (exact)": 2, "contaminated (normalised)": 1}
    assert f"{path}: 2 tasks left out: contaminated (exact)" in caplog.text
    assert ids(path, decontaminate=rows, limit=3) == ["t0", "t1", "more"]
    assert Counter(ids(path)) == Counter(task.id for task in mine)
    with pytest.raises(TaskError, match="no tasks are left; left out: 6 contaminated"):
        ids(rows, decontaminate=rows)
