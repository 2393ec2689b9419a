"""What tasks are chosen from: places, each of which has a task, or a reason why it has none."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import shutil
import tempfile
import weakref
from array import array
from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any, Protocol, cast

from pydantic import ValidationError

from codeenv.sources.directory import describe
from codeenv.sources.rows import FIELD_LIMIT_MB, Row, RowFault
from codeenv.task import Task

MiB = 1024 * 1024
NAMES = ("task_id", "id", "question_id", "problem_id", "name")
"""Columns by which sets name their rows."""
DIGEST = 16  # bytes


class BadPlace(Exception):
    """There is no task at this place. `reasons`: one a fault, none quoting hidden content; `name`: what the source
    calls the row, if it says."""

    def __init__(self, reasons: Sequence[str], name: str = "") -> None:
        super().__init__("; ".join(reasons))
        self.reasons, self.name = tuple(reasons), name


class Pool(Protocol):
    """Tasks by place, from 0."""

    @property
    def name(self) -> str:
        """What a user calls it."""
        ...

    @property
    def strict(self) -> bool:
        """Whether one bad place is an error: where the tasks are a user's own."""
        ...

    def __len__(self) -> int: ...

    def make(self, place: int) -> tuple[Task, bytes]:
        """The task, and a digest that is another when what it was made from is another. :raises BadPlace: none."""
        ...

    def where(self, place: int) -> str:
        """The place, for people."""
        ...


class Rows(Protocol):
    """Rows by place, and each one's digest."""

    def __len__(self) -> int: ...

    def read(self, place: int) -> tuple[Row, bytes]:
        """:raises RowFault: what is there is no row."""
        ...

    def where(self, place: int) -> str: ...


class ListPool:
    """Tasks that are in memory."""

    def __init__(self, name: str, tasks: Sequence[Task]) -> None:
        self.name, self.tasks = name, tasks
        self.strict = True

    def __len__(self) -> int:
        return len(self.tasks)

    def make(self, place: int) -> tuple[Task, bytes]:
        task = self.tasks[place]
        return task, bytes.fromhex(task.digest)

    def where(self, place: int) -> str:
        return self.name


class RowPool:
    """Tasks that are made of rows when they are asked for.

    :param limit: MiB of one column. :param by_content: whether the digest is of the task, for rows that name files.
    """

    def __init__(
        self,
        name: str,
        rows: Rows,
        to_task: Callable[[Row], Task],
        *,
        strict: bool = False,
        limit: float = FIELD_LIMIT_MB,
        by_content: bool = False,
    ) -> None:
        self.name, self.rows, self.strict = name, rows, strict
        self._to_task, self._limit, self._by_content = to_task, limit, by_content

    def __len__(self) -> int:
        return len(self.rows)

    def make(self, place: int) -> tuple[Task, bytes]:
        try:
            row, digest = self.rows.read(place)
        except RowFault as error:
            raise BadPlace([str(error)]) from error
        try:
            self._check_sizes(row)
            task = self._to_task(row)
            return task, bytes.fromhex(task.digest) if self._by_content else digest
        except ValidationError as error:
            raise BadPlace(describe(error), _name(row)) from error
        except RowFault as error:
            raise BadPlace([str(error)], _name(row)) from error

    def _check_sizes(self, row: Row) -> None:
        ceiling = self._limit * MiB
        for column, value in row.items():
            size = _size(value)
            if size > ceiling:
                raise RowFault(f"{column}: {size / MiB:.0f} MiB, more than the limit of {self._limit:g}")

    def where(self, place: int) -> str:
        return self.rows.where(place)


def _name(row: Row) -> str:
    return str(next((row[key] for key in NAMES if isinstance(row.get(key), str | int)), ""))[:200]


def _size(value: object) -> int:
    """Characters or bytes of all text in it: near enough."""
    if isinstance(value, str | bytes):
        return len(value)
    if isinstance(value, dict):
        return sum(map(_size, cast(dict[Any, Any], value).values()))
    if isinstance(value, list | tuple):
        return sum(map(_size, cast(Sequence[Any], value)))
    return 8


class ListRows:
    """Rows that are in memory, or behind a sequence, as an Arrow table's are."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self._rows = rows

    def __len__(self) -> int:
        return len(self._rows)

    def read(self, place: int) -> tuple[Row, bytes]:
        row = self._rows[place]
        plain = json.dumps(row, sort_keys=True, default=str).encode("utf-8", "surrogatepass")
        return row, hashlib.blake2b(plain, digest_size=DIGEST).digest()

    def where(self, place: int) -> str:
        return f"row {place}"


class JsonlRows:
    """The lines of a JSONL file (`.gz`: unpacked once into a file without a name, in the directory for temporary
    files), each read when it is asked for. In memory are 8 bytes a line. Empty lines are no rows.

    :raises FileNotFoundError: there is no such file. :raises ValueError: it is not gzip.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        if path.suffix == ".gz":
            self._file = _unpacked(path)
        else:
            self._file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        weakref.finalize(self, os.close, self._file)
        self._starts, self._numbers, self._size = self._index()

    def _index(self) -> tuple[array[int], array[int], int]:
        starts, numbers, at = array("q"), array("q"), 0
        with open(os.dup(self._file), "rb") as lines:
            lines.seek(0)
            for number, line in enumerate(lines, 1):
                if line.strip():
                    starts.append(at)
                    numbers.append(number)
                at += len(line)
        return starts, numbers, at

    def __len__(self) -> int:
        return len(self._starts)

    def read(self, place: int) -> tuple[Row, bytes]:
        start = self._starts[place]
        end = self._starts[place + 1] if place + 1 < len(self._starts) else self._size
        line = os.pread(self._file, end - start, start).rstrip()
        digest = hashlib.blake2b(line, digest_size=DIGEST).digest()
        try:
            row = json.loads(line.decode("utf-8-sig" if not place else "utf-8"))
        except (ValueError, RecursionError) as error:
            raise RowFault(str(error)) from error
        if not isinstance(row, dict):
            raise RowFault("a line must be one JSON object")
        return cast(Row, row), digest

    def where(self, place: int) -> str:
        return f"{self.path}:{self._numbers[place]}"


class JoinedRows:
    """Rows of several sources, one after the other."""

    def __init__(self, parts: Sequence[Rows]) -> None:
        self._parts = parts
        self._ends = list(accumulate(map(len, parts)))

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    def _at(self, place: int) -> tuple[Rows, int]:
        number = bisect_right(self._ends, place)
        return self._parts[number], place - (self._ends[number - 1] if number else 0)

    def read(self, place: int) -> tuple[Row, bytes]:
        part, own = self._at(place)
        return part.read(own)

    def where(self, place: int) -> str:
        part, own = self._at(place)
        return part.where(own)


def _unpacked(path: Path) -> int:
    with gzip.open(path) as packed, tempfile.TemporaryFile() as plain:
        try:
            shutil.copyfileobj(packed, plain, MiB)
        except (OSError, EOFError) as error:
            raise ValueError(f"{path}: cannot be unpacked: {error}") from error
        plain.flush()
        return os.dup(plain.fileno())
