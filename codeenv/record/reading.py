"""A recording, read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from pydantic import ValidationError

from codeenv.record.schema import FORMAT, LINE, End, Left, Line, Opening, Start, Summary, Turn

SHOWN = 200  # characters of what is wrong with a line


class RecordingError(ValueError):
    """A file is no recording, or not whole; the message names the file and the line, and what is wrong with it."""


@dataclass(frozen=True)
class Recording:
    """One episode. What has not happened is None: `start` where no box came to be, `end` where it was killed, or still
    runs."""

    path: Path
    opening: Opening
    start: Start | None = None
    turns: list[Turn] = field(default_factory=list[Turn])
    left: Left | None = None
    end: End | None = None
    cut: str = ""
    """What is wrong with the last line, where a kill has cut it off."""

    @classmethod
    def load(cls, path: str | Path, *, partial: bool = False) -> Recording:
        """:param partial: whether a last line that was cut off is left out, and named in `cut`.

        :raises RecordingError: the file is not a recording, is newer than we are, or is cut off; names the line.
        :raises FileNotFoundError: there is no such file.
        """
        path = Path(path)
        cut = ""
        found: list[Line] = []
        try:
            for line in _lines(path):
                found.append(line)
        except _CutOff as error:
            if not (partial and found):
                raise RecordingError(str(error)) from error
            cut = str(error)
        if not found:
            raise RecordingError(f"{path}, line 1: the file is empty; a recording begins with a line of kind 'episode'")
        return cls._of(path, found, cut)

    @classmethod
    def _of(cls, path: Path, lines: list[Line], cut: str) -> Recording:
        parts: dict[str, Any] = {}
        turns: list[Turn] = []
        for number, line in enumerate(lines, 1):
            if isinstance(line, Opening) != (number == 1):
                where = "begins with" if number == 1 else "has only one"
                raise RecordingError(f"{path}, line {number}: a recording {where} line of kind 'episode'")
            if "end" in parts or (line.kind != "turn" and line.kind in parts):
                raise RecordingError(f"{path}, line {number}: is a second episode's; a file has one ({line.kind})")

            if isinstance(line, Turn):
                if line.turn != len(turns) + 1:
                    raise RecordingError(f"{path}, line {number}: is turn {line.turn}, not {len(turns) + 1}")
                turns.append(line)
            else:
                parts[line.kind] = line
        return cls(path, parts["episode"], parts.get("start"), turns, parts.get("workspace"), parts.get("end"), cut)

    @property
    def summary(self) -> Summary:
        opening, end = self.opening, self.end
        verdict = end.verdict if end else None
        tally = end.tally if end else {}
        said = [turn.said for turn in self.turns]
        started = self.start.seconds if self.start else 0.0
        fault = end.error if end else None
        return Summary(
            file=self.path.name,
            id=opening.id,
            task=opening.task.id,
            policy=opening.policy,
            sandbox=opening.sandbox,
            started=opening.started,
            outcome=end.outcome if end else None,
            over=end.over if end else "",
            reward=verdict.reward if verdict else None,
            tests_passed=verdict.passed if verdict else None,
            tests_total=len(verdict.tests) if verdict else None,
            turns=len(self.turns),
            seconds=end.seconds if end else (self.turns[-1].at + self.turns[-1].seconds if self.turns else started),
            model_seconds=round(sum(turn.waited for turn in self.turns), 4),
            sandbox_seconds=round(started + sum(turn.seconds for turn in self.turns), 4),
            grading_seconds=tally.get("grade_seconds", 0.0),
            prompt_tokens=sum(one.prompt_tokens or 0 for one in said),
            completion_tokens=sum(one.completion_tokens or 0 for one in said),
            error=(f"{fault.stage}: " if fault and fault.stage else "") + fault.message if fault else "",
            ended=end is not None,
        )


class _CutOff(Exception):
    pass


def _lines(path: Path) -> Iterator[Line]:
    version = FORMAT
    with path.open("rb") as file:
        for number, raw in enumerate(file, 1):
            where = f"{path}, line {number}"
            whole = raw.endswith(b"\n")
            try:
                plain = json.loads(raw)
            except (ValueError, RecursionError) as error:
                if not whole:
                    raise _CutOff(f"{where}: cut off after {len(raw)} bytes") from error
                raise RecordingError(f"{where}: is no JSON ({str(error)[:SHOWN]})") from error
            plain = cast("dict[str, Any]", plain) if isinstance(plain, dict) else {}
            if "kind" not in plain:
                raise RecordingError(f"{where}: is no line of a recording, which is a JSON object with a 'kind'")
            if number == 1:
                version = _version(plain, where)
            try:
                yield LINE.validate_python(_upgraded(plain, version))
            except ValidationError as error:
                fault = error.errors(include_url=False, include_input=False)[0]
                place = ".".join(map(str, fault["loc"]))
                raise RecordingError(f"{where}: {place + ': ' if place else ''}{fault['msg'][:SHOWN]}") from error


def _version(plain: dict[str, Any], where: str) -> int:
    version = plain.get("format")
    if plain["kind"] != "episode" or not isinstance(version, int):
        raise RecordingError(f"{where}: a recording begins with a line of kind 'episode' that has a 'format'")
    if not 1 <= version <= FORMAT:
        raise RecordingError(
            f"{where}: has format {version}, and this codeenv reads 1 to {FORMAT}: it was written by a newer one"
        )
    return version


def _upgraded(plain: dict[str, Any], version: int) -> dict[str, Any]:
    """A line of an older format as one of ours. There is one so far."""
    return plain
