"""A recording, read."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, cast

from pydantic import ValidationError

from codeenv.record.schema import FORMAT, LINE, End, Left, Line, Opening, Start, Summary, Turn
from codeenv.record.timeline import timeline

SHOWN = 200  # characters of what is wrong with a line
LAST = 16 * 1024  # bytes in which the last line is looked for first


class RecordingError(ValueError):
    """A file is no recording, or not whole; the message names the file and the line, and what is wrong with it."""


@dataclass(frozen=True, repr=False)
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
        if self.end is not None and self.end.model_seconds is not None:
            return summary_of_ended(self.path.name, self.opening, self.end)
        last = self.turns[-1] if self.turns else None
        started = self.start.seconds if self.start else 0.0
        tested = sum(one.seconds for turn in self.turns for one in turn.results if one.tool == "run_tests")
        ran = sum(turn.seconds for turn in self.turns) - tested
        sums: dict[str, Any] = {
            "turns": len(self.turns),
            "seconds": last.at + last.seconds if last else started,
            "sandbox_seconds": round(started + max(ran, 0.0), 4),
            "grading_seconds": _counted(self.end, "grade_seconds") or round(tested, 4),
            **sums_of(self.turns),
        }
        return _summary(self.path.name, self.opening, self.end, sums)

    def __repr__(self) -> str:
        return timeline(self)

    def _repr_html_(self) -> str:
        from codeenv.html import styled

        return styled("recording", recording=self)


def sums_of(turns: Sequence[Turn]) -> dict[str, Any]:
    """What `End` holds of them."""
    return {
        "model_seconds": round(sum(turn.waited for turn in turns), 4),
        "prompt_tokens": sum(turn.said.prompt_tokens or 0 for turn in turns),
        "completion_tokens": sum(turn.said.completion_tokens or 0 for turn in turns),
    }


def glance(path: Path) -> Summary:
    """What `Recording.load(path, partial=True).summary` says, and for one that has ended by its first and last line
    alone: what is wrong with those between is then not seen.

    :raises RecordingError: see `Recording.load`. :raises FileNotFoundError: there is no such file.
    """
    with path.open("rb") as file:
        first, last = file.readline(), _last_line(file)
    try:
        opening, end = LINE.validate_json(first), LINE.validate_json(last)
        if (
            isinstance(opening, Opening)
            and opening.format == FORMAT
            and isinstance(end, End)
            and end.model_seconds is not None
        ):
            return summary_of_ended(path.name, opening, end)
    except ValidationError:
        pass  # it is told properly below
    return Recording.load(path, partial=True).summary


def _last_line(file: BinaryIO) -> bytes:
    """Empty where it is not whole."""
    size, block = file.seek(0, os.SEEK_END), LAST
    while True:
        start = max(0, size - block)
        file.seek(start)
        data = file.read(size - start)
        if not data.endswith(b"\n"):
            return b""
        if (at := data.rfind(b"\n", 0, -1)) >= 0 or start == 0:
            return data[at + 1 :]
        block *= 8


def summary_of_ended(name: str, opening: Opening, end: End) -> Summary:
    sums = {
        "turns": int(_counted(end, "turns")),
        "sandbox_seconds": round(_counted(end, "create_seconds") + _counted(end, "exec_seconds"), 4),
        "model_seconds": end.model_seconds,
        "prompt_tokens": end.prompt_tokens,
        "completion_tokens": end.completion_tokens,
    }
    return _summary(name, opening, end, sums)


def _counted(end: End | None, name: str) -> float:
    value = end.tally.get(name) if end else None
    return value if isinstance(value, int | float) else 0.0


def _summary(name: str, opening: Opening, end: End | None, sums: Mapping[str, Any]) -> Summary:
    verdict, fault = (end.verdict, end.error) if end else (None, None)
    ended: dict[str, Any] = {} if end is None else {"seconds": end.seconds, "outcome": end.outcome, "over": end.over}
    if verdict:
        ended |= {"reward": verdict.reward, "tests_passed": verdict.passed, "tests_total": len(verdict.tests)}
    if fault:
        ended["error"] = (f"{fault.stage}: " if fault.stage else "") + fault.message
    return Summary(
        file=name,
        id=opening.id,
        task=opening.task.id,
        policy=opening.policy,
        sandbox=opening.sandbox,
        started=opening.started,
        ended=end is not None,
        **cast("dict[str, Any]", {"grading_seconds": _counted(end, "grade_seconds"), **sums, **ended}),
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
