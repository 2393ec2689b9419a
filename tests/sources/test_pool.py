"""Rows that are no tasks, and tasks that are made when they are asked for."""

from __future__ import annotations

import gc
import json
import logging
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from public_rows import humaneval_row, levels, write_rows

from codeenv.sources import load_tasks, open_tasks, public
from codeenv.sources.jsonl import dump_task
from codeenv.sources.pool import JsonlRows
from codeenv.sources.sets import public_sets
from codeenv.sources.tasks import SHOWN
from codeenv.task import TaskError
from tests.episodes import pytest_task

SECRET = "hidden-marker-0815"
BAD: dict[str, tuple[Any, str, str]] = {
    "no-tests": ({key: value for key, value in humaneval_row(0).items() if key != "test"}, "Own/0", "test: missing"),
    "not-json": (f'{{"test": "{SECRET}', "", "Unterminated string"),
    "no-object": (f'["{SECRET}"]', "", "a line must be one JSON object"),
    "not-utf8": ("\udcff", "", "'utf-8' codec can't decode"),
    "empty-prompt": (humaneval_row(1, prompt=" \n"), "Own/1", "prompt: is empty"),
    "prompt-no-text": (humaneval_row(2, prompt=[SECRET]), "Own/2", "prompt: must be text, not list"),
    "50-mb": (humaneval_row(3, notes="x" * 50 * 1024 * 1024), "Own/3", "notes: 50 MiB, more than the limit of 32"),
    "same-id": (humaneval_row(4, task_id="Own/9"), "Own/9", "id: 'Own/9' is used by {path}:1 too"),
}  # fmt: skip


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("rows") / "rows.jsonl"
    lines = [row if isinstance(row, str) else json.dumps(row) for row, _, _ in BAD.values()]
    good = [json.dumps(humaneval_row(number)) for number in (9, 10)]
    path.write_bytes("\n".join([good[0], "", *lines, good[1]]).encode("utf-8", "surrogateescape"))
    return path


def test_bad_rows_are_named_and_the_rest_loads(rows: Path, caplog: pytest.LogCaptureFixture) -> None:
    tasks = open_tasks(f"humaneval:{rows}")
    assert [task.id for task in tasks] == ["Own/9", "Own/10"]
    assert len(tasks.bad) == len(BAD)
    for number, (row, (_, name, says)) in enumerate(zip(tasks.bad, BAD.values(), strict=True)):
        assert (row.place, row.where, row.name) == (number + 1, f"{rows}:{number + 3}", name)
        assert says.format(path=rows) in row.reason
    (record,) = (record for record in caplog.records if record.levelno == logging.WARNING)
    assert f"{len(BAD)} rows are no tasks and were left out: {rows}:3 (Own/0): test: missing; " in record.message
    assert record.message.count(str(rows)) <= SHOWN + 2
    assert SECRET not in caplog.text + "".join(map(str, tasks.bad))


def test_strict(rows: Path, tmp_path: Path) -> None:
    with pytest.raises(TaskError) as raised:
        load_tasks(f"humaneval:{rows}", strict=True)
    assert len(raised.value.faults) == len(BAD) - 1, "an id is said to be there twice once nothing else is wrong"
    twice = write_rows(tmp_path / "twice.jsonl", [humaneval_row(1), humaneval_row(1)])
    with pytest.raises(TaskError, match="id: 'Own/1' is used by more than one task"):
        load_tasks(f"humaneval:{twice}", strict=True)


def test_a_set_of_bad_rows_is_an_error(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "rows.jsonl", [humaneval_row(n, test="") for n in range(9)])
    with pytest.raises(TaskError, match="none of 9 rows is a task") as raised:
        load_tasks(f"humaneval:{path}")
    assert raised.value.faults[1:] == [f"{path}:{n + 1} (Own/{n}): test: is empty" for n in range(SHOWN)]


def test_the_limit_of_a_field_is_the_users(rows: Path) -> None:
    assert "Own/3" in [task.id for task in load_tasks(f"humaneval:{rows}", field_limit_mb=60)]
    assert len(open_tasks(f"humaneval:{rows}", field_limit_mb=60).bad) == len(BAD) - 1


def test_own_tasks_have_no_such_limit(tmp_path: Path) -> None:
    big = pytest_task(id="big", files={"big": b"x" * 33 * 1024 * 1024})
    assert load_tasks(write_rows(tmp_path / "own.jsonl", [dump_task(big)])) == [big]


# --- made when asked for --------------------------------------------------------------------------------------


