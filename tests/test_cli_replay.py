"""`codeenv replay` and `codeenv regrade`, in this process; and the policy `script` on recordings, through verifiers."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest
from conftest import provider_or_skip
from env_support import double_task, make_env, play, write_set
from typer.testing import CliRunner, Result

from codeenv.cli import app
from codeenv.cli.scripts import script_from
from codeenv.episode import Episode
from codeenv.policies import Message, PolicyError, Script
from codeenv.record import Recording, Recordings
from codeenv.replay import differences
from codeenv.replay.several import recordings_at
from codeenv.sandbox.api import SandboxProvider
from codeenv.task import Task
from codeenv.tools import ToolCall
from tests.replay.played import SUBMIT, bash, policy, recorded

RIGHT = "echo 'print(int(input()) * 2)' > main.py"
HOSTILE = "printf 'x\\033]0;owned\\007[red]\\r%s' $RANDOM$RANDOM | tee hostile"


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, [*map(str, arguments)])


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder `tasks.jsonl` beside `run`: one episode that solves, one that does not, one of chance."""
    folder = tmp_path_factory.mktemp("played")
    source = str(write_set(folder, [double_task()]))
    provider = provider_or_skip("bubblewrap")

    async def play_all() -> None:
        for name, turns in {
            "right": [bash("ls -l"), bash(RIGHT), SUBMIT],
            "wrong": [bash("false"), SUBMIT],
            "chance": [bash(HOSTILE), SUBMIT],
        }.items():
            made = await recorded(folder / "made", provider, turns, source=source)
            (folder / "run").mkdir(exist_ok=True)
            made.path.rename(folder / "run" / f"{name}.jsonl")

    anyio.run(play_all)
    return folder


@pytest.fixture
def folder(played: Path, tmp_path: Path) -> Path:
    """A copy of it; recordings name the original's tasks."""
    return Path(shutil.copytree(played, tmp_path / "copy"))


# --- replay ----------------------------------------------------------------------------------------------------------


def test_one_that_is_the_same(folder: Path) -> None:
    done = run("replay", folder / "run" / "right.jsonl")
    assert done.exit_code == 0, done.output
    rows = [line.split() for line in done.stdout.splitlines() if line.strip()[:1].isdigit()]
    assert [(row[0], row[1]) for row in rows] == [("1", "bash"), ("2", "bash"), ("3", "submit")]
    assert [row[-1] for row in rows[1:]] == ["same", "same"]
    assert "verdict: solved 1/1; the same" in done.stdout


def test_one_that_differs_says_where_and_is_safe_to_print(folder: Path) -> None:
    done = run("replay", folder / "run" / "chance.jsonl")
    assert done.exit_code == 1
    assert "turn 1, call 1: text: " in done.stdout
    assert "diff: hostile" in done.stdout
    assert "the end: workspace: hostile" in done.stdout
    assert "\x1b" not in done.output
    assert "\r" not in done.output
    assert "[red]" in done.stdout  # as it is, and no markup


