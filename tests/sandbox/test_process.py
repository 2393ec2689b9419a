"""A live process in a box: what goes in and out, how it ends, and that nothing of it stays."""

from __future__ import annotations

import os
import resource
import signal
from pathlib import Path

import anyio
import pytest

from codeenv.sandbox.api import Sandbox, SandboxLost, SandboxProvider, SandboxSpec
from codeenv.sandbox.conformance.support import marker, on_host

pytestmark = pytest.mark.anyio
BOTH_LOOPS = pytest.mark.parametrize(
    "anyio_backend", ["asyncio", ("asyncio", {"use_uvloop": True})], ids=["asyncio", "uvloop"]
)
ECHO = ["cat"]


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


async def everything(process) -> bytes:
    data = b""
    while piece := await process.receive():
        data += piece
    return data


async def gone(argument: str) -> bool:
    with anyio.move_on_after(5):
        while on_host(argument):
            await anyio.sleep(0.02)
    for pid in on_host(argument):
        print(Path(f"/proc/{pid}/status").read_text())  # noqa: ASYNC240 - for whoever reads why it failed
    return not on_host(argument)


@BOTH_LOOPS
async def test_bytes_go_both_ways_and_the_end_is_told(any_provider: SandboxProvider) -> None:
    async with any_provider.create(SandboxSpec()) as box:
        script = "read line; echo got $line; echo oops >&2; exit 3"
        async with box.open_process(script) as process:
            await process.send(b"hello\n")
            assert await everything(process) == b"got hello\n"
            ended = await process.wait()
            assert (ended.exit_code, ended.stdout, ended.stderr, ended.timed_out) == (3, b"", b"oops\n", False)
            assert (await process.wait()) == ended


@BOTH_LOOPS
async def test_many_messages_beside_other_calls(any_provider: SandboxProvider) -> None:
    """Nobody reads the box's control socket while we talk to the process, and then somebody does."""
    async with any_provider.create(SandboxSpec()) as box, box.open_process(ECHO) as process:
        async with anyio.create_task_group() as group:
            group.start_soon(process.wait)
            for number in range(50):
                await process.send(b"%d" % number)
                assert await process.receive() == b"%d" % number
                if number % 10 == 0:
                    assert (await box.exec(f"echo {number}")).stdout == b"%d\n" % number
            group.cancel_scope.cancel()
        with anyio.fail_after(5):
            assert (await box.exec("echo after")).stdout == b"after\n"


@pytest.mark.parametrize(
    ("command", "cwd", "error"),
    [
        pytest.param("true", "missing", FileNotFoundError, id="no-directory"),
        pytest.param([], ".", ValueError, id="empty"),
        pytest.param(["a\0b"], ".", ValueError, id="nul"),
    ],
)
async def test_what_cannot_be_started(any_box: Sandbox, command, cwd: str, error: type[Exception]) -> None:
    before = descriptors()
    with pytest.raises(error):
        async with any_box.open_process(command, cwd=cwd):
            pass
    assert descriptors() == before


async def test_a_command_that_is_not_there(any_box: Sandbox) -> None:
    async with any_box.open_process(["no-such-command"]) as process:
        ended = await process.wait()
        assert ended.exit_code == 127
        assert b"cannot run 'no-such-command'" in ended.stderr
        assert await process.receive() == b""
        with pytest.raises(BrokenPipeError):
            await process.send(b"x")


@BOTH_LOOPS
async def test_leaving_the_block_kills_it(any_provider: SandboxProvider) -> None:
    seconds = marker()
    async with any_provider.create(SandboxSpec()) as box:
        async with box.open_process(ECHO):
            pass  # uvloop keeps a descriptor of its own from its first stream on
        before = descriptors()
        for cancelled in (False, True):
            with anyio.CancelScope() as scope:
                async with box.open_process(f"setsid sleep {seconds} & echo started; sleep {seconds}") as process:
                    assert await process.receive() == b"started\n"
                    if cancelled:
                        scope.cancel()
                        await process.receive()
            assert await gone(seconds)
        assert descriptors() == before
        assert (await box.exec("echo well")).stdout == b"well\n"


@BOTH_LOOPS
async def test_cancelled_at_any_moment_of_its_start_nothing_stays(any_provider: SandboxProvider) -> None:
    seconds = marker()
    async with any_provider.create(SandboxSpec()) as box:
        async with box.open_process(ECHO):
            pass
        before = descriptors()
        for step in range(12):
            with anyio.move_on_after(step * 0.0005):
                async with box.open_process(["sleep", seconds]):
                    pass
        assert (await box.exec("true")).exit_code == 0  # all frames of theirs have been read
        assert await gone(seconds)
        assert descriptors() == before


async def test_it_dies_with_its_box(any_provider: SandboxProvider) -> None:
    seconds = marker()
    before = descriptors()
    box = await any_provider.open(SandboxSpec())
    async with box.open_process(["sleep", seconds]) as process:
        await box.close()
        assert await process.receive() == b""
        with pytest.raises(SandboxLost):
            await process.wait()
        assert await gone(seconds)
    assert descriptors() == before


async def test_a_lost_box_is_told_to_who_waits(provider: SandboxProvider) -> None:
    async with provider.create(SandboxSpec()) as box, box.open_process(ECHO) as process:
        async with anyio.create_task_group() as group:

            async def wait() -> None:
                with pytest.raises(SandboxLost):
                    await process.wait()

            group.start_soon(wait)
            await anyio.sleep(0.05)
            os.kill(box.pid, signal.SIGKILL)  # type: ignore[attr-defined]
        assert await process.receive() == b""


async def test_a_process_holds_only_its_own_descriptors(any_box: Sandbox) -> None:
    async with any_box.open_process(ECHO), any_box.open_process("ls /proc/self/fd; echo .") as process:
        assert set((await everything(process)).split()) <= {b"0", b"1", b"2", b"3", b"."}


async def test_when_we_have_no_descriptor_left_it_says_so(any_box: Sandbox) -> None:
    held = []
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors() + 8, hard))
    try:
        try:
            while True:
                held.append(os.dup(0))
        except OSError:
            pass
        with pytest.raises(OSError, match="Too many open files"):
            async with any_box.open_process(ECHO):
                pass
    finally:
        for descriptor in held:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    async with any_box.open_process(ECHO) as process:
        await process.send(b"again")
        assert await process.receive() == b"again"
