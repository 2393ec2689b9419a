"""The tests that a task's reference was seen to pass, written down by `codeenv validate --record` and expected of every
solution: in `expected.json` of a task directory, in the grader of a JSONL row."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from codeenv.graders import KINDS, PytestGrader, digest_of
from codeenv.task import Task

NAME = "expected.json"
FIELDS = ("expected", "expected_of")
HAVE_IDS = [kind.model_fields["kind"].default for kind in KINDS if issubclass(kind, PytestGrader)]


def read_expected(folder: Path, settings: dict[str, Any]) -> list[str]:
    """Put what `expected.json` holds into the settings of the task's grader. Returns what is wrong with it."""
    file = folder / NAME
    if not file.exists():
        return []
    grader = settings.get("grader")
    if not isinstance(grader, dict) or cast(dict[str, Any], grader).get("kind") not in HAVE_IDS:
        return [f"{file}: only tasks with a grader of kind {' or '.join(HAVE_IDS)} have one; remove it"]
    if "expected" in grader:
        return [f"{file}: the grader in task.toml names expected tests too; one of the two has to go"]
    try:
        plain = json.loads(file.read_text(encoding="utf-8"))
        found = {field: plain[field] for field in FIELDS}
    except (ValueError, KeyError, TypeError) as error:
        return [f"{file}: not as `codeenv validate --record` writes it: {type(error).__name__}: {error}"]
    settings["grader"] = {**grader, **found}
    return []


def without_expected(row: dict[str, Any]) -> dict[str, Any]:
    """A JSONL row without what was recorded; what an author wrote stays."""
    grader = row.get("grader")
    if not isinstance(grader, dict) or not cast(dict[str, Any], grader).get("expected_of"):
        return row
    return {**row, "grader": {k: v for k, v in cast(dict[str, Any], grader).items() if k not in FIELDS}}


def record(path: Path, tasks: Sequence[Task], ids: Mapping[str, Sequence[str]]) -> list[str]:
    """Write down the ids of tests by task id, where the tasks of `path` (a directory or a JSONL file) were loaded from.

    Returns the tasks that they were written down for: those whose grader has ids and names none itself.
    :raises OSError: a file cannot be written.
    """
    found = {
        task.id: {"expected_of": digest_of(task.tests), "expected": list(ids[task.id])}
        for task in tasks
        if ids.get(task.id) and isinstance(task.grader, PytestGrader) and not task.grader.expected
    }
    if path.is_dir():
        for name, entry in found.items():
            folder = path if (path / "task.toml").is_file() else path / name
            write_whole(folder / NAME, json.dumps(entry, ensure_ascii=False, indent=1) + "\n")
    elif found:
        lines = path.read_text(encoding="utf-8-sig").split("\n")  # no other character ends a line of JSONL
        write_whole(path, "\n".join(_recorded(line, found) if line.strip() else line for line in lines))
    return sorted(found)


def _recorded(line: str, found: Mapping[str, Mapping[str, Any]]) -> str:
    row: dict[str, Any] = json.loads(line)
    if row.get("id") not in found:
        return line
    grader: dict[str, Any] = {"kind": "pytest", **(row.get("grader") or {}), **found[row["id"]]}
    return json.dumps({**row, "grader": grader}, ensure_ascii=False)


def write_whole(path: Path, text: str) -> None:
    """Whole or not at all."""
    with tempfile.NamedTemporaryFile(
        "w", encoding="utf-8", dir=path.parent, prefix=f".{path.name}.", delete=False
    ) as new:
        try:
            new.write(text)
            new.close()
            os.chmod(new.name, path.stat().st_mode & 0o777 if path.exists() else 0o644)
            os.replace(new.name, path)
        except BaseException:
            os.unlink(new.name)
            raise
