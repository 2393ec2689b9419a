"""A recording's summary by its first and last line: the same as by all of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from codeenv.record.reading import LAST, Recording, RecordingError, glance
from tests.record.recorded import END, OPENING, START, turn, written

SAID = {"prompt_tokens": 5, "completion_tokens": 2}
TURNS = [turn(1, said=SAID), turn(2, said=SAID)]
TALLY = {"turns": 2, "create_seconds": 0.5, "exec_seconds": 0.75, "grade_seconds": 3.0}
VERDICT: dict[str, Any] = {"outcome": "failed", "reward": 0.0, "exit_code": 1, "seconds": 2.0}
FAULT = {"type": "SandboxLost", "stage": "exec", "message": "gone"}
SUMS = {"model_seconds": 0.5, "prompt_tokens": 10, "completion_tokens": 4}


def ended(**fields: Any) -> dict[str, Any]:
    return {**END, "outcome": "failed", "over": "submitted", "tally": TALLY, **SUMS, **fields}


def judged(count: int) -> dict[str, Any]:
    tests = [{"id": f"test_{n}", "passed": n % 2 == 0, "message": "", "seconds": 0.1} for n in range(count)]
    return {**VERDICT, "tests": tests}


CASES: dict[str, list[Any]] = {
    "ended": [OPENING, START, *TURNS, ended(verdict=judged(3))],
    "ended, a last line that is long": [OPENING, START, *TURNS, ended(verdict=judged(LAST // 20))],
    "ended by a fault": [OPENING, START, *TURNS, ended(outcome="infra", error=FAULT)],
    "ended before its box": [OPENING, ended(outcome="infra", tally={}, model_seconds=0.0)],
    "an end without sums": [OPENING, START, *TURNS, END],
    "counts that are none": [OPENING, START, *TURNS, ended(tally={"turns": "x", "exec_seconds": None})],
    "running": [OPENING, START, *TURNS],
    "making its box": [OPENING],
}


@pytest.mark.parametrize("lines", CASES.values(), ids=CASES)
def test_it_says_what_the_whole_says(lines: list[Any], tmp_path: Path) -> None:
    path = written(tmp_path / "a.jsonl", *lines)
    assert glance(path) == Recording.load(path).summary
    with path.open("a") as file:
        file.write('{"kind": "tu')
    if lines[-1].get("kind") != "end":
        assert glance(path) == Recording.load(path, partial=True).summary


def test_an_ended_one_s_time_is_split(tmp_path: Path) -> None:
    """What the tests took that the policy ran is the grading's time, and not the sandbox's as well."""
    found = glance(written(tmp_path / "a.jsonl", *CASES["ended"]))
    assert (found.turns, found.tests_passed, found.tests_total) == (2, 2, 3)
    assert (found.model_seconds, found.sandbox_seconds, found.grading_seconds) == (0.5, 1.25, 3.0)
    assert (found.prompt_tokens, found.completion_tokens) == (10, 4)


def test_what_is_between_is_not_read(tmp_path: Path) -> None:
    path = written(tmp_path / "a.jsonl", OPENING, START, "no JSON", ended())
    assert glance(path).turns == 2
    with pytest.raises(RecordingError):
        Recording.load(path)


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        (["no JSON", json.dumps(ended())], "line 1: is no JSON"),
        ([{**OPENING, "format": 99}, ended()], "line 1: has format 99"),
        ([OPENING, START, '{"kind": "end"}'], "line 3: end.seconds"),
        ([], "line 1: the file is empty"),
    ],
    ids=["foreign", "newer", "last", "empty"],
)
def test_a_fault_names_its_line(lines: list[Any], says: str, tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match=says):
        glance(written(tmp_path / "a.jsonl", *lines))
