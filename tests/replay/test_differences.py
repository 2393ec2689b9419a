"""What makes two recordings differ, and what does not."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from codeenv.record import Recording
from codeenv.replay import differences
from tests.record.recorded import OPENING, START, turn, written

TEST = {"id": "t.py::test_a", "passed": True, "seconds": 0.1}
VERDICT = {"outcome": "solved", "reward": 1.0, "exit_code": 0, "tests": [TEST], "seconds": 1.0}
RAW = {"template": "bash.j2", "values": {}, "output": {"text": "in 0.1s\nx"}, "output_bytes": 9}
RESULT = {
    "id": "call_1", "name": "bash", "arguments": {"command": "ls"}, "tool": "bash", "text": "in 0.1s\nx",
    "exit_code": 0,
    "seconds": 0.5, "tokens": 9, "raw": RAW,
}  # fmt: skip
CHANGE = {"path": "a.py", "change": "changed", "size": 3, "digest": "d", "diff": "-a\n+b\n"}
SAID = {"text": "Hm.", "prompt_tokens": 10, "completion_tokens": 3}
LINES: list[dict[str, Any]] = [
    {**OPENING, "labels": {"example_id": 1}, "fork": {"id": "of", "turn": 1}},
    {**START, "prompt": [{"role": "user", "content": "Do it."}]},
    turn(1, said=SAID, results=[RESULT], diff=[CHANGE], cwd="/workspace"),
    {"kind": "workspace", "files": [{"path": "a.py", "mode": 420, "data": {"text": "b"}}], "removed": ["gone"]},
    {"kind": "end", "seconds": 9.0, "outcome": "solved", "over": "submitted", "verdict": VERDICT,
     "tally": {"turns": 1, "exec_seconds": 1.0}},
]  # fmt: skip


def pair(tmp_path: Path, *changes: tuple[str, Any]) -> tuple[Recording, Recording]:
    """The recording, and one in which what is at each path (`line.key.key`) is another."""
    lines = deepcopy(LINES)
    for path, value in changes:
        *parents, last = [int(part) if part.isdigit() else part for part in path.split(".")]
        place: Any = lines
        for part in parents:
            place = place[part]
        place[last] = value
    return Recording.load(written(tmp_path / "a.jsonl", *LINES)), Recording.load(written(tmp_path / "b.jsonl", *lines))


TIMES_AND_IDS: dict[str, Any] = {
    "0.id": "xyz", "0.started": "2030-01-01T00:00:00.000+00:00", "0.labels": {"example_id": 2}, "0.fork.id": "other",
    "0.task.source": "elsewhere", "1.seconds": 7.0, "2.at": 7.0, "2.waited": 7.0, "2.seconds": 7.0,
    "2.results.0.id": "call_9", "2.results.0.arguments": '{"command":  "ls"}',
    "2.results.0.seconds": 7.0, "4.seconds": 7.0, "4.verdict.seconds": 7.0,
    "4.verdict.tests.0.seconds": 7.0, "4.tally.exec_seconds": 7.0,
}  # fmt: skip


@pytest.mark.parametrize("path", TIMES_AND_IDS, ids=str)
def test_times_and_ids_are_no_difference(path: str, tmp_path: Path) -> None:
    assert differences(*pair(tmp_path, (path, TIMES_AND_IDS[path]))) == []


DIFFERENT: dict[str, tuple[Any, int, str]] = {
    "0.task.digest": ("e", 0, "task"),
    "0.sandbox": ("beam", 0, "sandbox"),
    "0.policy": ("oracle", 0, "policy"),
    "0.settings": ({"max_turns": 3}, 0, "settings: max turns"),
    "0.versions": ({"codeenv": "9"}, 0, "versions: codeenv"),
    "0.fork.turn": (2, 0, "fork"),
    "1.workdir": ("/w", 0, "workdir"),
    "1.prompt": ([{"role": "user", "content": "Do that."}], 0, "user message"),
    "2.said.text": ("Ha.", 1, "message"),
    "2.said.prompt_tokens": (11, 1, "prompt tokens"),
    "2.results.0.name": ("bsh", 1, "name"),
    "2.results.0.arguments": ({"command": "pwd"}, 1, "arguments"),
    "2.results.0.exit_code": (1, 1, "exit code"),
    "2.results.0.failed": (True, 1, "failed"),
    "2.results.0.text": ("in 0.1s\ny", 1, "text"),
    "2.results.0.raw.output": ({"text": "in 0.1s\nz"}, 1, "output behind the text"),
    "2.results.0.verdict": (VERDICT, 1, "verdict"),
    "2.results": ([], 1, "call"),
    "2.diff.0.diff": ("-a\n+c\n", 1, "diff: a.py"),
    "2.diff.0.mode": (493, 1, "diff: a.py"),
    "2.diff": ([], 1, "diff: a.py"),
    "2.cwd": ("/", 1, "cwd"),
    "2.over": ("turns", 1, "over"),
    "2.error": ("SandboxLost: gone", 1, "error"),
    "3.files.0.data": ({"text": "c"}, -1, "workspace: a.py"),
    "3.files.0.mode": (493, -1, "workspace: a.py"),
    "3.files": ([], -1, "workspace: a.py"),
    "3.removed": ([], -1, "workspace: gone"),
    "4.outcome": ("failed", -1, "outcome"),
    "4.over": ("turns", -1, "over"),
    "4.verdict.reward": (0.5, -1, "reward"),
    "4.verdict.exit_code": (1, -1, "exit code"),
    "4.verdict.tests.0.passed": (False, -1, "tests"),
    "4.verdict.tests.0.message": ("because", -1, "messages of tests"),
    "4.verdict.tests": ([], -1, "tests"),
    "4.verdict.reason": ("so", -1, "reason"),
    "4.verdict": (None, -1, "verdict"),
    "4.error": ({"type": "E", "message": "m"}, -1, "error"),
    "4.tally.turns": (2, -1, "turns"),
}


@pytest.mark.parametrize("path", DIFFERENT, ids=str)
def test_everything_else_is_one_and_named(path: str, tmp_path: Path) -> None:
    value, place, what = DIFFERENT[path]
    found = differences(*pair(tmp_path, (path, value)))
    assert {(each.turn, each.what, each.times) for each in found} == {(place, what, False)}


def test_texts_that_differ_in_times_alone(tmp_path: Path) -> None:
    text = "in 12.3s\nx"
    one, other = pair(tmp_path, ("2.results.0.text", text), ("2.results.0.tokens", 10), ("2.said.prompt_tokens", 11))
    assert {(each.what, each.times) for each in differences(one, other)} == {("text", True), ("prompt tokens", True)}


def test_what_is_shown_of_texts_is_the_line_that_matters(tmp_path: Path) -> None:
    (found,) = differences(*pair(tmp_path, ("2.results.0.text", "in 2.5s\ny")))
    assert (found.before, found.after, found.times) == ("x", "y", False)
    assert found.detail == "@@ -1,2 +1,2 @@\n-in 0.1s\n-x\n+in 2.5s\n+y"


@pytest.mark.parametrize("same", [True, False], ids=["times", "another-template"])
def test_where_a_text_is_cut_depends_on_its_times(same: bool, tmp_path: Path) -> None:
    changes: list[tuple[str, Any]] = [("2.results.0.text", "in\n[... 3 characters omitted ...]\nx")]
    one, other = pair(tmp_path, *changes)
    first = one.turns[0].results[0].model_copy(update={"text": "in 0\n[... 1 characters omitted ...]\nx"})
    one.turns[0] = one.turns[0].model_copy(update={"results": [first]})
    if same:
        raw = first.raw and first.raw.model_copy(update={"output": type(first.raw.output)(text="in 20.1s\nx")})
        later = other.turns[0].results[0].model_copy(update={"raw": raw})
        other.turns[0] = other.turns[0].model_copy(update={"results": [later]})
    assert [(each.what, each.times) for each in differences(one, other)] == [("text", same)]


def test_a_turn_more_and_an_end_less(tmp_path: Path) -> None:
    one = Recording.load(written(tmp_path / "a.jsonl", *LINES))
    two = Recording.load(written(tmp_path / "b.jsonl", *LINES[:3], turn(2)))
    assert [(each.turn, each.what) for each in differences(one, two)] == [(2, "turn"), (-1, "workspace"), (-1, "end")]


def test_large_texts_are_compared_in_bounded_time_and_size(tmp_path: Path) -> None:
    lines = [f"{n} {n * 7 % 11}" for n in range(20_000)]
    one, other = pair(tmp_path, ("2.results.0.text", "\n".join(lines)))
    mixed = one.turns[0].results[0].model_copy(update={"text": "\n".join(reversed(lines))})
    one.turns[0] = one.turns[0].model_copy(update={"results": [mixed]})
    (found,) = differences(one, other)
    assert len(found.detail) < 10_000
