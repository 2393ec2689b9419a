"""What an episode leaves of itself, whatever happens to it."""

from __future__ import annotations

import json
import resource
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

from codeenv.episode import Episode, EpisodeSettings
from codeenv.record import Recording, Recordings, Said, summaries
from codeenv.sandbox.api import SandboxError, SandboxLost, SandboxProvider, SandboxSpec
from codeenv.task import Answer
from codeenv.tools import ToolCall
from tests.episodes import GOOD, TEST_ADD, destroy, pytest_task
from tests.record.recorded import recording_in
from tests.wrapping import Wrapping

pytestmark = pytest.mark.anyio
FIX = ToolCall("edit_file", {"path": "adding.py", "old_text": "abs(a) + abs(b)", "new_text": "a + b"}, id="call_1")


async def test_an_episode(provider: SandboxProvider, tmp_path: Path) -> None:
    folder = Recordings(tmp_path / "new" / "run", source="starter", policy="oracle")
    task = pytest_task(solution={"adding.py": GOOD.encode()})
    async with Episode.start(task, provider, record=folder) as episode:
        said = Said(text="Let me see.", reasoning="hm", prompt_tokens=10, completion_tokens=3)
        await episode.turn([ToolCall("bash", '{"command": "mkdir d; cd d; echo x; false"}'), FIX], said=said)
        await episode.turn([])
        await episode.turn([ToolCall("run_tests")])
        await episode.turn([ToolCall("submit", {})])
        await episode.finish()
    found = recording_in(folder.folder)
    assert (found.opening.task.id, found.opening.task.digest) == ("adding", task.digest)
    assert (found.opening.task.source, found.opening.policy, found.opening.sandbox) == (
        "starter",
        "oracle",
        "bubblewrap",
    )
    assert found.opening.settings["max_turns"] == 30
    assert found.start is not None
    assert [message["role"] for message in found.start.prompt] == ["system", "user"]
    first = found.turns[0]
    assert first.said == said
    bash, edit = first.results
    assert (bash.arguments, bash.exit_code, bash.failed) == ('{"command": "mkdir d; cd d; echo x; false"}', 1, True)
    assert (edit.id, edit.arguments) == ("call_1", FIX.arguments)
    assert bash.raw is not None
    assert bash.raw.output is not None
    assert (bash.raw.output.bytes, bash.raw.output_bytes) == (b"x\n", 2)
    assert bash.text == "x\n[exit code 1]"
    assert first.cwd == "/workspace/d"
    assert [(one.path, one.change) for one in first.diff] == [("adding.py", "changed")]
    assert "-    return abs(a) + abs(b)\n+    return a + b\n" in first.diff[0].diff
    assert [turn.diff for turn in found.turns[1:]] == [[], [], []]
    assert [turn.results[0].tool for turn in found.turns[1:]] == ["none", "run_tests", "submit"]
    tested = found.turns[2].results[0].verdict
    assert tested is not None
    assert (tested.outcome, tested.passed) == ("solved", 2)
    assert found.left is not None
    assert [(file.path, file.data.bytes) for file in found.left.files] == [("adding.py", GOOD.encode())]
    assert found.end is not None
    assert found.end.verdict is not None
    assert (found.end.outcome, found.end.over, found.end.verdict.passed) == ("solved", "submitted", 2)
    assert found.end.tally["calls"] == {"bash": 1, "edit_file": 1, "none": 1, "run_tests": 1, "submit": 1}
    (row,) = summaries(folder.folder)
    assert row == found.summary
    assert (row.outcome, row.reward, row.turns, row.prompt_tokens) == ("solved", 1.0, 4, 10)


async def test_an_answer(provider: SandboxProvider, tmp_path: Path) -> None:
    task = pytest_task(answer=Answer(path="adding.py", entry_point="add"), family="function")
    async with Episode.start(task, provider, record=tmp_path, max_turns=1) as episode:
        await episode.step(f"```python\n{GOOD}```")
        await episode.finish()
    found = recording_in(tmp_path)
    assert [(turn.said.text, turn.results[0].tool) for turn in found.turns] == [(f"```python\n{GOOD}```", "answer")]
    assert found.left is not None
    assert found.left.files[0].data.text == GOOD
    assert found.summary.outcome == "solved"


async def test_the_text_protocol(provider: SandboxProvider, tmp_path: Path) -> None:
    message = "I look.\n```bash\necho hi\n```"
    async with Episode.start(pytest_task(), provider, record=tmp_path, protocol="text") as episode:
        await episode.step(message)
    turn = recording_in(tmp_path).turns[0]
    assert (turn.said.text, turn.results[0].name, turn.results[0].text) == (message, "bash", "hi")


# --- ends ---------------------------------------------------------------------------------------------------------


