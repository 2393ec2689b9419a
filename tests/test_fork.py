"""Forks: an episode that goes on from a turn of another."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from copy import copy
from pathlib import Path
from typing import Any

import anyio
import pytest
from env_support import double_task

from codeenv.episode import Episode, EpisodeSettings
from codeenv.policies import plan
from codeenv.record import Recording, Recordings
from codeenv.sandbox.api import Sandbox, SandboxError, SandboxLost, SandboxProvider, SandboxSpec
from codeenv.sources import load_tasks
from codeenv.task import Answer, Task
from codeenv.tools import ToolCall
from tests.episodes import Watching, destroy, is_alive
from tests.wrapping import Wrapping

pytestmark = pytest.mark.anyio

SHELL = "mkdir -p a/.b && cd a && export WHERE='a b' && ln -s ../x y && printf x > .b/c && chmod 700 .b/c"


def bash(command: str) -> list[ToolCall]:
    return [ToolCall("bash", {"command": command})]


@asynccontextmanager
async def opened(
    provider: SandboxProvider, task: Task | None = None, record: Path | None = None, **settings: Any
) -> AsyncIterator[Episode]:
    rules = EpisodeSettings(**{"max_turns": 0, "command_timeout": 20.0, **settings})
    folder = Recordings(record) if record else None
    episode = await Episode.open(task or double_task(), provider, rules, record=folder)
    try:
        yield episode
    finally:
        await episode.close()


@asynccontextmanager
async def closing(episode: Episode) -> AsyncIterator[Episode]:
    try:
        yield episode
    finally:
        await episode.close()


async def state(episode: Episode) -> Mapping[str, Any]:
    entries = {
        entry.path: (entry.kind, entry.mode, entry.data) for entry in await episode.sandbox.export() if entry.path
    }
    assert episode._toolbox is not None
    counts = {key: copy(value) for key, value in vars(episode.tally).items() if not key.endswith("_seconds")}
    return {"entries": entries, "shell": episode._toolbox.shell.state, "tally": counts, "over": episode.over}


@pytest.mark.parametrize("name", ["bobbin-machine", "catalog-query", "drain-pool"])
async def test_a_fork_is_where_a_replay_to_that_turn_is(name: str, provider: SandboxProvider) -> None:
    (task,) = load_tasks(f"starter/{name}")
    tools = ("bash", "read_file", "write_file", "edit_file")
    turns = [bash(SHELL), *(calls for calls in plan("oracle", task, tools=tools) if calls), bash("cd .. && pwd > z")]
    async with opened(provider, task) as episode:
        seen = [await state(episode)]
        for calls in turns:
            await episode.turn(calls)
            seen.append(await state(episode))
        for k in (0, 1, len(turns) - 1, len(turns)):
            for how in ("replay", "snapshot") if k == len(turns) else ("replay",):
                async with closing(await episode.fork(k, how=how)) as fork:
                    assert await state(fork) == seen[k], (k, how)
        async with closing(await episode.fork()) as fork:
            await fork.turn(bash("rm -rf * && unset WHERE && cd / && export NEW=1"))
        assert await state(episode) == seen[-1]


async def test_a_fork_goes_on_by_itself_and_has_the_rest_of_the_turns(provider: SandboxProvider) -> None:
    async with opened(provider, max_turns=3, max_test_runs=1) as episode:
        assert (await episode.turn([ToolCall("run_tests", {})]))[0].failed
        await episode.turn(bash("echo 'print(int(input()) * 2)' > main.py"))
        for how in ("replay", "snapshot"):
            async with closing(await episode.fork(how=how)) as fork:
                assert (fork.tally.turns, fork.tally.test_runs, fork.tally.grade_seconds) == (2, 1, 0.0)
                assert "all 1 runs" in (await fork.turn([ToolCall("run_tests", {})]))[0].text
                assert fork.over == "turns"
                assert (await fork.finish()).reward == 1.0
        assert not episode.over
        await episode.turn([ToolCall("submit", {})])
        assert (await episode.finish()).outcome == "solved"
        # Closed by now, and as far as it was played it can be forked still.
        async with closing(await episode.fork(1)) as fork:
            assert (await fork.finish()).outcome == "failed"
        async with closing(await episode.fork()) as fork:
            assert fork.over == "submitted"


async def test_an_answer_has_no_box_and_is_forked_all_the_same(provider: SandboxProvider) -> None:
    task = double_task(answer=Answer(path="main.py"))
    async with opened(provider, task, protocol="answer", max_turns=1) as episode:
        await episode.step("```python\nprint(int(input()) * 2)\n```")
        async with closing(await episode.fork()) as fork:
            assert (await fork.finish()).outcome == "solved"
        async with closing(await episode.fork(0)) as fork:
            await fork.step("I do not know.")
            assert (await fork.finish()).outcome == "failed"
        with pytest.raises(ValueError, match="there is no box"):
            await episode.fork(how="snapshot")


async def test_a_fork_of_a_fork(provider: SandboxProvider) -> None:
    async with opened(provider) as episode:
        await episode.turn(bash("echo 1 > one"))
        async with closing(await episode.fork()) as fork:
            await fork.turn(bash("echo 2 > two"))
            for turn, files in ((2, {"main.py", "one", "two"}), (1, {"main.py", "one"})):
                async with closing(await fork.fork(turn)) as other:
                    assert set((await other.sandbox.export()).files) == files


async def test_what_a_snapshot_would_leave_behind_is_replayed(provider: SandboxProvider) -> None:
    async with opened(provider) as episode:
        await episode.turn(bash("seq 100000; echo $$ > pid"))
        await episode.turn(bash("mkfifo pipe; date +%N > nanoseconds"))
        async with closing(await episode.fork()) as fork:
            assert (
                b"exists"
                in (await fork.sandbox.exec("test -p pipe && test -s /tmp/output-1.txt && echo exists")).stdout
            )
        await episode.turn(bash("rm pipe"))
        async with closing(await episode.fork(how="snapshot")) as fork:
            assert await fork.sandbox.read_file("nanoseconds") == await episode.sandbox.read_file("nanoseconds")


@pytest.mark.parametrize(
    ("turn", "how", "said"),
    [(-1, "", "must be 0 to 1"), (2, "", "must be 0 to 1"), (0, "snapshot", "it is turn 1 now")],
    ids=["negative", "not-played", "earlier-snapshot"],
)
async def test_what_cannot_be_forked_says_so(turn: int, how: Any, said: str, provider: SandboxProvider) -> None:
    async with opened(provider) as episode:
        await episode.turn(bash("true"))
        with pytest.raises(ValueError, match=said):
            await episode.fork(turn, how=how)


async def test_a_box_that_was_lost_is_forked_by_replay(provider: SandboxProvider) -> None:
    async with opened(provider) as episode:
        await episode.turn(bash("echo 1 > one"))
        await destroy(episode.sandbox)
        with pytest.raises(SandboxLost):
            await episode.turn(bash("echo 2 > two"))
        async with closing(await episode.fork()) as fork:
            assert set((await fork.sandbox.export()).files) == {"main.py", "one"}
            assert fork.tally.turns == 2


async def test_a_call_that_was_cancelled_is_left_out(provider: SandboxProvider) -> None:
    async with opened(provider) as episode:
        async with anyio.create_task_group() as group:
            group.start_soon(episode.turn, [*bash("echo 1 > one"), *bash("touch begun; sleep 60")])
            with anyio.fail_after(30):
                while "begun" not in {entry.path for entry in await episode.sandbox.list_files()}:
                    await anyio.sleep(0.02)
            group.cancel_scope.cancel()
        with anyio.move_on_after(0.3):
            await episode.turn(bash("sleep 60"))
        await episode.turn(bash("echo 3 > three"))
        async with closing(await episode.fork(3, how="replay")) as fork:
            assert set((await fork.sandbox.export()).files) == {"main.py", "one", "three"}
            assert fork.tally.turns == 3


class Losing(Wrapping):
    """The boxes after the first are lost when something is run in them, or get nothing in."""

    def __init__(self, inner: SandboxProvider) -> None:
        super().__init__(inner)
        self.boxes: list[Sandbox] = []

    async def open(self, spec: SandboxSpec) -> Sandbox:
        box = await self.inner.open(spec)
        self.boxes.append(box)
        if len(self.boxes) > 1:
            await destroy(box)
        return box


@pytest.mark.parametrize("how", ["snapshot", "replay"])
async def test_a_fault_while_forking_leaves_no_box(how: Any, provider: SandboxProvider) -> None:
    losing = Losing(provider)
    async with opened(losing) as episode:
        await episode.turn(bash("true"))
        with pytest.raises(SandboxError):
            await episode.fork(how=how)
        assert [is_alive(box) for box in losing.boxes] == [True, False]
        assert "here" in (await episode.turn(bash("echo here")))[0].text


async def test_a_cancelled_fork_leaves_no_box(provider: SandboxProvider) -> None:
    watching = Watching(provider)
    async with opened(watching) as episode:
        await episode.turn(bash("sleep 0.6"))
        with anyio.move_on_after(0.3):
            await episode.fork(how="replay")
        assert watching.alive == 1


@pytest.mark.parametrize("how", ["snapshot", "replay"])
async def test_the_recording_of_a_fork_begins_with_the_turns_of_then(
    how: Any, provider: SandboxProvider, tmp_path: Path
) -> None:
    async with opened(provider, record=tmp_path) as episode:
        await episode.turn(bash("echo 1 > one"))
        await episode.turn([ToolCall("run_tests", {})])
        async with closing(await episode.fork(how=how)) as fork:
            await fork.turn(bash("echo 2 > two"))
            await fork.finish()
        assert episode.recorder is not None
        assert fork.recorder is not None
        parent, found = Recording.load(episode.recorder.path), Recording.load(fork.recorder.path)
    assert found.opening.fork is not None
    assert (found.opening.fork.id, found.opening.fork.turn) == (parent.opening.id, 2)
    assert [[c.path for c in turn.diff] for turn in found.turns] == [["one"], [], ["two"]]
    assert [result.text for turn in found.turns[:2] for result in turn.results] == [
        result.text for turn in parent.turns for result in turn.results
    ]
    assert found.end is not None
    assert found.end.outcome == "failed"
    assert found.left is not None
    assert [file.path for file in found.left.files] == ["one", "two"]
