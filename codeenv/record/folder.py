"""A run's recordings: one folder, a file an episode, and an index that makes it quick to list.

The index has a line for each episode that has ended, which is written after the episode's own last line. It is a
convenience: what it lacks is read from the files, and without it nothing is lost.
"""

from __future__ import annotations

import json
import os
import re
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from codeenv.record.reading import RecordingError, glance
from codeenv.record.schema import Summary

INDEX = "index.jsonl"
ENDING = ".jsonl"
NAME_LENGTH = 80


class Recordings:
    """Where the recordings of a run go. Several processes may write into one folder.

    :param source: what the tasks were opened with (`codeenv.sources.open_tasks`), which recordings name so that
        `codeenv replay` finds the task. :param policy: the model or policy, where it is the same for all.
    :raises OSError: the folder cannot be made or written to. :raises NotADirectoryError: it is a file.
    """

    def __init__(self, folder: str | Path, *, source: Any = None, policy: str = "") -> None:
        self.folder = Path(folder).expanduser()
        self.source = source
        self.policy = policy
        self.slow = False
        """Whether a write was seen to take long: from then on, none is made on an event loop."""
        if self.folder.exists() and not self.folder.is_dir():
            raise NotADirectoryError(f"record: {self.folder} is a file, and recordings go into a folder")
        self.folder.mkdir(parents=True, exist_ok=True)
        if not os.access(self.folder, os.W_OK | os.X_OK):
            raise PermissionError(f"record: {self.folder} cannot be written to")

    def new(self, task: str) -> tuple[str, Path]:
        """An id, and the file of an episode on the task of that name."""
        name = secrets.token_hex(6)
        plain = re.sub(r"[^A-Za-z0-9._-]+", ".", task)[:NAME_LENGTH].strip(".")
        return name, self.folder / f"{plain}-{name}{ENDING}"

    def note(self, summary: Summary) -> None:
        """An episode has ended. :raises OSError: the index cannot be written."""
        append(self.folder / INDEX, summary.model_dump(exclude_defaults=True) | {"file": summary.file})


def append(path: Path, line: Mapping[str, Any], *, new: bool = False) -> None:
    """Add a line at once: a kill leaves it whole or not at all, as far as the file system does."""
    data = json.dumps(line, default=str).encode() + b"\n"
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | (os.O_EXCL if new else 0), 0o666)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(file, view) :]
    finally:
        os.close(file)


def summaries(folder: str | Path) -> list[Summary]:
    """Every episode of a folder in order of name, those that have not ended too.

    Files that are no recordings are left out; `Listing.unreadable` names them.

    :raises FileNotFoundError: there is no such folder.
    """
    return Listing(folder).read()


class Listing:
    """A folder that is read again and again, as while a run goes on: what has ended is read once."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder).expanduser()
        self.unreadable: dict[str, str] = {}
        """Files that are no recordings, and why."""
        self._ended: dict[str, Summary] = {}
        self._at = 0

    def read(self) -> list[Summary]:
        """:raises FileNotFoundError: there is no such folder."""
        with os.scandir(self.folder) as found:
            names = {entry.name for entry in found if entry.name.endswith(ENDING) and entry.name != INDEX}
        self._read_index()
        rows: list[Summary] = []
        for name in sorted(names):
            row = self._ended.get(name) or self._read_file(name)
            if row is not None:
                rows.append(row)
        return rows

    def _read_index(self) -> None:
        try:
            with (self.folder / INDEX).open("rb") as file:
                file.seek(self._at)
                for raw in file:
                    if not raw.endswith(b"\n"):
                        break  # another process is at it
                    self._at += len(raw)
                    try:
                        row = Summary.model_validate_json(raw)
                    except ValidationError:
                        continue  # a newer one's, or damaged: the file itself says what it is
                    self._ended[row.file] = row
        except FileNotFoundError:
            pass

    def _read_file(self, name: str) -> Summary | None:
        try:
            row = glance(self.folder / name)
        except RecordingError as error:
            self.unreadable[name] = str(error)
            return None
        except FileNotFoundError:  # removed meanwhile
            return None
        if row.ended:
            self._ended[name] = row
        return row