async def test_a_box_that_cannot_be_made(provider: SandboxProvider, tmp_path: Path) -> None:
    class Failing(Wrapping):
        async def open(self, spec: SandboxSpec) -> Any:
            raise SandboxError("no room", stage="create", seconds=1.5)

    with pytest.raises(SandboxError):
        await Episode.open(pytest_task(), Failing(provider), EpisodeSettings(), record=Recordings(tmp_path))
    found = recording_in(tmp_path)
    assert (found.start, found.turns) == (None, [])
    assert found.end is not None
    assert found.end.error is not None
    assert (found.end.outcome, found.end.error.stage, found.end.error.seconds) == ("infra", "create", 1.5)
    assert summaries(tmp_path)[0].error == "create: no room"


async def test_a_box_that_is_lost_in_a_turn(provider: SandboxProvider, tmp_path: Path) -> None:
    async with Episode.start(pytest_task(), provider, record=tmp_path) as episode:
        await episode.turn([ToolCall("bash", {"command": "true"})])
        calls = [ToolCall("bash", {"command": command}) for command in ("echo 1", "sleep 30")]
        async with anyio.create_task_group() as group:
            group.start_soon(self_destruct, episode)
            with pytest.raises(SandboxLost):
                await episode.turn(calls)
        with pytest.raises(SandboxLost):
            await episode.finish()
    found = recording_in(tmp_path)
    assert [result.text for result in found.turns[1].results] == ["1"]
    assert found.turns[1].error.startswith("SandboxLost: ")
    assert found.end is not None
    assert found.end.error is not None
    assert (found.end.outcome, found.end.verdict, found.end.error.type) == ("infra", None, "SandboxLost")


async def self_destruct(episode: Episode) -> None:
    await anyio.sleep(0.3)
    await destroy(episode.sandbox)


async def test_what_is_abandoned_and_what_is_only_closed(provider: SandboxProvider, tmp_path: Path) -> None:
    for name in ("model", "closed"):
        folder = Recordings(tmp_path / name)
        episode = await Episode.open(pytest_task(), provider, EpisodeSettings(), record=folder)
        if name == "model":
            episode.abandon("model", RuntimeError("the endpoint is down"))
        await episode.close()
        await episode.close()
        found = recording_in(tmp_path / name)
        assert found.end is not None
        fault = found.end.error and found.end.error.message
        assert (found.end.outcome, fault) == (("model", "the endpoint is down") if name == "model" else (None, None))


async def test_what_the_background_changes_is_found_at_the_next_turn_that_may_change_something(
    provider: SandboxProvider, tmp_path: Path
) -> None:
    read = ToolCall("read_file", {"path": "adding.py"})
    async with Episode.start(pytest_task(), provider, record=tmp_path) as episode:
        await episode.turn([ToolCall("bash", {"command": "(sleep 0.1; echo > late) &"})])
        await anyio.sleep(0.3)
        await episode.turn([read])
        await episode.turn([ToolCall("bash", {"command": "true"})])
        with anyio.move_on_after(0.2):
            await episode.turn([ToolCall("bash", {"command": "echo > cut; sleep 30"})])
        await episode.turn([read])
    found = recording_in(tmp_path)
    assert [[change.path for change in turn.diff] for turn in found.turns] == [[], [], ["late"], [], ["cut"]]


async def test_a_cancelled_turn(provider: SandboxProvider, tmp_path: Path) -> None:
    async with Episode.start(pytest_task(), provider, record=tmp_path) as episode:
        with anyio.move_on_after(0.3) as scope:
            await episode.turn([ToolCall("bash", {"command": "sleep 30"})])
        assert scope.cancelled_caught
        assert (await episode.step(ToolCall("bash", {"command": "echo on"}))).text == "on"
    found = recording_in(tmp_path)
    assert found.turns[0].error == "interrupted"
    assert found.turns[1].results[0].text == "on"


KILLED = """
import os, signal, sys, anyio
from codeenv import Episode, ToolCall, get_provider
from tests.episodes import pytest_task

async def main():
    async with Episode.start(pytest_task(), get_provider(), record=sys.argv[1]) as episode:
        for n in range(3):
            await episode.turn([ToolCall("bash", {"command": f"echo {n} > f{n}"})])
        os.kill(os.getpid(), signal.SIGKILL)

anyio.run(main)
"""


def test_a_kill_leaves_what_was_played(provider: SandboxProvider, tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], cwd=Path(__file__).parents[2], check=False)
    assert done.returncode == -signal.SIGKILL
    found = recording_in(tmp_path)
    assert [change.path for turn in found.turns for change in turn.diff] == ["f0", "f1", "f2"]
    assert found.end is None
    (row,) = summaries(tmp_path)
    assert (row.ended, row.turns, row.outcome, row.reward) == (False, 3, None, None)


