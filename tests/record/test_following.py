"""A folder that is followed while episodes run."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from codeenv.episode import Episode, EpisodeSettings
from codeenv.record import Recordings
from codeenv.record.following import Following
from codeenv.sandbox.api import SandboxError, SandboxProvider
from codeenv.tools import ToolCall
from tests.episodes import pytest_task
from tests.record.recorded import END, OPENING, START, turn, written
from tests.wrapping import Wrapping

WORKSPACE = {"kind": "workspace", "files": [], "removed": []}


def state(following: Following) -> list[Any]:
    following.read()
    return [(one.task, one.stage, one.turn, one.boxes) for one in following.running.values()]


def test_a_file_is_followed_as_it_grows(tmp_path: Path) -> None:
    following = Following(tmp_path / "run")
    assert state(following) == []
    (tmp_path / "run").mkdir()
    path = tmp_path / "run" / "a.jsonl"
    path.touch()
    assert state(following) == []
    lines = [OPENING, START, turn(1), turn(2, over="submitted"), WORKSPACE]
    stages = [("box", 0), ("turn", 1), ("turn", 2), ("end", 2), ("grading", 2)]
    for line, (stage, number) in zip(lines, stages, strict=True):
        before, text = state(following), json.dumps(line) + "\n"
        with path.open("a") as file:
            file.write(text[:20])
            file.flush()
            assert state(following) == before
            file.write(text[20:])
        assert state(following) == [("adding", stage, number, 1)]
    fault = {"type": "SandboxLost", "stage": "exec", "message": "gone"}
    with path.open("a") as file:
        file.write(json.dumps({**END, "outcome": "infra", "error": fault}) + "\n")
    (ended,) = following.read()
    assert (ended.summary.outcome, ended.stage, ended.message) == ("infra", "exec", "gone")
    assert following.read() == []
    assert (following.running, following.ended) == ({}, [ended])


def test_only_what_is_new_and_of_the_policy(tmp_path: Path) -> None:
    written(tmp_path / "old.jsonl", OPENING)
    following = Following(tmp_path, policy="mine")
    written(tmp_path / "other.jsonl", {**OPENING, "policy": "theirs"})
    written(tmp_path / "foreign.jsonl", {"some": "rows"}, "no JSON")
    written(tmp_path / "index.jsonl", {"file": "x"})
    written(tmp_path / "broken.jsonl", {**OPENING, "policy": "mine", "started": "yesterday"})
    written(tmp_path / "mine.jsonl", {**OPENING, "policy": "mine", "labels": {"example_id": 3}}, START, "no JSON")
    written(tmp_path / "one.jsonl", {**OPENING, "policy": "mine", "labels": {"example_id": 3}}, START)
    following.read()
    assert {name: one.labels for name, one in following.running.items()} == {"one.jsonl": {"example_id": 3}}
    (tmp_path / "one.jsonl").unlink()
    assert state(following) == []


def test_its_age_is_that_of_the_episode(tmp_path: Path) -> None:
    following = Following(tmp_path)
    written(tmp_path / "a.jsonl", OPENING)
    following.read()
    assert time.monotonic() - following.running["a.jsonl"].began > 24 * 3600


def test_in_the_protocol_answer_there_is_a_box_while_it_is_judged(tmp_path: Path) -> None:
    following = Following(tmp_path)
    lines = [{**OPENING, "settings": {"protocol": "answer"}}, START]
    written(tmp_path / "a.jsonl", *lines)
    assert state(following) == [("adding", "turn", 1, 0)]
    written(tmp_path / "a.jsonl", *lines, turn(1, over="submitted"), WORKSPACE)
    assert state(following) == [("adding", "grading", 1, 1)]


class Failing(Wrapping):
    async def open(self, spec: Any) -> Any:
        raise SandboxError("no room", stage="create")


@pytest.mark.anyio
async def test_real_episodes(provider: SandboxProvider, tmp_path: Path) -> None:
    following, folder = Following(tmp_path), Recordings(tmp_path)
    async with Episode.start(pytest_task(), provider, record=folder) as episode:
        assert state(following) == [("adding", "turn", 1, 1)]
        await episode.turn([ToolCall("bash", {"command": "true"})])
        assert state(following) == [("adding", "turn", 2, 1)]
        await episode.turn([ToolCall("submit", {})])
        assert state(following) == [("adding", "end", 2, 1)]
        await episode.finish()
    with pytest.raises(SandboxError):
        await Episode.open(pytest_task(), Failing(provider), EpisodeSettings(), record=folder)
    following.read()
    assert [
        (one.summary.outcome, one.stage, one.message) for one in sorted(following.ended, key=lambda one: one.stage)
    ] == [
        ("failed", "", ""),
        ("infra", "create", "no room"),
    ]
