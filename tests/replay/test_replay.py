"""Recordings of real episodes, played again in real boxes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from env_support import double_task

from codeenv.episode import Episode
from codeenv.record import Recording, RecordingError, Recordings
from codeenv.record.schema import Fault
from codeenv.replay import Replayed, differences, fork_of, replay
from codeenv.sandbox.api import SandboxError, SandboxProvider, SandboxSpec
from codeenv.sources import load_tasks
from codeenv.task import Answer
from codeenv.tools import ToolCall
from tests.episodes import Watching, destroy
from tests.replay.played import SUBMIT, bash, policy, recorded, with_result, with_turn

pytestmark = pytest.mark.anyio

RIGHT = "echo 'print(int(input()) * 2)' > main.py"
TIMES = (
    "date; date +%T.%N; ls -la --full-time; echo pid $$; python3 -c 'print(object())'; cat /proc/sys/kernel/random/uuid"
)


def real(found: Replayed) -> set[tuple[int, str]]:
    return {(each.turn, each.what) for each in found.differences if not each.times}


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("oracle", {}),
        ("garbage", {}),
        ("garbage", {"protocol": "text"}),
        ("wrong", {"max_turns": 2}),
        ("oracle", {"feedback": "messages", "observation_tokens": 64}),
    ],
    ids=["oracle", "garbage", "garbage-text", "out-of-turns", "messages"],
)
async def test_what_a_policy_did_is_the_same_again(
    name: str, settings: dict[str, Any], provider: SandboxProvider, tmp_path: Path
) -> None:
    task = double_task()
    turns = policy(name, task, settings.get("protocol", "tools"))
    turns = turns[: settings.get("max_turns")]
    found = await replay(await recorded(tmp_path, provider, turns, task, **settings), task, provider)
    assert real(found) == set()
    assert (found.same, found.judged, found.notes) == (True, True, [])
    assert len(found.after.turns) == len(turns)


async def test_a_task_of_a_whole_project_is_the_same_again(provider: SandboxProvider, tmp_path: Path) -> None:
    (task,) = load_tasks("starter/drain-pool")
    recording = await recorded(tmp_path, provider, policy("oracle", task), task, source="starter")
    found = await replay(recording, task, provider, given=True)
    assert (found.same, found.judged) == (True, True)
    assert found.after.end is not None
    assert found.after.end.outcome == "solved"


async def test_two_recordings_of_one_script_differ_in_times_and_ids_alone(
    provider: SandboxProvider, tmp_path: Path
) -> None:
    turns = [bash(TIMES), bash("sleep 0.1; (time true) 2>&1; seq 3000"), *policy("oracle", double_task()), SUBMIT]
    one, other = [await recorded(tmp_path, provider, turns[:-1]) for _ in range(2)]
    found = differences(one, other)
    assert found
    assert [each for each in found if not each.times] == []


async def test_the_single_message_of_an_answer(provider: SandboxProvider, tmp_path: Path) -> None:
    task = double_task(answer=Answer(path="main.py"))
    turns = ["```python\nprint(int(input()) * 2)\n```"]
    recording = await recorded(tmp_path, provider, turns, task, protocol="answer", max_turns=1)
    found = await replay(recording, task, provider)
    assert (found.differences, found.judged) == ([], True)


CHANGED: dict[str, tuple[dict[str, Any], str]] = {
    "exit-code": ({"exit_code": 3}, "exit code"),
    "text": ({"text": "no"}, "text"),
}


@pytest.mark.parametrize(("fields", "what"), CHANGED.values(), ids=CHANGED)
async def test_what_differs_is_named_by_its_turn(
    fields: dict[str, Any], what: str, provider: SandboxProvider, tmp_path: Path
) -> None:
    recording = await recorded(tmp_path, provider, [bash("true"), bash("echo x"), SUBMIT])
    found = await replay(with_result(recording, 2, **fields), double_task(), provider)
    assert (found.same, real(found)) == (False, {(2, what)})


async def test_files_that_chance_makes_differ_in_diff_and_workspace_and_verdict(
    provider: SandboxProvider, tmp_path: Path
) -> None:
    command = "head -c 8 /dev/urandom | od -An -tx1 > noise; test $RANDOM -gt 40000 || " + RIGHT
    recording = await recorded(tmp_path, provider, [bash(command), SUBMIT])
    task = double_task(tests={"one.in": b"21\n", "one.out": b"43\n"})
    found = await replay(recording, task, provider)
    verdict = {(-1, what) for what in ("outcome", "reward", "exit code", "tests")}
    assert real(found) == {(1, "diff: noise"), (-1, "workspace: noise"), *verdict}
    assert found.notes == ["the task is another than when it was played"]


async def test_an_episode_that_ends_before_its_recording_does(provider: SandboxProvider, tmp_path: Path) -> None:
    recording = await recorded(tmp_path, provider, [bash("true"), SUBMIT])
    more = replace(recording, turns=[*recording.turns, recording.turns[0].model_copy(update={"turn": 3})])
    assert real(await replay(more, double_task(), provider)) == {(3, "turn")}


# --- endings ---------------------------------------------------------------------------------------------------------


async def test_a_recording_without_an_end(provider: SandboxProvider, tmp_path: Path) -> None:
    recording = await recorded(tmp_path, provider, [bash("echo x"), bash("false")])
    data = recording.path.read_bytes().splitlines(keepends=True)
    recording.path.write_bytes(b"".join(data[:4]) + b'{"kind": "end", "sec')
    found = await replay(Recording.load(recording.path, partial=True), double_task(), provider)
    assert (found.same, found.judged, len(found.after.turns)) == (True, False, 2)
    assert "cut off after 20 bytes" in found.notes[0]
    assert "no end, so there is no verdict" in found.notes[1]


async def test_an_infrastructure_failure(provider: SandboxProvider, tmp_path: Path) -> None:
    async with Episode.start(double_task(), provider, record=tmp_path, max_turns=0) as episode:
        await episode.turn(bash("echo x > x"))
        await destroy(episode.sandbox)
        with pytest.raises(SandboxError):
            await episode.turn(bash("echo y"))
        with pytest.raises(SandboxError):
            await episode.finish()
    assert episode.recorder is not None
    recording = Recording.load(episode.recorder.path)
    found = await replay(recording, double_task(), provider)
    assert (real(found), found.judged, len(found.after.turns)) == (set(), False, 2)
    assert found.notes[0].startswith("turn 2 was broken off (SandboxLost")
    assert found.notes[1].startswith("it has no verdict to compare: ")


async def test_a_box_that_was_never_made(provider: SandboxProvider, tmp_path: Path) -> None:
    recording = await recorded(tmp_path, provider, [])
    assert recording.end is not None
    end = recording.end.model_copy(
        update={"verdict": None, "outcome": "infra", "error": Fault(type="SandboxError", message="no room")}
    )
    found = await replay(replace(recording, start=None, left=None, end=end), double_task(), provider)
    assert (found.same, found.judged) == (True, False)
    assert found.notes == [
        "its box was never made: there is nothing to play",
        "it has no verdict to compare: no room",
        "it was ended from outside (stopped), after its last turn; the replay ends there too",
    ]


async def test_the_turn_in_which_the_box_expired_is_not_played(provider: SandboxProvider, tmp_path: Path) -> None:
    recording = await recorded(tmp_path, provider, [bash("true"), bash("sleep 0.1")])
    assert recording.end is not None
    assert recording.end.verdict is not None
    verdict = recording.end.verdict.model_copy(update={"outcome": "expired", "tests": []})
    end = recording.end.model_copy(update={"over": "expired", "outcome": "expired", "verdict": verdict})
    expired = with_turn(replace(recording, end=end, left=None), 2, over="expired")
    found = await replay(expired, double_task(), provider)
    assert (found.same, found.judged, len(found.after.turns)) == (True, False, 1)
    assert "turn 2, in which the box reached its time to live, is not played again" in found.notes


async def test_an_episode_whose_time_was_up_ends_where_it_did(provider: SandboxProvider, tmp_path: Path) -> None:
    task = double_task()
    async with Episode.start(task, provider, record=tmp_path, max_turns=0) as episode:
        await episode.turn(bash(RIGHT))
        episode._deadline = 0.0
        await episode.turn([*bash("echo late > late"), *bash("echo later > late")])
        await episode.finish()
    assert episode.recorder is not None
    recording = Recording.load(episode.recorder.path)
    assert recording.end is not None
    assert (recording.end.over, recording.end.outcome) == ("time", "limit")
    found = await replay(recording, task, provider)
    assert (real(found), found.judged) == (set(), True)
    assert found.notes == ["it was ended from outside (time), after its last turn; the replay ends there too"]
    assert found.after.end is not None
    assert found.after.end.outcome == "limit"


# --- faults ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "said"),
    [({"settings": {"max_tuns": 3}}, "line 1: settings: max_tuns"), ({"spec": {"memory": 3}}, "line 1: spec: memory")],
    ids=["settings", "spec"],
)
async def test_settings_that_are_none_of_ours(
    changes: dict[str, Any], said: str, provider: SandboxProvider, tmp_path: Path
) -> None:
    recording = await recorded(tmp_path, provider, [])
    foreign = replace(recording, opening=recording.opening.model_copy(update=changes))
    with pytest.raises(RecordingError, match=said):
        await replay(foreign, double_task(), provider)


class Lost(Watching):
    async def open(self, spec: SandboxSpec) -> Any:
        box = await super().open(spec)
        await destroy(box)
        return box


async def test_a_box_that_is_lost_is_no_difference(provider: SandboxProvider, tmp_path: Path) -> None:
    recording = await recorded(tmp_path, provider, [bash("true")])
    lost = Lost(provider)
    with pytest.raises(SandboxError):
        await replay(recording, double_task(), lost)
    assert lost.alive == 0


async def test_its_own_recording_can_be_kept(provider: SandboxProvider, tmp_path: Path) -> None:
    recording = await recorded(tmp_path / "a", provider, [bash("echo x"), [ToolCall("run_tests", {})], SUBMIT])
    found = await replay(recording, double_task(), provider, record=Recordings(tmp_path / "b"))
    again = Recording.load(found.after.path)
    assert found.after.path.parent == tmp_path / "b"
    assert again.opening.labels["replay_of"] == recording.opening.id
    assert [each for each in differences(recording, again) if not each.times] == []


# --- going on --------------------------------------------------------------------------------------------------------


async def test_what_if_it_had_run_the_tests_here(provider: SandboxProvider, tmp_path: Path) -> None:
    task = double_task()
    turns = [bash("mkdir d && cd d && export A=1"), [ToolCall("run_tests", {})], bash(f"cd ..; {RIGHT}"), SUBMIT]
    recording = await recorded(tmp_path, provider, turns, task, max_turns=9)
    for turn, solved in ((2, False), (3, True)):
        fork = await fork_of(recording, task, provider, turn, record=tmp_path)
        try:
            assert (fork.tally.turns, fork.tally.test_runs, fork.over) == (turn, 1, "")
            (seen,) = await fork.turn(bash("pwd; echo $A"))
            assert seen.text == f"/workspace{'/d' * (turn == 2)}\n1"
            assert (await fork.step(ToolCall("run_tests", {}))).failed != solved
        finally:
            await fork.close()
        assert fork.recorder is not None
        written = Recording.load(fork.recorder.path).opening.fork
        assert written is not None
        assert (written.id, written.turn) == (recording.opening.id, turn)
    with pytest.raises(ValueError, match="must be 0 to 4"):
        await fork_of(recording, task, provider, 5)
