"""Tasks from a JSONL file: one JSON object a line, the fields of `Task`; files as text, or `{"base64": ...}` for
bytes."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from pydantic import ValidationError

from codeenv.sources.directory import describe
from codeenv.sources.expected import without_expected
from codeenv.task import Task, TaskError

FILE_FIELDS = ("files", "tests", "solution")


def load_jsonl(path: Path, *, recorded: bool = True) -> list[Task]:
    """Every task of the file, in its order; empty lines are passed over. `recorded`: with the ids of tests that were
    recorded. :raises TaskError: all faults at once."""
    tasks: list[Task] = []
    faults: list[str] = []
    with path.open("rb") as lines:  # as bytes: one line that is no UTF-8 is one fault
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            where = f"{path}:{number}"
            try:
                row = json.loads(line.decode("utf-8-sig" if number == 1 else "utf-8"))
                if not isinstance(row, dict):
                    raise ValueError("a line must be one JSON object")
                row = _decoded(cast(dict[str, Any], row))
                tasks.append(Task.model_validate(row if recorded else without_expected(row)))
            except ValidationError as error:
                faults += describe(error, where)
            except (ValueError, RecursionError) as error:
                faults.append(f"{where}: {error}")
    if faults:
        raise TaskError(faults)
    return tasks


def dump_task(task: Task) -> str:
    """The task as one line of such a file, hidden parts included."""
    plain = task.model_dump(mode="python")
    for field in FILE_FIELDS:
        if plain[field] is not None:
            plain[field] = {name: _encode(data) for name, data in plain[field].items()}
    plain["wrong"] = {name: {p: _encode(d) for p, d in files.items()} for name, files in plain["wrong"].items()}
    plain["executable"] = sorted(task.executable)
    return json.dumps(plain, ensure_ascii=False, default=str)


def _encode(data: bytes) -> str | dict[str, str]:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}


def _decoded(row: dict[str, Any]) -> dict[str, Any]:
    row = dict(row)
    for field in FILE_FIELDS:
        if row.get(field) is not None:
            row[field] = _files(row[field], field)
    if row.get("wrong") is not None:
        wrong = _mapping(row["wrong"], "wrong")
        row["wrong"] = {name: _files(files, f"wrong.{name}") for name, files in wrong.items()}
    return row


def _mapping(value: object, field: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"{field}: must be an object of path -> content")
    return cast(dict[str, Any], value)


def _files(value: object, field: str) -> dict[str, bytes]:
    files: dict[str, bytes] = {}
    for path, content in _mapping(value, field).items():
        match content:
            case str():
                files[path] = content.encode("utf-8", "surrogatepass")
            case {"base64": str(text)}:
                try:
                    files[path] = base64.b64decode(text, validate=True)
                except binascii.Error as error:
                    raise ValueError(f"{field}.{path}: not base64: {error}") from error
            case _:
                raise ValueError(f'{field}.{path}: must be text or {{"base64": "..."}}')
    return files
