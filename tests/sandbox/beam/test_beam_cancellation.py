"""Whatever is cancelled, at whatever moment and in whichever way, leaves no box, no process, no slot and no task."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import anyio
import pytest

from codeenv.sandbox.api import SandboxError, SandboxSpec
from codeenv.sandbox.archive import Archive
from codeenv.sandbox.beam.provider import BeamProvider
from codeenv.sandbox.beam.sandbox import BeamSandbox
from tests.beam_gateway.server import Gateway
from tests.sandbox.beam.support import opened

pytestmark = pytest.mark.anyio
LOOPS = pytest.mark.parametrize(
    ("anyio_backend", "times"),
    [(("asyncio", {"use_uvloop": False}), 380), (("asyncio", {"use_uvloop": True}), 120)],
    ids=["asyncio", "uvloop"],
)
AT_ONCE = 20
BIG = bytes(range(256)) * 6_000
Call = Callable[[BeamProvider, BeamSandbox], Awaitable[object]]


async def create(provider: BeamProvider, _: BeamSandbox) -> None:
    async with provider.create(SandboxSpec()) as box:
        await box.exec("sleep 77")


async def close(provider: BeamProvider, _: BeamSandbox) -> None:
    box = await opened(provider)
    try:
        await box.exec("sleep 77 & echo")
    finally:
        await box.close()


async def stream(_: BeamProvider, box: BeamSandbox) -> None:
    async with box.open_process("cat; sleep 77") as process:
        for _ in range(5):
            await process.send(b"word" * 1000)
            await process.receive()
        await process.receive()


CALLS: list[tuple[Call, float, int]] = [
    # what, the latest moment of its cancellation in seconds, how often of ten
    (create, 0.5, 2),
    (close, 0.5, 1),
    (stream, 0.4, 1),
    (lambda _, box: box.exec("sleep 77"), 0.3, 2),
    (lambda _, box: box.exec("cat; sleep 77", stdin=BIG), 0.3, 1),
    (lambda _, box: box.exec("head -c 3000000 /dev/zero", output_limit=4_000_000), 0.3, 1),
    (lambda _, box: box.write_file("big", BIG), 0.2, 1),
    (lambda _, box: box.import_(Archive.of({"tree/a": BIG, "tree/b": b"x"})), 0.2, 1),
    (lambda _, box: box.export(), 0.2, 1),
]


async def cancelled(work: Awaitable[object], after: float, how: str) -> None:
    """Cancel it in the way of anyio, of asyncio, or of asyncio time and again."""
    with suppress(SandboxError):
        if how == "scope":
            with anyio.move_on_after(after):
                await work
            return
        task = asyncio.ensure_future(work)
        await asyncio.wait([task], timeout=after)
        while not task.done():
            task.cancel()
            await asyncio.wait([task], timeout=0.03 if how == "again" else 20.0)
        with suppress(asyncio.CancelledError):
            task.result()


@LOOPS
async def test_random_cancellations(gateway: Gateway, provider: BeamProvider, times: int) -> None:
    chance = random.Random(20261130)
    boxes = [await opened(provider) for _ in range(AT_ONCE)]

    async def worker(box: BeamSandbox, count: int) -> None:
        for _ in range(count):
            ((call, latest, _),) = chance.choices(CALLS, [often for *_, often in CALLS])
            how = chance.choice(["scope", "task", "again"])
            await cancelled(call(provider, box), chance.uniform(0.0, latest), how)

    async with anyio.create_task_group() as group:
        for number, box in enumerate(boxes):
            group.start_soon(worker, box, times // AT_ONCE + (number < times % AT_ONCE))
    mine = {box.container.id for box in boxes}
    with anyio.fail_after(10):
        while {each.id for each in gateway.active()} != mine:
            await anyio.sleep(0.02)
    for box in boxes:
        assert (await box.exec("pgrep -f '^sleep 77'; echo fine")).stdout == b"fine\n"
        slots = await box.exec(f"cd {box._folder}; cat log; ls | grep -c '^l[.]'")
        assert slots.stdout == b"1\n"  # its own
        assert box._beam._outstanding == set()
        await box.close()


@LOOPS
async def test_a_happy_path(gateway: Gateway, provider: BeamProvider, times: int) -> None:
    async with provider.create(SandboxSpec()) as box:
        await box.write_file("f", BIG)
        assert (await box.exec("cat f", output_limit=len(BIG))).stdout == BIG
        assert (await box.exec("sleep 60", timeout=0.3)).timed_out
        assert (await box.exec("sleep 0.5; kill -9 $$")).exit_code == 137
        async with box.open_process("cat") as process:
            await process.send(b"word")
            assert await process.receive() == b"word"


@pytest.mark.parametrize("how", ["scope", "task", "again"])
async def test_a_create_that_hangs_is_cancelled(gateway: Gateway, provider: BeamProvider, how: str) -> None:
    """Its reply may still come: what is made is stopped, before the cancellation goes on or after."""
    await (await opened(provider)).close()
    gateway.faults.add("CreatePod", delay=0.5)
    await cancelled(create(provider, Any), 0.2, how)  # type: ignore[arg-type]


async def test_a_close_that_is_cancelled_while_the_gateway_is_down(gateway: Gateway, provider: BeamProvider) -> None:
    box = await opened(provider)
    await gateway.stop()
    async with anyio.create_task_group() as group:
        group.start_soon(cancelled, box.close(), 0.2, "again")
        await anyio.sleep(0.8)
        await gateway.restart()
