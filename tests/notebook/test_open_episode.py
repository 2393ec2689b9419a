"""Episodes by hand, in this loop."""

from __future__ import annotations

import asyncio
import gc
import os
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest

import codeenv
from codeenv.notebook import OpenEpisode
from codeenv.record import Recording, RecordingError
from codeenv.sandbox.conformance.support import on_host
from tests.conftest import provider_or_skip
from tests.episodes import BAD, GOOD, Watching, pytest_task

pytestmark = pytest.mark.anyio
BOTH_LOOPS = pytest.mark.parametrize(
    "anyio_backend", ["asyncio", ("asyncio", {"use_uvloop": True})], ids=["asyncio", "uvloop"]
)
FIX = ("abs(a) + abs(b)", "a + b")


@pytest.fixture
async def ep() -> AsyncIterator[OpenEpisode]:
    provider_or_skip("bubblewrap")
    async with await codeenv.open_episode(pytest_task()) as opened:
        yield opened


def kept() -> set[str]:
    return {name for name in os.listdir(tempfile.gettempdir()) if name.startswith("codeenv-episode-")}


async def test_an_episode_by_hand(ep: OpenEpisode) -> None:
    assert (await ep.bash("cd / && export A=1; echo $PWD")).text.endswith("/")
    assert "1" in (await ep.bash("echo $A; cd -")).text
    assert "abs" in (await ep.read("adding.py", 2, 1)).text
    verdict = await ep.run_tests()
    assert (verdict.solved, verdict.tests_passed, verdict.tests_total) == (False, 1, 2)
    assert "3" in next(test.message for test in verdict.tests if not test.passed)  # why, though not the source
    assert not (await ep.edit("adding.py", *FIX)).failed
    assert ep.files == {"adding.py": GOOD}
    assert (await ep.finish()).solved
    assert (await ep.finish()) == ep.verdict
    assert ep.over == "stopped"


async def test_dot_files_that_are_not_followed_are_no_change() -> None:
    async with await codeenv.open_episode(pytest_task(files={".config": "x", "a.py": "y"})) as opened:
        await opened.bash("true")
        assert repr(opened.diff()) == "no changes"


async def test_files_and_diff_are_those_after_the_last_turn(ep: OpenEpisode) -> None:
    assert (repr(ep.diff()), len(ep.diff())) == ("no changes", 0)
    await ep.edit("adding.py", *FIX)
    await ep.bash("printf 'a\\xff' > raw; ln -s raw link; head -c 1300000 /dev/zero > large; printf '\\0' > nul")
    assert ep.files == {"adding.py": GOOD, "large": None, "link": "raw", "nul": "\0", "raw": b"a\xff"}
    assert repr(ep.files).splitlines()[:3] == ["adding.py  32 bytes", "large      1300000 bytes", "link       -> raw"]
    text = repr(ep.diff())
    assert "-    return abs(a) + abs(b)\n+    return a + b\n" in text
    assert "added nul (binary, 1 bytes, mode 644)" in text
    assert [change.path for change in ep.diff()] == ["adding.py", "large", "link", "nul", "raw"]


async def test_what_it_shows_of_itself(ep: OpenEpisode) -> None:
    await ep.bash("false")
    await ep.write("a.txt", "A\n")
    await ep.edit("a.txt", "none", "")
    await ep.run_tests()
    await ep.bash(f"echo {'long ' * 90}\nls")
    shown = repr(ep).splitlines()
    assert shown[:5] == [
        "adding on bubblewrap: open",
        "  1  bash false (exit code 1)",
        "  2  write_file a.txt",
        "  3  edit_file a.txt (failed)",
        "  4  run_tests (1/2 tests)",
    ]
    assert shown[5].endswith("...")
    await ep.finish()
    assert repr(ep).startswith("adding on bubblewrap: failed, reward 0")


@BOTH_LOOPS
async def test_a_call_that_is_cancelled_is_killed_and_the_next_one_works(ep: OpenEpisode) -> None:
    await ep.bash("cd /tmp")
    call = asyncio.create_task(ep.bash("sleep 988001"))
    while not on_host("988001"):
        await anyio.sleep(0.01)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    with anyio.fail_after(10):
        while on_host("988001"):
            await anyio.sleep(0.01)
    assert (await ep.bash("pwd")).text.endswith("/tmp")
    assert [turn.error for turn in ep.recording.turns] == ["", "interrupted", ""]


async def test_calls_at_a_time_wait_for_each_other(ep: OpenEpisode) -> None:
    seen = await asyncio.gather(*(ep.bash(f"echo {n}; sleep 0.05") for n in range(3)))
    assert [observation.text[-1] for observation in seen] == ["0", "1", "2"]
    assert len(ep.recording.turns) == 3


@pytest.mark.parametrize("awaited", [False, True], ids=["called", "awaited"])
async def test_close_closes_at_once(awaited: bool) -> None:
    watching = Watching(provider_or_skip("bubblewrap"))
    ep = await codeenv.open_episode(pytest_task(), sandbox=watching)
    await ep.bash("(setsid sleep 988002 &)")
    closed = ep.close()
    assert (watching.alive, on_host("988002")) == (0, [])
    if awaited:
        assert await closed is None
    ep.close()
    assert (ep.over, len(ep.recording.turns)) == ("stopped", 1)
    with pytest.raises(RuntimeError, match="over"):
        await ep.bash("ls")


