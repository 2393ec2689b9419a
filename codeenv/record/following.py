"""A folder of recordings while its episodes run: what each is at, read as the files grow."""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO, Literal, cast

from codeenv.record.folder import ENDING, INDEX
from codeenv.record.reading import RecordingError, glance
from codeenv.record.schema import Summary

Stage = Literal["box", "turn", "end", "grading"]
"""Its box is being made; turn `turn` is under way; it takes no more turns; what it left is being judged."""


@dataclass
class Running:
    """An episode that has not ended. `began` is on the clock of `time.monotonic()`."""

    file: str
    task: str
    policy: str
    labels: dict[str, Any]
    began: float
    boxless: bool
    """Whether the policy has no box (the protocol `answer`)."""
    stage: Stage = "box"
    turn: int = 0

    @property
    def boxes(self) -> int:
        """How many it has now, as far as its recording tells: one, but while one that has none is only answered."""
        return int(self.stage == "grading" or not self.boxless)


@dataclass(frozen=True)
class Ended:
    summary: Summary
    labels: dict[str, Any]
    stage: str = ""
    """Where it failed, for outcome `infra`."""
    fault: str = ""
    """The error's type, and what it said."""
    message: str = ""


@dataclass
class Following:
    """The episodes that begin after this was made; call `read` again and again. What was read is not read again.

    :param policy: of this policy alone, where others' may be in the same folder. Files that are no recordings, or not
        yet, are passed over.
    """

    folder: Path
    policy: str | None = None
    running: dict[str, Running] = field(default_factory=dict[str, Running])
    """By the name of the file."""
    ended: list[Ended] = field(default_factory=list[Ended])
    """In order of their ends."""

    def __post_init__(self) -> None:
        self._passed = self._names()
        self._at: dict[str, int] = {}

    def read(self) -> list[Ended]:
        """Those that have ended since the last time."""
        before = len(self.ended)
        for name in sorted((self._names() | self.running.keys()) - self._passed):
            try:
                with (self.folder / name).open("rb") as file:
                    self._read_on(name, file)
            except FileNotFoundError:  # removed meanwhile
                self._done(name)
            except OSError:
                continue  # perhaps the next time
        return self.ended[before:]

    def _names(self) -> set[str]:
        try:
            with os.scandir(self.folder) as found:
                return {entry.name for entry in found if entry.name.endswith(ENDING) and entry.name != INDEX}
        except FileNotFoundError:  # nobody has recorded anything yet
            return set()

    def _read_on(self, name: str, file: BinaryIO) -> None:
        file.seek(self._at.get(name, 0))
        for raw in file:
            if not raw.endswith(b"\n"):
                return  # its writer is at it
            self._at[name] = self._at.get(name, 0) + len(raw)
            if raw.startswith(b'{"kind": "workspace"'):  # the largest, of which nothing is told
                line: Any = {"kind": "workspace"}
            else:
                try:
                    line = json.loads(raw)
                except (ValueError, RecursionError):
                    line = None
            if not isinstance(line, dict) or not self._take(name, cast("dict[str, Any]", line)):
                self._done(name)
                return

    def _take(self, name: str, line: dict[str, Any]) -> bool:
        """Whether the file is still to be followed."""
        kind, one = line.get("kind"), self.running.get(name)
        if one is None:
            one = _opened(name, line) if kind == "episode" else None
            if one is None or (self.policy is not None and one.policy != self.policy):
                return False
            self.running[name] = one
        elif kind == "start":
            one.stage, one.turn = "turn", 1
        elif kind == "turn":
            if line.get("over") or line.get("error"):
                one.stage = "end"
            else:
                one.turn += 1
        elif kind == "workspace":
            one.stage = "grading"
        elif kind == "end":
            self._end(one, line)
            return False
        return True

    def _end(self, one: Running, line: dict[str, Any]) -> None:
        try:
            summary = glance(self.folder / one.file)
        except (RecordingError, FileNotFoundError):
            return
        fault: dict[str, Any] = line.get("error") or {}
        told = [str(fault.get(name) or "") for name in ("stage", "type", "message")]
        self.ended.append(Ended(summary, one.labels, *told))

    def _done(self, name: str) -> None:
        self.running.pop(name, None)
        self._at.pop(name, None)
        self._passed.add(name)


def _opened(name: str, line: dict[str, Any]) -> Running | None:
    try:
        age = max(0.0, (datetime.now(UTC) - datetime.fromisoformat(line["started"])).total_seconds())
        return Running(
            file=name,
            task=str(line["task"]["id"]),
            policy=str(line.get("policy") or ""),
            labels=dict(line.get("labels") or {}),
            began=time.monotonic() - age,
            boxless=line["settings"].get("protocol") == "answer",
        )
    except (KeyError, TypeError, ValueError, AttributeError):
        return None
