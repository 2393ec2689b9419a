"""The report of a validation: what it goes on from, and what training takes from it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from env_support import double_task

from codeenv.report_file import ReportFile
from codeenv.sources.jsonl import dump_task
from codeenv.task import Task
from codeenv.validate import Fault, TaskReport

SETTINGS: dict[str, Any] = {"runs": 1, "mutants": 2}


def found(task: Task, **fields: Any) -> TaskReport:
    return TaskReport(task.id, digest=task.digest, grader="stdio", ids=("hidden",), **fields)


def filled(path: Path) -> list[Task]:
    tasks = [double_task(n) for n in range(4)]
    file = ReportFile(path, "mine", SETTINGS)
    file.add(found(tasks[0], mutants=2, killed=1, survived=("operator in main.py:1 #1",), flake_rate=0.0))
    file.add(found(tasks[1], faults=[Fault("reference", "fails")]))
    file.add(found(tasks[2], errors=[Fault("reference", "no room")]))
    file.write()
    return tasks


def test_what_is_written(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    tasks = filled(path)
    plain = json.loads(path.read_text())
    assert (plain["codeenv_report"], plain["dataset"]) == (1, "mine")
    entries = {entry["task"]: entry for entry in plain["tasks"]}
    assert {name: entry["sound"] for name, entry in entries.items()} == {
        "double-0": True, "double-1": False, "double-2": False,
    }  # fmt: skip
    assert entries["double-0"]["digest"] == tasks[0].digest
    assert entries["double-0"]["survived"] == ["operator in main.py:1 #1"]
    assert "hidden" not in path.read_text()
    assert list(tmp_path.iterdir()) == [path]


def test_what_is_known_of_the_same_tasks(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    tasks = filled(path)
    known = ReportFile(path, "mine", SETTINGS).known(tasks)
    assert sorted(known) == ["double-0", "double-1"]  # what the sandbox failed on is done again
    assert (known["double-0"].killed, known["double-0"].survived) == (1, ("operator in main.py:1 #1",))
    assert known["double-1"].faults == [Fault("reference", "fails")]
    other = tasks[0].model_copy(update={"instruction": "Another."})
    assert sorted(ReportFile(path, "mine", SETTINGS).known([other, tasks[1]])) == ["double-1"]
    assert ReportFile(path, "mine", {**SETTINGS, "runs": 3}).known(tasks) == {}


def test_tasks_that_are_gone_go(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    tasks = filled(path)
    file = ReportFile(path, "mine", SETTINGS)
    file.known(tasks[1:])
    file.write()
    assert [entry["task"] for entry in json.loads(path.read_text())["tasks"]] == ["double-1"]


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"codeenv_report": 2}', '{"codeenv_report": 1, "dataset": "mine", "tasks": [{}]}', "\xff"]
)
def test_another_file_is_left_alone(tmp_path: Path, text: str) -> None:
    path = tmp_path / "report.json"
    path.write_text(text, encoding="latin-1")
    with pytest.raises(ValueError, match="not a report as `codeenv validate` writes it"):
        ReportFile(path, "mine", SETTINGS)
    assert path.read_text(encoding="latin-1") == text


def test_the_report_of_another_dataset_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    filled(path)
    with pytest.raises(ValueError, match="is the report of 'mine', not of 'yours'"):
        ReportFile(path, "yours", SETTINGS)


def test_the_command_goes_on_where_it_stopped(tmp_path: Path) -> None:
    data, path = tmp_path / "tasks.jsonl", tmp_path / "report.json"
    data.write_text("\n".join(map(dump_task, [double_task(0), double_task(1, wrong={})])))
    command = [sys.executable, "-m", "codeenv", "validate", str(data), "--runs", "1", "--report", str(path)]
    done = subprocess.run([*command, "--mutants", "1"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    plain = json.loads(path.read_text())
    assert [(entry["sound"], entry["mutants"]) for entry in plain["tasks"]] == [(True, 1), (True, 1)]
    plain["tasks"][0]["seconds"] = 1234.5  # as nobody measures it
    plain["tasks"].pop()
    path.write_text(json.dumps(plain))
    done = subprocess.run([*command, "--mutants", "1", "--json"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    shown = json.loads(done.stdout)
    assert [entry["seconds"] == 1234.5 for entry in shown["reports"]] == [True, False]
    assert (shown["tasks"], shown["mutants"]) == (2, 2)
    assert json.loads(path.read_text())["tasks"] == shown["reports"]
    done = subprocess.run([*command, "--record"], capture_output=True, text=True)
    assert done.returncode == 2
    assert "--record: not with --report" in done.stderr