def test_a_folder_in_which_one_differs_and_one_is_foreign(folder: Path) -> None:
    (folder / "run" / "zzz.jsonl").write_text('{"name": "x"}\n')
    found = json.loads(run("replay", folder / "run", "--json", "-j", "2").stdout)
    assert (found["recordings"], found["same"], found["different"]) == (4, 2, 1)
    assert [(Path(each["file"]).name, each["same"]) for each in found["episodes"]] == [
        ("chance.jsonl", False),
        ("right.jsonl", True),
        ("wrong.jsonl", True),
    ]
    assert found["episodes"][1]["verdict_after"]["outcome"] == "solved"
    (unread,) = found["unread"]
    assert "zzz.jsonl, line 1: is no line of a recording" in unread["error"]
    (folder / "run" / "chance.jsonl").unlink()
    done = run("replay", folder / "run", "--record", folder / "again")
    assert done.exit_code == 2
    assert "2 of 3 recordings replay the same, 0 differ; 1 were not played" in done.stdout
    assert "zzz.jsonl, line 1" in done.stderr
    assert len([*(folder / "again").glob("double-0-*.jsonl")]) == 2


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["run/gone.jsonl"], 2, "there is no such file or folder"),
        (["void"], 2, "has no recordings"),
        (["run/newer.jsonl"], 2, "line 1: has format 99"),
        (["run/empty.jsonl"], 2, "line 1: the file is empty"),
        (["run/right.jsonl", "--dataset", "starter"], 2, "its task 'double-0' is not in 'starter'"),
        (["run/right.jsonl", "--dataset", "nowhere"], 2, "'nowhere', cannot be opened"),
        (["run/right.jsonl", "--dataset", "changed.jsonl"], 2, "is another than when it was played"),
        (["run/right.jsonl", "--sandbox", "no-such"], 2, "unknown sandbox 'no-such'"),
        (["run/right.jsonl", "--observation-tokens", "100"], 2, "goes with --sandbox none"),
        (["run/right.jsonl", "--prompts", "nowhere"], 2, "is not a directory of templates"),
        (["run/right.jsonl", "--record", "tasks.jsonl"], 2, "is a file"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_bad_input_of_replay(
    arguments: list[str], code: int, said: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    opening = (folder / "run" / "right.jsonl").read_text().splitlines()[0]
    (folder / "run" / "newer.jsonl").write_text(opening.replace('"format": 1', '"format": 99') + "\n")
    (folder / "run" / "empty.jsonl").write_text("")
    changed = double_task(tests={"one.in": b"1\n", "one.out": b"2\n"})
    (folder / "void").mkdir()
    write_set(folder / "void", [changed]).rename(folder / "changed.jsonl")
    done = run("replay", *arguments)
    assert (done.exit_code, done.stdout) == (code, ""), done.output
    assert said in done.stderr


def test_a_changed_task_if_that_is_asked_for(folder: Path) -> None:
    source = write_set(folder, [double_task(tests={"one.in": b"1\n", "one.out": b"3\n"})])
    done = run("replay", folder / "run" / "right.jsonl", "--dataset", source, "--changed-task")
    assert done.exit_code == 1
    assert "note: the task is another than when it was played" in done.stdout
    assert "verdict: solved 1/1 -> failed 0/1" in done.stdout
    assert "one: passed -> failed" in done.stdout


def test_a_sandbox_that_fails_is_no_difference(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from codeenv.sandbox.api import SandboxError
    from codeenv.sandbox.bubblewrap import BubblewrapProvider

    async def fails(self: object, spec: object) -> None:
        raise SandboxError("no room", stage="create")

    monkeypatch.setattr(BubblewrapProvider, "open", fails)
    done = run("replay", folder / "run")
    assert done.exit_code == 3
    assert "right.jsonl: create: no room" in done.stderr
    done = run("regrade", folder / "run" / "right.jsonl")
    assert done.exit_code == 3
    assert "right.jsonl: grading: create: no room" in done.stderr


def test_without_a_sandbox(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    same = run("replay", folder / "run", "--sandbox", "none")
    assert same.exit_code == 0
    assert "3 of 3 recordings render the same, 0 differ" in same.stdout
    (folder / "prompts").mkdir()
    (folder / "prompts" / "bash.j2").write_text("RAN {{ output }}\n")
    done = run("replay", folder / "run" / "right.jsonl", "--sandbox", "none", "--prompts", folder / "prompts")
    assert done.exit_code == 1
    assert "turn 1, call 1: bash" in done.stdout
    assert "    +RAN total" in done.stdout
    found = json.loads(run("replay", folder / "run", "--sandbox", "none", "--dataset", "nowhere", "--json").stdout)
    assert (found["same"], found["different"]) == (3, 0)
    assert "the task's message is left as it was" in found["episodes"][0]["note"]


# --- regrade ---------------------------------------------------------------------------------------------------------


def test_regrade_after_tests_were_mended(folder: Path) -> None:
    before = {path.name: path.read_bytes() for path in (folder / "run").iterdir()}
    source = write_set(
        folder, [double_task(tests={"one.in": b"0\n", "one.out": b"0\n", "two.in": b"1\n", "two.out": b"3\n"})]
    )
    done = run("regrade", folder / "run", "--dataset", source, "-o", folder / "mended")
    assert done.exit_code == 0, done.output
    rows = [line.split() for line in done.stdout.splitlines() if ".jsonl " in line]
    assert [row[0] for row in rows] == ["chance.jsonl", "right.jsonl", "wrong.jsonl"]
    assert "    two: not there -> failed" in done.stdout
    assert "3 judged, 3 verdicts are others; sum of rewards 1 -> 0" in done.stdout
    assert {path.name: path.read_bytes() for path in (folder / "run").iterdir()} == before
    end = Recording.load(folder / "mended" / "right.jsonl").end
    assert end is not None
    assert end.outcome == "failed"
    again = run("regrade", folder / "run", "--dataset", source, "-o", folder / "mended")
    assert again.exit_code == 2
    assert "recordings are not written over" in again.stderr


def test_regrade_says_what_it_did_not_judge(folder: Path) -> None:
    lines = (folder / "run" / "wrong.jsonl").read_text().splitlines(keepends=True)
    (folder / "run" / "wrong.jsonl").write_text("".join(lines[:3]))
    started_otherwise = double_task(files={"main.py": b"pass\n"})
    found = json.loads(run("regrade", folder / "run", "--json").stdout)
    assert (found["recordings"], found["graded"], found["changed"]) == (3, 2, 0)
    assert [Path(each["file"]).name for each in found["not_graded"]] == ["wrong.jsonl"]
    done = run("regrade", folder / "run", "--dataset", write_set(folder, [started_otherwise]))
    assert done.exit_code == 2
    assert "the files that task 'double-0' starts with are others" in done.stderr
    assert "1 not judged: there is no workspace" in done.stdout


# --- the policy `script` on recordings -------------------------------------------------------------------------------


@pytest.mark.anyio
@pytest.mark.parametrize("protocol", ["tools", "text"])
async def test_recordings_are_played_as_they_are_through_verifiers(
    protocol: str, provider: SandboxProvider, tmp_path: Path
) -> None:
    task = double_task()
    turns = [policy(name, task, protocol) for name in ("wrong", "oracle", "garbage", "oracle")]
    if protocol == "tools":
        turns = [[replace(each, reasoning="Hm.") for each in one if isinstance(each, Message)] for one in turns]
    for each in turns:
        await recorded(tmp_path / "a", provider, each, task, protocol=protocol)
    env = make_env([task], provider, protocol=protocol, max_turns=0, command_timeout=20.0)
    env.record = Recordings(tmp_path / "b")
    rows = await play(env, "script", script=script_from(tmp_path / "a", [task]), rollouts=4)
    assert sorted(row["outcome"] for row in rows) == ["failed", "failed", "solved", "solved"]
    found = [sorted(map(Recording.load, recordings_at(tmp_path / run)), key=_kind) for run in ("a", "b")]
    for one, other in zip(*found, strict=True):
        real = {each.what for each in differences(one, other) if not each.times}
        assert real <= {"policy", "prompt tokens", "completion tokens"}, (one.path, real)


def _kind(recording: Recording) -> tuple[str, int, str]:
    assert recording.end is not None
    return recording.opening.task.id, len(recording.turns), str(recording.end.outcome)


@pytest.mark.anyio
async def test_what_a_script_says_of_recordings(provider: SandboxProvider, tmp_path: Path) -> None:
    task = double_task()
    broken = ToolCall("bash", '{"command": "ls', "call_x")
    async with Episode.start(task, provider, record=tmp_path, max_turns=0) as episode:
        await episode.turn([broken, ToolCall("nope", None)])
        await episode.turn([])
    script = script_from(tmp_path, [task])
    ((first, second),) = script.attempts("double-0")
    assert [(call.name, call.arguments, call.id) for call in first.calls] == [
        ("bash", broken.arguments, "call_x"),
        ("nope", None, ""),
    ]
    assert (second.calls, second.text) == ((), " ")
    assert episode.recorder is not None
    assert isinstance(script_from(episode.recorder.path, [task]), Script)
    with pytest.raises(ValueError, match="has no turns of any of the 1 tasks"):
        script_from(tmp_path, [double_task(3)])
    with pytest.raises(PolicyError, match="no messages for task"):
        script.attempts("double-3")


@pytest.mark.parametrize("name", ["messages.json", "messages.jsonl"])
def test_a_file_of_messages_is_none_of_recordings(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text('["hello"]' if name.endswith(".json") else '"hello"\n')
    tasks: list[Task] = [double_task()]
    found: Any = script_from(tmp_path / name, tasks)
    assert [message.text for message in found.attempts("double-0")[0]] == ["hello"]
