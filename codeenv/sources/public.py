"""A public set's rows, read and made into tasks. A bad row is named and left out; the rest load."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from codeenv.sources.directory import describe
from codeenv.sources.rows import PublicSet, Row, RowFault
from codeenv.sources.sets import public_sets
from codeenv.task import Task


@dataclass(frozen=True)
class BadRow:
    """A row that is no task: its place, from 0, what the set calls it if it says, and why."""

    place: int
    name: str
    reason: str


def public_set(dataset: str) -> tuple[PublicSet, str] | None:
    """The set that `NAME` or `NAME:FILE` names, and the file; None when there is none of that name."""
    name, _, file = dataset.partition(":")
    found = public_sets().get(name)
    return (found, file) if found else None


def load_public(chosen: PublicSet, file: str = "") -> tuple[list[Task], list[BadRow]]:
    tasks: list[Task] = []
    bad: list[BadRow] = []
    for place, row in enumerate(_rows(chosen, file)):
        try:
            tasks.append(chosen.to_task(row))
        except ValidationError as error:
            bad.append(BadRow(place, _name(row), "; ".join(describe(error, "task"))))
        except RowFault as error:
            bad.append(BadRow(place, _name(row), str(error)))
    return tasks, bad


def _name(row: Row) -> str:
    return str(next((row[key] for key in ("task_id", "id", "question_id", "name") if row.get(key)), ""))


def _rows(chosen: PublicSet, file: str) -> Iterable[Row]:
    if file:
        return (chosen.read or _lines)(Path(file).expanduser())
    rows = chosen.package() if chosen.package else None
    if rows is None:
        raise FileNotFoundError(f"{chosen.name}: no package and no file brings it")
    return rows


def _lines(path: Path) -> Iterator[Row]:
    with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as lines:
        for line in lines:
            if line.strip():
                yield json.loads(line)
