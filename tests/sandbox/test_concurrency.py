"""Many calls at once on one box, and calls that are cancelled, on both event loops."""

from __future__ import annotations

from collections.abc import AsyncIterator

import anyio
import pytest

from codeenv.sandbox.api import Sandbox, SandboxProvider, SandboxSpec

pytestmark = pytest.mark.anyio


@pytest.fixture
async def any_box(any_provider: SandboxProvider) -> AsyncIterator[Sandbox]:
    """A new one each time: a box belongs to one event loop."""
    async with any_provider.create(SandboxSpec()) as sandbox:
        yield sandbox


@pytest.mark.parametrize("anyio_backend", ["asyncio", ("asyncio", {"use_uvloop": True})], ids=["asyncio", "uvloop"])
async def test_concurrent_commands_keep_their_outputs_apart(any_box: Sandbox) -> None:
    async def one(number: int) -> None:
        text = f"{number}-" * 20_000
        command = f"sleep 0.0$((RANDOM % 9)); cat; exit {number}"
        result = await any_box.exec(command, stdin=text.encode(), timeout=20, output_limit=10**6)
        assert (result.stdout, result.exit_code) == (text.encode(), number)
        name = f"file {number}"
        await any_box.write_file(name, text.encode())
        assert await any_box.read_file(name) == text.encode()

    async with anyio.create_task_group() as group:
        for number in range(24):
            group.start_soon(one, number)


# --- cancellation ---------------------------------------------------------------------------------------------

LOOP = "(setsid sh -c 'while :; do date +%N > alive; sleep 0.02; done' &) ; sleep 99"


async def is_alive(box: Sandbox) -> bool:
    return (await box.exec("rm -f alive; sleep 0.2; test -e alive")).exit_code == 0


@pytest.mark.parametrize("anyio_backend", ["asyncio", ("asyncio", {"use_uvloop": True})], ids=["asyncio", "uvloop"])
async def test_a_cancelled_command_is_killed_and_the_box_goes_on(any_box: Sandbox) -> None:
    with anyio.move_on_after(0.3) as scope:
        await any_box.exec(LOOP)
    assert scope.cancelled_caught
    assert not await is_alive(any_box)


async def test_a_cancelled_command_that_killed_its_supervisor_is_killed_all_the_same(any_box: Sandbox) -> None:
    with anyio.move_on_after(0.3):
        await any_box.exec(LOOP.replace("sleep 99", "kill -9 $PPID; sleep 99"))
    assert not await is_alive(any_box)


async def test_a_cancelled_command_leaves_those_that_wait_with_it_alone(any_box: Sandbox) -> None:
    results: list[bytes] = []

    async def other(text: str) -> None:
        results.append((await any_box.exec(f"sleep 0.4; echo {text}", timeout=20)).stdout)

    async with anyio.create_task_group() as group:
        with anyio.move_on_after(0.25):  # it is the one that reads the socket
            group.start_soon(other, "a")
            group.start_soon(other, "b")
            group.start_soon(other, "c")
            await any_box.exec(LOOP)
    assert sorted(results) == [b"a\n", b"b\n", b"c\n"]
    assert not await is_alive(any_box)


async def test_readers_may_be_cancelled_in_any_order(any_box: Sandbox) -> None:
    """The reader goes, and whoever was to read next goes with it: those left still get their answers."""
    results: list[bytes] = []

    async def doomed(delay: float) -> None:
        with anyio.move_on_after(delay):
            await any_box.exec("sleep 30")

    async def patient() -> None:
        results.append((await any_box.exec("sleep 0.4; echo x", timeout=20)).stdout)

    with anyio.fail_after(20):
        async with anyio.create_task_group() as group:
            for delay in (0.2, 0.2, 0.2, 0.3, 0.3):
                group.start_soon(doomed, delay)
            await anyio.sleep(0.05)
            for _ in range(3):
                group.start_soon(patient)
    assert results == [b"x\n"] * 3


async def test_commands_cancelled_at_once_leave_nothing(any_box: Sandbox) -> None:
    for _ in range(15):
        with anyio.CancelScope() as scope:
            scope.cancel()
            await any_box.exec(LOOP)
        with anyio.move_on_after(0.002):
            await any_box.exec(LOOP, stdin=b"x" * 1_000_000)
    assert not await is_alive(any_box)
    assert (await any_box.exec("ls /proc/self/fd | wc -l")).stdout == b"4\n"
