"""Tasks from a JSONL file: one JSON object a line, the fields of `Task`; files as text, or `{"base64": ...}` for
bytes."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from typing import Any, cast

from codeenv.sources.expected import without_expected
from codeenv.sources.rows import RowFault
from codeenv.task import Task

FILE_FIELDS = ("files", "tests", "solution")


def task_of(row: Mapping[str, Any], *, recorded: bool = True) -> Task:
    """`recorded`: with the ids of tests that were recorded.

    :raises RowFault: the row's files are malformed. :raises ValidationError: so is another field.
    """
    decoded = _decoded(row)
    return Task.model_validate(decoded if recorded else without_expected(decoded))


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


def _decoded(row: Mapping[str, Any]) -> dict[str, Any]:
    found = dict(row)
    for field in FILE_FIELDS:
        if found.get(field) is not None:
            found[field] = files_of(found[field], field)
    if found.get("wrong") is not None:
        wrong = _mapping(found["wrong"], "wrong")
        found["wrong"] = {name: files_of(files, f"wrong.{name}") for name, files in wrong.items()}
    return found


def _mapping(value: object, field: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise RowFault(f"{field}: must be an object of path -> content")
    return cast(dict[str, Any], value)


def files_of(value: object, field: str) -> dict[str, bytes]:
    """:raises RowFault: not an object of path -> text or `{"base64": ...}`."""
    files: dict[str, bytes] = {}
    for path, content in _mapping(value, field).items():
        match content:
            case str():
                files[path] = content.encode("utf-8", "surrogatepass")
            case {"base64": str(text)}:
                try:
                    files[path] = base64.b64decode(text, validate=True)
                except binascii.Error as error:
                    raise RowFault(f"{field}.{path}: not base64: {error}") from error
            case _:
                raise RowFault(f'{field}.{path}: must be text or {{"base64": "..."}}')
    return files
