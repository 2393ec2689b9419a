"""Public task sets as their authors publish them: rows of a schema, each of which becomes a task."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from codeenv.task import Task

Row = Mapping[str, Any]
FIELD_LIMIT_MB = 32.0
"""MiB of one column of a row, as it is stored: what is larger is a bad row."""


class RowFault(ValueError):
    """This row cannot become a task; the message says why, naming the column and quoting no hidden content."""


@dataclass(frozen=True)
class Hub:
    """Where rows are on the Hugging Face hub. `revision`: a commit, so that a task set stays what it was; empty: the
    one that is there at the first load, which is then remembered."""

    repo: str
    revision: str
    config: str | None = None
    files: tuple[str, ...] = ()
    """Data files to read, by pattern, where a repository's own loading script or layout cannot be used; `{split}` in
    one is the set's own name of the split. JSONL is read as it is; other formats through Arrow."""


@dataclass(frozen=True)
class PublicSet:
    """One public task set."""

    name: str
    """What a user writes: `dataset="humaneval"`."""
    title: str
    licence: str
    to_task: Callable[[Row], Task]
    """One row's task. :raises RowFault: the row is no good. (So is one for which pydantic refuses the task.)"""
    hub: Hub | None = None
    splits: Mapping[str, str] = field(default_factory=lambda: {"eval": "test"})
    """Our `train` and `eval` -> the set's own split."""
    package: Callable[[], Iterable[Row] | None] | None = None
    """Rows that an installed package brings, which needs no network; None when it is not installed."""
    field_limit_mb: float = FIELD_LIMIT_MB
    """MiB of one column; a row with a larger one is bad, unless the user says another limit."""
    read: Callable[[Path], Iterable[Row]] | None = None
    """The rows of what stands behind `NAME:`, where that is no JSONL file but a directory in the set's own form."""


def identifier(text: object) -> str:
    """A task id of what a set calls its row: what is no letter, digit, `.`, `_`, `-` or `/` becomes `-`."""
    parts = [re.sub(r"[^A-Za-z0-9._-]+", "-", part).strip("-._") for part in str(text).split("/")]
    return "/".join(part for part in parts if part)[:200]


def text_of(row: Row, column: str) -> str:
    """:raises RowFault: the column is missing, no text, or blank."""
    value = row.get(column)
    if not isinstance(value, str):
        raise RowFault(f"{column}: must be text, not {type(value).__name__}" if column in row else f"{column}: missing")
    if not value.strip():
        raise RowFault(f"{column}: is empty")
    return value
