"""Recordings that are whole, cut off, foreign or newer."""

# ruff: noqa: E501 - tables: one case a line
from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from codeenv.record import Recording, RecordingError
from codeenv.record.schema import FORMAT
from tests.record.recorded import END, OPENING, START, turn, written

WHOLE = [OPENING, START, turn(1), turn(2), END]


def test_a_whole_one(tmp_path: Path) -> None:
    found = Recording.load(written(tmp_path / "r.jsonl", *WHOLE))
    assert (found.opening.id, found.start and found.start.seconds, len(found.turns), found.cut) == ("abc", 0.5, 2, "")
    summary = found.summary
    assert (summary.turns, summary.seconds, summary.model_seconds, summary.sandbox_seconds) == (2, 9.0, 0.5, 1.5)
    assert summary.ended


def test_tests_that_the_policy_ran_are_grading_time(tmp_path: Path) -> None:
    ran = {"name": "run_tests", "tool": "run_tests", "text": "", "seconds": 2.0}
    lines = [OPENING, START, turn(1, seconds=2.5, results=[ran]), {**END, "tally": {"grade_seconds": 5.0}}]
    summary = Recording.load(written(tmp_path / "r.jsonl", *lines)).summary
    assert (summary.sandbox_seconds, summary.grading_seconds) == (1.0, 5.0)
    unended = Recording.load(written(tmp_path / "u.jsonl", *lines[:-1])).summary
    assert (unended.sandbox_seconds, unended.grading_seconds) == (1.0, 2.0)


FAULTS: dict[str, tuple[list[Any], str]] = {
    "empty": ([], "line 1: the file is empty; a recording begins with a line of kind 'episode'"),
    "no-json": ([OPENING, "so it goes"], "line 2: is no JSON ("),
    "a-list": ([OPENING, START, [1]], "line 3: is no line of a recording, which is a JSON object with a 'kind'"),
    "foreign": (['{"prompt": [], "reward": 1.0}'], "line 1: is no line of a recording"),
    "index": (['{"file": "x", "id": "y", "task": "z"}'], "line 1: is no line of a recording"),
    "no-opening": ([START], "line 1: a recording begins with a line of kind 'episode' that has a 'format'"),
    "no-format": ([{**OPENING, "format": None}], "line 1: a recording begins with"),
    "newer": ([{**OPENING, "format": FORMAT + 1}], f"line 1: has format {FORMAT + 1}, and this codeenv reads 1 to {FORMAT}: it was written by a newer one"),
    "unknown-kind": ([OPENING, {"kind": "song"}], "line 2: Input tag 'song'"),
    "unknown-field": ([OPENING, {**START, "colour": "red"}], "line 2: start.colour: Extra inputs are not permitted"),
    "missing-field": ([OPENING, {"kind": "start", "seconds": 1}], "line 2: start.workdir: Field required"),
    "wrong-type": ([OPENING, START, turn(1, at="noon")], "line 3: turn.at: Input should be a valid number"),
    "two-openings": ([OPENING, OPENING], "line 2: a recording has only one line of kind 'episode'"),
    "two-starts": ([OPENING, START, START], "line 3: is a second episode's; a file has one (start)"),
    "after-the-end": ([*WHOLE, turn(3)], "line 6: is a second episode's; a file has one (turn)"),
    "turn-missing": ([OPENING, START, turn(1), turn(3)], "line 4: is turn 3, not 2"),
}  # fmt: skip


@pytest.mark.parametrize(("lines", "message"), FAULTS.values(), ids=FAULTS)
@pytest.mark.parametrize("partial", [False, True])
def test_a_fault_names_the_line(tmp_path: Path, lines: list[Any], message: str, partial: bool) -> None:
    path = written(tmp_path / "r.jsonl", *lines)
    with pytest.raises(RecordingError, match="^" + re.escape(f"{path}, {message}")):
        Recording.load(path, partial=partial)


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_bytes(b"\x1f\x8b\x08\0\xff\n")
    with pytest.raises(RecordingError, match="line 1: is no JSON"):
        Recording.load(path, partial=True)


def test_cut_off_anywhere(tmp_path: Path) -> None:
    """Wherever a kill cuts it: whole lines are there, a line that is not is named, and left out where that is wanted."""
    data = written(tmp_path / "whole.jsonl", *WHOLE).read_bytes()
    path = tmp_path / "r.jsonl"
    for size in range(1, len(data)):
        path.write_bytes(data[:size])
        lines, rest = data[:size].count(b"\n"), len(data[:size].rpartition(b"\n")[2])
        unfinished = rest > 0 and data[size] != ord("\n")
        if not unfinished:  # between lines, or only the line's end is missing
            assert not Recording.load(path).cut
            continue
        with pytest.raises(RecordingError, match=f"r.jsonl, line {lines + 1}: cut off after {rest} bytes$"):
            Recording.load(path)
        if lines:
            found = Recording.load(path, partial=True)
            assert found.cut.endswith(f"line {lines + 1}: cut off after {rest} bytes")
            assert (len(found.turns), found.end) == (max(0, min(2, lines - 2)), None)


def test_the_first_format_can_be_read() -> None:
    """A file as the first version wrote it, which every later one has to read."""
    found = Recording.load(Path(__file__).parent / "format-1.jsonl")
    assert (found.opening.format, found.opening.task.id, found.opening.policy) == (1, "adding", "oracle")
    assert [[result.tool for result in turn.results] for turn in found.turns] == [
        ["bash", "edit_file"],
        ["none"],
        ["run_tests"],
        ["submit"],
    ]
    assert found.turns[0].diff[0].diff.endswith("+    return a + b\n")
    assert found.left is not None
    assert [file.path for file in found.left.files] == ["adding.py"]
    assert found.end is not None
    assert found.end.verdict is not None
    assert (found.end.outcome, found.end.verdict.passed) == ("solved", 2)
