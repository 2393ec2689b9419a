"""Many calls on one box at once, and calls that are cancelled."""

from __future__ import annotations

import anyio

from codeenv.sandbox.api import Sandbox
from codeenv.sandbox.conformance.support import LONG, SESSION, in_time, marker, settles


async def check_commands_at_once_keep_their_outputs_apart(box: Sandbox) -> None:
    """Twenty commands at once each get their own input, output and exit code."""

    async def one(number: int) -> None:
        text = f"{number}-".encode() * 5_000
        result = await box.exec(f"sleep 0.0$((RANDOM % 9)); cat; exit {number}", stdin=text)
        assert (result.stdout, result.exit_code) == (text, number)

    with in_time(20):
        async with anyio.create_task_group() as group:
            for number in range(20):
                group.start_soon(one, number)


async def check_files_at_once_are_kept_apart(box: Sandbox) -> None:
    """Twenty files may be written and read at once."""

    async def one(number: int) -> None:
        data = f"{number}-".encode() * 20_000
        await box.write_file(f"file {number}", data)
        assert await box.read_file(f"file {number}") == data

    with in_time(20):
        async with anyio.create_task_group() as group:
            for number in range(20):
                group.start_soon(one, number)
    assert len(await box.list_files()) == 20


async def check_a_slow_command_does_not_hold_up_a_quick_one(box: Sandbox) -> None:
    """While some commands take long, others return at once."""
    async with anyio.create_task_group() as group:
        for _ in range(8):
            group.start_soon(box.exec, f"sleep {LONG}")
        await anyio.sleep(0.1)
        with in_time():
            assert (await box.exec("echo quick")).stdout == b"quick\n"
            await box.write_file("f", b"x")
        group.cancel_scope.cancel()


async def check_commands_see_each_others_files(box: Sandbox) -> None:
    """Commands that run at once run in one machine: one waits for the other's file."""
    async with anyio.create_task_group() as group:
        group.start_soon(box.exec, "until [ -e ping ]; do sleep 0.02; done; touch pong")
        with in_time():
            result = await box.exec("touch ping; until [ -e pong ]; do sleep 0.02; done; echo met")
            assert result.stdout == b"met\n", result


async def check_a_cancelled_command_dies(box: Sandbox) -> None:
    """A cancelled call kills the command and all that it started, and the box goes on."""
    argument = marker()
    async with anyio.create_task_group() as group:
        group.start_soon(box.exec, f"{SESSION} sleep {argument} & sleep {argument} & touch up; wait")
        with in_time():
            await box.exec("until [ -e up ]; do sleep 0.02; done")
        await settles(box, argument, 2)
        group.cancel_scope.cancel()
    await settles(box, argument, 0)
    assert (await box.exec("echo fine")).stdout == b"fine\n"


async def check_a_cancelled_command_leaves_others_alone(box: Sandbox) -> None:
    """Commands beside one that is cancelled run to their end."""
    results: list[bytes] = []

    async def other(text: str) -> None:
        results.append((await box.exec(f"until [ -e go ]; do sleep 0.02; done; echo {text}")).stdout)

    with in_time(10):
        async with anyio.create_task_group() as group:
            with anyio.move_on_after(0.3):
                for text in ("a", "b", "c"):
                    group.start_soon(other, text)
                await box.exec(f"sleep {LONG}")
            await box.write_file("go", b"")
    assert sorted(results) == [b"a\n", b"b\n", b"c\n"]


async def check_calls_cancelled_at_any_moment_leave_nothing(box: Sandbox) -> None:
    """Calls that are cancelled before they begin or at any moment later leave no process, and the box goes on."""
    argument = marker()
    for step in range(15):
        with anyio.move_on_after(0.002 * step):
            await box.exec(f"{SESSION} sleep {argument} & sleep {argument}", stdin=b"x" * 200_000)
    await settles(box, argument, 0)
    assert (await box.exec("echo fine")).stdout == b"fine\n"


async def check_file_calls_may_be_cancelled(box: Sandbox) -> None:
    """What a cancelled read or export left on its way does not disturb the next call."""
    data = b"y" * 4_000_000
    await box.exec("head -c 20000000 /dev/zero > big")
    for step in range(4):
        with anyio.move_on_after(0.003 * step):
            await box.read_file("big")
        with anyio.move_on_after(0.003 * step):
            await box.export()
    with in_time(20):
        await box.write_file("other", data)
        assert await box.read_file("other") == data