async def test_what_nobody_holds_is_closed() -> None:
    watching = Watching(provider_or_skip("bubblewrap"))
    ep = await codeenv.open_episode(pytest_task(), sandbox=watching)
    await ep.bash("true")
    folder = ep.path.parent
    assert (watching.alive, folder.is_dir()) == (1, True)
    del ep
    gc.collect()
    with anyio.fail_after(10):
        while watching.alive or folder.exists():
            await anyio.sleep(0.01)


def test_what_is_open_when_the_interpreter_ends_is_closed(tmp_path: Path) -> None:
    provider_or_skip("bubblewrap")
    code = """
import asyncio, codeenv
async def main():
    ep = await codeenv.open_episode("starter/tip-jar-payout", record="record")
    await ep.bash("(setsid sleep 988003 &)")
    print("open", flush=True)
    return ep
ep = asyncio.run(main())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "open\n"), done.stderr
    assert on_host("988003") == []
    (path,) = (tmp_path / "record").glob("tip-jar-payout-*.jsonl")
    recording = Recording.load(path)
    assert recording.end is not None
    assert recording.opening.task.source == "starter/tip-jar-payout"


async def test_a_fork_of_the_process_has_no_episodes(ep: OpenEpisode) -> None:
    child = os.fork()
    if child == 0:
        try:
            ep.close()
        except RuntimeError as error:
            os._exit(7 if "fork" in str(error) else 8)
        os._exit(9)
    _, status = await anyio.to_thread.run_sync(os.waitpid, child, 0)
    assert os.waitstatus_to_exitcode(status) == 7
    assert not (await ep.bash("true")).failed


async def test_a_fork_goes_on_by_itself(ep: OpenEpisode) -> None:
    await ep.bash("export A=1; cd /tmp")
    await ep.edit("adding.py", *FIX)
    first, second = await ep.fork(turn=1), await ep.fork()
    assert (first.files["adding.py"], second.files["adding.py"]) == (BAD, GOOD)
    assert (await first.bash("echo $A $PWD")).text == (await second.bash("echo $A $PWD")).text == "1 /tmp"
    assert (await second.finish()).solved
    assert [len(each.recording.turns) for each in (ep, first, second)] == [2, 2, 3]
    assert repr(await (await first.fork()).fork(0)) == "adding on bubblewrap: open"
    with pytest.raises(ValueError, match="0 to 2"):
        await ep.fork(turn=3)
    first.close()
    second.close()


async def test_a_fork_keeps_what_it_recorded_when_the_other_has_gone() -> None:
    provider_or_skip("bubblewrap")
    ep = await codeenv.open_episode(pytest_task())
    fork, old = await ep.fork(), ep.path
    del ep
    gc.collect()
    await fork.bash("true")
    assert (len(fork.recording.turns), old.parent) == (1, fork.path.parent)
    folder = old.parent
    del fork
    gc.collect()
    with anyio.fail_after(10):
        while folder.exists():
            await anyio.sleep(0.01)


async def test_goes_on_from_a_recording(tmp_path: Path) -> None:
    provider_or_skip("bubblewrap")
    async with await codeenv.open_episode(
        "starter/knot-numerals", record=tmp_path, feedback="counts", max_turns=5
    ) as ep:
        await ep.bash("export A=1; cd /tmp")
        await ep.write("x.txt", "X\n")
        await ep.step(codeenv.ToolCall("submit"))
        path = ep.path
    for what, turn, over in ((path, None, ""), (Recording.load(path), 1, ""), (str(path), 3, "submitted")):
        async with await codeenv.open_episode(what, turn=turn) as again:
            assert (again.over, len(again.recording.turns)) == (over, 2 if turn is None else turn)
            assert ("x.txt" in again.files) == (turn != 1)
            assert (again.settings.max_turns, again.settings.feedback) == (0, "messages")
            assert again.recording.opening.fork is not None
            if not over:
                assert (await again.bash("echo $A $PWD")).text == "1 /tmp"
    async with await codeenv.open_episode(path, turn=0, max_turns=9) as again:
        assert again.settings.max_turns == 9
    path.write_text(path.read_text()[:-200] + "\n{")
    with pytest.raises(RecordingError, match=r"line \d+"):
        await codeenv.open_episode(path)


@pytest.mark.parametrize(
    ("what", "settings", "error", "says"),
    [
        ("starter", {}, ValueError, r"35 tasks \(async-token-limiter, .*'tasks': \['async-token-limiter'\]"),
        ("starter/none", {}, FileNotFoundError, "starter/none"),
        ("starter/tip-jar-payout", {"max_turn": 3}, ValueError, "max_turn"),
        ("starter/tip-jar-payout", {"sandbox": "docker"}, ValueError, "bubblewrap"),
        ("starter/tip-jar-payout", {"turn": 1}, ValueError, "go with a recording"),
    ],
    ids=["several", "no-such", "no-setting", "no-sandbox", "no-recording"],
)
async def test_what_cannot_be_opened_says_why(
    what: Any, settings: dict[str, Any], error: type[Exception], says: str
) -> None:
    before = kept()
    with pytest.raises(error, match=says):
        await codeenv.open_episode(what, **settings)
    assert kept() <= before


async def test_one_of_a_set() -> None:
    provider_or_skip("bubblewrap")
    async with await codeenv.open_episode({"dataset": "starter", "tasks": ["knot-numerals"]}, max_test_runs=1) as ep:
        assert ep.task.id == "knot-numerals"
        await ep.run_tests()
        with pytest.raises(ValueError, match="all 1 runs"):
            await ep.run_tests()
