"""A live process and the stream to it."""

from __future__ import annotations

import random

import anyio

from codeenv.sandbox.api import ExecResult, Process, Sandbox, SandboxLost, SandboxProvider, SandboxSpec
from codeenv.sandbox.conformance.support import LONG, SESSION, failure, in_time, marker, settles


async def _receive(process: Process, size: int) -> bytes:
    """At least `size` bytes, or what came before the end."""
    data = b""
    while len(data) < size and (piece := await process.receive()):
        data += piece
    return data


async def _everything(process: Process) -> bytes:
    data = b""
    while piece := await process.receive():
        data += piece
    return data


async def check_a_process_talks_both_ways(box: Sandbox) -> None:
    """What is sent is the process's stdin, what it prints is received, and its end is told."""
    with in_time(10):
        async with box.open_process("read line; echo got $line; echo oops >&2; exit 3") as process:
            await process.send(b"hello\n")
            assert await _everything(process) == b"got hello\n"
            ended = await process.wait()
            assert (ended.exit_code, ended.stdout, ended.stderr, ended.timed_out) == (3, b"", b"oops\n", False), ended
            assert await process.wait() == ended
            assert await process.receive() == b""


async def check_a_process_is_a_conversation(box: Sandbox) -> None:
    """Messages come back as they are sent, each before the next, beside other calls of the box."""
    with in_time(20):
        async with box.open_process(["cat"]) as process:
            for number in range(20):
                message = b"message %d \xff\x00\n" % number
                await process.send(message)
                assert await _receive(process, len(message)) == message
                if number % 7 == 0:
                    assert (await box.exec("echo beside")).stdout == b"beside\n"


async def check_a_megabyte_is_echoed(box: Sandbox) -> None:
    """A megabyte of any bytes goes through a process and comes back exactly, while both sides write."""
    data = random.Random(4).randbytes(1_048_577)
    with in_time(20):
        async with box.open_process(["cat"]) as process, anyio.create_task_group() as group:
            group.start_soon(process.send, data)
            back = await _receive(process, len(data))
            assert back == data, len(back)


async def check_one_receive_is_bounded(box: Sandbox) -> None:
    """One `receive` holds at most 256 KiB of what may come without an end."""
    with in_time(10):
        async with box.open_process("yes") as process:
            await anyio.sleep(0.1)
            for _ in range(5):
                assert 0 < len(await process.receive()) <= 262_144


async def check_a_process_has_its_directory_and_variables(box: Sandbox) -> None:
    """`cwd` and `env` are those of `exec`, and an argv is taken literally."""
    await box.write_file("sub/f", b"")
    with in_time():
        async with box.open_process(
            ["sh", "-c", 'ls; printf %s "$COLOUR$0"', "$HOME"], cwd="sub", env={"COLOUR": "r"}
        ) as one:
            assert await _everything(one) == b"f\nr$HOME"


async def check_a_process_that_cannot_be_started(box: Sandbox) -> None:
    """A missing directory is FileNotFoundError, an impossible argv ValueError, what is not found exit code 127."""

    async def opened(command: str | list[str], cwd: str) -> None:
        async with box.open_process(command, cwd=cwd):
            pass

    await failure(opened("true", "missing"), FileNotFoundError)
    await failure(opened([], "."), ValueError)
    await failure(opened(["a\0b"], "."), ValueError)
    with in_time():
        async with box.open_process(["no-such-command-here"]) as process:
            ended = await process.wait()
            assert (ended.exit_code, bool(ended.stderr)) == (127, True), ended
            assert await process.receive() == b""


async def check_sending_to_one_that_has_ended(box: Sandbox) -> None:
    """Sending to a process that reads no more is BrokenPipeError, at the latest after a few sends."""

    async def send_on(process: Process) -> None:
        while True:
            await process.send(b"x" * 100_000)
            await anyio.sleep(0.01)

    with in_time():
        async with box.open_process("exit 0") as process:
            await process.wait()
            await failure(send_on(process), BrokenPipeError)


async def check_kill_takes_the_whole_tree(box: Sandbox) -> None:
    """`kill` kills the process and all that it started, `wait` tells of 137, and a second `kill` does nothing."""
    argument = marker()
    command = f"{SESSION} sleep {argument} & sleep {argument} & echo started; wait"
    with in_time(10):
        async with box.open_process(command) as process:
            assert await _receive(process, 8) == b"started\n"
            await settles(box, argument, 2)
            await process.kill()
            assert (await process.wait()).exit_code == 137
            assert await process.receive() == b""
            await settles(box, argument, 0)
            await process.kill()


async def check_leaving_the_block_kills(box: Sandbox) -> None:
    """At the end of the block, and also when that is cancelled, the process is killed with all that it started."""
    for cancelled in (False, True):
        argument = marker()
        with anyio.CancelScope() as scope:
            async with box.open_process(f"{SESSION} sleep {argument} & echo started; sleep {argument}") as process:
                assert await _receive(process, 8) == b"started\n"
                await settles(box, argument, 2)
                if cancelled:
                    scope.cancel()
                    await process.receive()
        await settles(box, argument, 0)
    assert (await box.exec("echo fine")).stdout == b"fine\n"


async def check_an_opening_may_be_cancelled_at_any_moment(box: Sandbox) -> None:
    """An `open_process` that is cancelled at any moment of its start leaves nothing."""
    argument = marker()
    for step in range(10):
        with anyio.move_on_after(0.001 * step):
            async with box.open_process(["sleep", argument]):
                pass
    await settles(box, argument, 0)


async def check_wait_does_not_wait_for_a_child(box: Sandbox) -> None:
    """`wait` returns when the main process ends; the stream ends when the last that holds it has closed it."""
    with in_time(10):
        async with box.open_process(
            "(until [ -e go ]; do sleep 0.02; done; echo child) & echo main; exit 4"
        ) as process:
            assert (await process.wait()).exit_code == 4
            await box.write_file("go", b"")
            assert await _everything(process) == b"main\nchild\n"


async def check_processes_side_by_side_keep_apart(box: Sandbox) -> None:
    """Two processes have a stream each."""
    with in_time(10):
        async with box.open_process(["cat"]) as one, box.open_process(["cat"]) as two:
            await one.send(b"one")
            await two.send(b"two")
            assert await _receive(two, 3) == b"two"
            assert await _receive(one, 3) == b"one"


async def check_several_may_wait(box: Sandbox) -> None:
    """Several may wait for one process, also while another talks to it; a wait may be cancelled."""
    seen: list[ExecResult] = []

    async def wait(process: Process) -> None:
        seen.append(await process.wait())

    with in_time(10):
        async with box.open_process("read x; exit 6") as process:
            with anyio.move_on_after(0.05):
                await process.wait()
            async with anyio.create_task_group() as group:
                group.start_soon(wait, process)
                group.start_soon(wait, process)
                await process.send(b"x\n")
    assert [result.exit_code for result in seen] == [6, 6]


async def check_a_process_dies_with_its_box(provider: SandboxProvider, spec: SandboxSpec) -> None:
    """When the box is closed, the stream ends, and waiting for the process is SandboxLost."""
    box = await provider.open(spec)
    try:
        with in_time(20):
            async with box.open_process(["sleep", str(LONG)]) as process:
                await box.close()
                assert await process.receive() == b""
                await failure(process.wait(), SandboxLost)
    finally:
        await box.close()