async def test_a_disk_that_is_full_does_not_reach_the_episode(
    provider: SandboxProvider, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = Recordings(tmp_path)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        async with Episode.start(pytest_task(), provider, record=folder) as episode:
            await episode.turn([FIX])
            path = recording_in(tmp_path).path
            resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size, limits[1]))
            await episode.turn([ToolCall("bash", {"command": "true"})])
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
            assert (await episode.finish()).solved
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    assert [record.getMessage().split(": ")[0] for record in caplog.records] == [f"the recording {path} ends here"]
    assert len(Recording.load(path, partial=True).turns) == 1


# --- what is in it, and what never ----------------------------------------------------------------------------------

HIDDEN = "hidden-marker-"


def everything_in(folder: Path) -> str:
    return b"".join(path.read_bytes() for path in folder.iterdir()).decode()


@pytest.mark.parametrize("feedback", ["counts", "messages"])
async def test_nothing_hidden_is_in_it(provider: SandboxProvider, tmp_path: Path, feedback: str) -> None:
    failing = TEST_ADD + f'\n\ndef test_third():\n    assert add(1, 1) == 5, "shown-marker"  # {HIDDEN}source\n'
    task = pytest_task(
        tests={"test_adding.py": failing, "data.txt": HIDDEN + "data"},
        solution={"adding.py": f"# {HIDDEN}solution\n{GOOD}".encode()},
        wrong={"one": {"adding.py": f"# {HIDDEN}wrong".encode()}},
    )
    spec = SandboxSpec(env={"SOME_NAME": HIDDEN + "env"})
    async with Episode.start(task, provider, spec=spec, record=tmp_path, feedback=feedback) as episode:
        await episode.turn([FIX, ToolCall("run_tests")])
        verdict = await episode.finish()
    assert any("shown-marker" in test.message for test in verdict.tests)
    text = everything_in(tmp_path)
    assert HIDDEN not in text
    assert ("shown-marker" in text) == (feedback == "messages")  # which the policy was shown
    assert "SOME_NAME" in text


async def test_a_large_output_does_not_enter_it(provider: SandboxProvider, tmp_path: Path) -> None:
    command = "head -c 50000000 /dev/zero | tr '\\0' x; head -c 50000000 /dev/zero > big"
    async with Episode.start(pytest_task(), provider, record=tmp_path) as episode:
        await episode.turn([ToolCall("bash", {"command": command})])
        await episode.finish()
    found = recording_in(tmp_path)
    raw = found.turns[0].results[0].raw
    assert raw is not None
    assert raw.output is not None
    assert (len(raw.output.bytes), raw.output_bytes) == (64 * 1024, 50_000_000)
    assert [(one.path, one.size) for one in found.turns[0].diff] == [("big", 50_000_000)]
    assert found.left is not None
    assert "over 16777216 bytes" in found.left.missing
    assert found.path.stat().st_size < 400_000


async def test_text_that_is_no_unicode(provider: SandboxProvider, tmp_path: Path) -> None:
    call = ToolCall("bash", {"command": "echo \ud800"})
    async with Episode.start(pytest_task(), provider, record=tmp_path) as episode:
        await episode.turn(
            [call, ToolCall("bash", {"command": r"printf '\xff\0'; touch $'\xfe'"})], said=Said(text="\udfff")
        )
    turn = recording_in(tmp_path).turns[0]
    assert (turn.said.text, turn.results[0].arguments) == ("\udfff", call.arguments)
    raw = turn.results[1].raw
    assert raw is not None
    assert raw.output is not None
    assert raw.output.bytes == b"\xff\0"
    assert [change.path for change in turn.diff] == ["\udcfe"]


async def test_every_line_is_one_line_of_ascii(provider: SandboxProvider, tmp_path: Path) -> None:
    """So that a line is what `tail -f`, `grep` and `jq` take it for."""
    async with Episode.start(pytest_task(), provider, record=tmp_path) as episode:
        await episode.turn([ToolCall("bash", {"command": "printf 'a\\u2028b\\n\\u00e9'"})])
    lines = recording_in(tmp_path).path.read_bytes().split(b"\n")
    assert lines.pop() == b""
    assert all(line.isascii() and json.loads(line)["kind"] for line in lines)


async def test_the_clock(provider: SandboxProvider, tmp_path: Path) -> None:
    async with Episode.start(pytest_task(), provider, record=tmp_path) as episode:
        for _ in range(2):
            await anyio.sleep(0.2)
            await episode.turn([ToolCall("bash", {"command": "sleep 0.3"})])
    found = recording_in(tmp_path)
    first, second = found.turns
    assert all(turn.waited >= 0.2 and turn.seconds >= 0.3 for turn in found.turns)
    assert second.at >= first.at + first.seconds + second.waited - 0.001
    assert found.end is not None
    assert found.end.seconds >= second.at + second.seconds - 0.001
