"""Recorded workspaces, judged anew."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from env_support import double_task, pytest_task, write_set

from codeenv.episode import Episode
from codeenv.record import Recording, Recordings, summaries
from codeenv.record.schema import Fault, FileLeft, Left
from codeenv.record.tasks import TaskBook
from codeenv.replay import replay
from codeenv.replay.regrade import NotGraded, keep, regrade
from codeenv.sandbox.api import SandboxError, SandboxProvider
from codeenv.task import Answer, Task
from tests.episodes import destroy
from tests.replay.played import SUBMIT, bash, recorded

pytestmark = pytest.mark.anyio

SQUARE = "echo 'print(int(input()) ** 2)' > main.py"


def mended(**changes: Any) -> Task:
    """Squares are now what is asked for, and a second case says so."""
    tests = {"one.in": b"3\n", "one.out": b"9\n", "two.in": b"2\n", "two.out": b"4\n"}
    return double_task(tests=tests, **changes)


async def test_a_mended_test(provider: SandboxProvider, tmp_path: Path) -> None:
    recording = await recorded(tmp_path, provider, [bash(f"{SQUARE}; mkdir d; ln -s ../main.py d/l"), SUBMIT])
    same = await regrade(recording, double_task(), provider)
    assert (same.changed, same.moved, same.after.outcome) == (False, {}, "failed")
    found = await regrade(recording, mended(), provider)
    assert (found.outcome_before, found.after.outcome, found.after.reward) == ("failed", "solved", 1.0)
    assert (found.changed, found.moved) == (True, {"one": ("failed", "passed"), "two": ("not there", "passed")})


async def test_a_limit_stays_one_with_the_reward_of_the_tests(provider: SandboxProvider, tmp_path: Path) -> None:
    recording = await recorded(tmp_path, provider, [bash(SQUARE)], max_turns=1)
    found = await regrade(recording, mended(), provider)
    assert found.before is not None
    assert (found.before.outcome, found.before.reward) == ("limit", 0.0)
    assert (found.after.outcome, found.after.reward, found.after.reason) == ("limit", 1.0, found.before.reason)
    assert found.after.reason


async def test_one_that_was_killed_or_failed_while_it_was_judged_gets_a_verdict(
    provider: SandboxProvider, tmp_path: Path
) -> None:
    recording = await recorded(tmp_path, provider, [bash(SQUARE), SUBMIT])
    assert recording.end is not None
    fault = Fault(type="SandboxError", stage="grading: create", message="no room")
    failed = recording.end.model_copy(update={"outcome": "infra", "verdict": None, "error": fault})
    for end in (None, failed):
        found = await regrade(replace(recording, end=end), mended(), provider)
        assert (found.before, found.changed, found.after.outcome) == (None, True, "solved")


async def test_what_the_policy_may_not_see_is_not_kept(provider: SandboxProvider, tmp_path: Path) -> None:
    recording = await recorded(tmp_path, provider, [SUBMIT], pytest_task())
    found = await regrade(recording, pytest_task(), provider)
    assert found.after.outcome == "failed"
    assert {test.message for test in found.after.tests} == {""}


async def test_an_answer(provider: SandboxProvider, tmp_path: Path) -> None:
    task = double_task(answer=Answer(path="main.py"))
    turns = ["```python\nprint(int(input()) ** 2)\n```"]
    recording = await recorded(tmp_path, provider, turns, task, protocol="answer", max_turns=1)
    assert (await regrade(recording, mended(answer=task.answer), provider)).after.outcome == "solved"
    none = await recorded(tmp_path, provider, ["I do not know."], task, protocol="answer", max_turns=1)
    with pytest.raises(NotGraded, match="there is no workspace: "):
        await regrade(none, task, provider)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda r: replace(r, end=r.end.model_copy(update={"outcome": "expired"})), "the box expired"),
        (lambda r: replace(r, left=None, end=None), "it was not judged"),
        (
            lambda r: replace(r, left=r.left.model_copy(update={"missing": "too large"})),
            "not recorded whole: too large",
        ),
    ],
    ids=["expired", "killed", "too-large"],
)
async def test_what_cannot_be_judged_is_said(change: Any, said: str, provider: SandboxProvider, tmp_path: Path) -> None:
    recording = await recorded(tmp_path, provider, [SUBMIT])
    with pytest.raises(NotGraded, match=said):
        await regrade(change(recording), double_task(), provider)


@pytest.mark.parametrize(
    ("file", "said"),
    [
        ({"path": "../main.py"}, "is not a relative path below the root"),
        ({"path": "/etc/x"}, "is not a relative path below the root"),
        ({"path": "d/link", "link": True, "data": {"text": "../../etc"}}, "a link that leaves it: 'd/link'"),
        ({"path": "x", "data": {"base64": "?"}}, "base64"),
    ],
    ids=["above", "absolute", "link", "base64"],
)
async def test_a_workspace_that_no_box_could_have_given_is_refused(
    file: dict[str, Any], said: str, provider: SandboxProvider, tmp_path: Path
) -> None:
    recording = await recorded(tmp_path, provider, [SUBMIT])
    left = Left(files=[FileLeft.model_validate({"mode": 0o644, "data": {"text": "x"}, **file})], removed=[])
    with pytest.raises(ValueError, match=said):
        await regrade(replace(recording, left=left), double_task(), provider)


async def test_an_episode_whose_box_was_lost_has_no_workspace(provider: SandboxProvider, tmp_path: Path) -> None:
    async with Episode.start(double_task(), provider, record=tmp_path, max_turns=0) as episode:
        await destroy(episode.sandbox)
        with pytest.raises(SandboxError):
            await episode.finish()
    assert episode.recorder is not None
    with pytest.raises(NotGraded, match="there is no workspace: the sandbox was lost"):
        await regrade(Recording.load(episode.recorder.path), double_task(), provider)


async def test_a_copy_with_the_present_verdict(provider: SandboxProvider, tmp_path: Path) -> None:
    recording = await recorded(tmp_path / "a", provider, [bash(SQUARE), SUBMIT], source=str(tmp_path / "tasks.jsonl"))
    before = recording.path.read_bytes()
    task = mended()
    write_set(tmp_path, [task])
    found = await regrade(recording, task, provider)
    path = keep(recording, Recordings(tmp_path / "b"), found)
    assert recording.path.read_bytes() == before
    copy = Recording.load(path)
    assert (copy.turns, copy.left, copy.start) == (recording.turns, recording.left, recording.start)
    assert copy.end is not None
    assert copy.end.outcome == "solved"
    assert copy.opening.labels["regraded"] == {"digest": recording.opening.task.digest, "outcome": "failed"}
    (row,) = summaries(tmp_path / "b")
    assert (row.outcome, row.reward, row.tests_total, row.file) == ("solved", 1.0, 2, path.name)
    # It is as if it had been played on the present task.
    assert (await replay(copy, TaskBook().find(copy), provider)).same
    with pytest.raises(FileExistsError):
        keep(recording, Recordings(tmp_path / "b"), found)


async def test_a_copy_of_what_was_not_judged_is_as_it_was(provider: SandboxProvider, tmp_path: Path) -> None:
    recording = await recorded(tmp_path / "a", provider, [bash("true")])
    killed = replace(recording, end=None, left=None)
    copy = Recording.load(keep(killed, Recordings(tmp_path / "b"), None))
    assert (copy.opening, copy.turns, copy.end) == (recording.opening, recording.turns, None)
