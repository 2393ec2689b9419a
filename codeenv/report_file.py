"""What `codeenv validate --report FILE` writes: what was found of each task, from which it goes on when it is called
again, and which a training run takes as its list of allowed tasks."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, cast

from pydantic import TypeAdapter, ValidationError

from codeenv.sources.expected import write_whole
from codeenv.task import Task
from codeenv.validate import TaskReport

VERSION = 1
EVERY = 1.0  # seconds between writes at least; a write takes the file as a whole
_reports = TypeAdapter(TaskReport)


class ReportFile:
    """One dataset's. Written whole or not at all, at most once a second, and at the end (`write`)."""

    def __init__(self, path: Path, dataset: str, settings: Mapping[str, Any]) -> None:
        """:param settings: what else the findings depend on: with others, nothing of what is there counts.

        :raises ValueError: the file holds something else.
        """
        self.path = path
        self._head = {"codeenv_report": VERSION, "dataset": dataset, "settings": dict(settings)}
        self._found: dict[str, dict[str, Any]] = {}
        self._written = 0.0
        if path.exists():
            plain = _read(path)
            if plain.get("dataset") != dataset:
                raise ValueError(f"{path}: is the report of {plain.get('dataset')!r}, not of {dataset!r}")
            if all(plain.get(key) == value for key, value in self._head.items()):
                self._found = {entry["task"]: entry for entry in plain["tasks"]}

    def known(self, tasks: Sequence[Task]) -> dict[str, TaskReport]:
        """What is there already of these tasks: of each that is the same, and was checked in full."""
        found: dict[str, TaskReport] = {}
        for task in tasks:
            entry = self._found.get(task.id)
            if entry is not None and entry["digest"] == task.digest and not entry["errors"]:
                found[task.id] = _reports.validate_python({k: v for k, v in entry.items() if k != "sound"})
        self._found = {name: self._found[name] for name in found}
        return found

    def add(self, report: TaskReport) -> None:
        """:raises OSError: the file cannot be written."""
        self._found[report.task] = entry_of(report)
        if time.monotonic() - self._written >= EVERY:
            self.write()

    def write(self) -> None:
        """:raises OSError: the file cannot be written."""
        entries = [self._found[name] for name in sorted(self._found)]
        rows = ",\n".join(json.dumps(entry, ensure_ascii=False) for entry in entries)
        head = json.dumps(self._head, ensure_ascii=False)
        write_whole(self.path, f'{head[:-1]}, "tasks": [\n{rows}\n]}}\n')
        self._written = time.monotonic()


def entry_of(report: TaskReport) -> dict[str, Any]:
    """A task's as plain data, without the names of its hidden tests."""
    plain = {key: value for key, value in asdict(report).items() if key != "ids"}
    return {"task": plain.pop("task"), "digest": plain.pop("digest"), "sound": report.sound, **plain}


def _read(path: Path) -> dict[str, Any]:
    try:
        plain = json.loads(path.read_text(encoding="utf-8"))
        if plain["codeenv_report"] != VERSION:
            raise ValueError(f"version {plain['codeenv_report']}, not {VERSION}")
        for entry in plain["tasks"]:
            _reports.validate_python({k: v for k, v in entry.items() if k != "sound"})
        return cast("dict[str, Any]", plain)
    except (ValueError, KeyError, TypeError, AttributeError, ValidationError) as error:
        raise ValueError(f"{path}: not a report as `codeenv validate` writes it ({type(error).__name__})") from error