def test_a_task_is_made_once_while_somebody_holds_it(tmp_path: Path) -> None:
    tasks = open_tasks(write_rows(tmp_path / "own.jsonl", [dump_task(task) for task in levels(3)]))
    assert len(tasks) == 3
    first = tasks[0]
    assert tasks[0] is first
    assert tasks[-3] is first
    assert next(iter(tasks)) is first
    assert tasks[1:] == levels(3)[1:]
    number = id(first)
    del first
    gc.collect()
    assert tasks[0] == levels(1)[0]
    assert number  # it may be the same place in memory
    with pytest.raises(IndexError):
        tasks[3]


@pytest.mark.parametrize("suffix", [".jsonl", ".jsonl.gz"])
def test_rows_are_read_where_they_are(tmp_path: Path, suffix: str) -> None:
    wanted = [humaneval_row(number, prompt=f"def add_{number}(x):\n    'é\u2028☃'\n") for number in range(50)]
    path = write_rows(tmp_path / f"rows{suffix}", ["", "  ", *wanted, ""])
    before = len(os.listdir("/proc/self/fd"))
    rows = JsonlRows(path)
    assert [rows.read(place)[0] for place in reversed(range(len(rows)))] == wanted[::-1]
    assert rows.where(0) == f"{path}:3"
    path.unlink()
    assert rows.read(7)[0] == wanted[7], "what was opened is there until it is let go"
    assert len(os.listdir("/proc/self/fd")) == before + 1
    del rows
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) == before
    assert [path.name for path in tmp_path.iterdir()] == []


def test_a_file_that_is_cut_off(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "rows.jsonl.gz", [humaneval_row(1)])
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(ValueError, match=r"rows.jsonl.gz: cannot be unpacked"):
        load_tasks(f"humaneval:{path}")


def test_a_row_that_changes_under_the_tasks(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "rows.jsonl", [humaneval_row(number) for number in range(3)])
    tasks = open_tasks(f"humaneval:{path}")
    assert len(tasks) == 3
    with path.open("r+b") as file:
        file.write(path.read_bytes().replace(b"x + 1", b"x + 7"))
    assert tasks[0].id == "Own/0"
    with pytest.raises(TaskError, match=r"rows.jsonl:2: task 'Own/1' has changed since it was loaded"):
        tasks[1]
    path.write_bytes(b"{}\n")
    with pytest.raises(TaskError, match=r"rows.jsonl:3: has changed since it was loaded"):
        tasks[2]


def test_rows_that_name_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sets whose form is a directory: what is in the files counts."""
    for number in range(2):
        (tmp_path / f"{number}.json").write_text(json.dumps(humaneval_row(number)))

    def read(folder: Path) -> list[dict[str, Any]]:
        return [{"path": path} for path in sorted(folder.glob("*.json"))]

    known = public_sets()["humaneval"]
    kept = replace(
        known, name="kept", read=read, to_task=lambda row: known.to_task(json.loads(row["path"].read_text()))
    )
    monkeypatch.setattr(public, "public_sets", lambda: {"kept": kept})
    tasks = open_tasks(f"kept:{tmp_path}")
    assert [task.id for task in tasks] == ["Own/0", "Own/1"]
    (tmp_path / "1.json").write_text(
        json.dumps(humaneval_row(1, test="def check(candidate):\n    assert candidate(2) == 3\n"))
    )
    assert tasks[0].id == "Own/0"
    with pytest.raises(TaskError, match="row 1: task 'Own/1' has changed since it was loaded"):
        tasks[1]
    with pytest.raises(ValueError, match=r"split: .* is a file, which has no splits"):
        open_tasks(f"kept:{tmp_path}", split="eval")
    monkeypatch.setattr(public, "public_sets", lambda: {"kept": replace(kept, package=None)})
    with pytest.raises(FileNotFoundError, match="kept: say where it is: kept:DIRECTORY"):
        open_tasks("kept")


def test_a_set_may_have_larger_columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_rows(tmp_path / "rows.jsonl", [humaneval_row(1, notes="x" * 40 * 1024 * 1024)])
    known = replace(public_sets()["humaneval"], field_limit_mb=50)
    monkeypatch.setattr(public, "public_sets", lambda: {"humaneval": known})
    assert [task.id for task in load_tasks(f"humaneval:{path}")] == ["Own/1"]
    with pytest.raises(TaskError, match="notes: 40 MiB, more than the limit of 8"):
        load_tasks(f"humaneval:{path}", field_limit_mb=8)
