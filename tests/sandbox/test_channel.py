"""Our end of a box's control socket, and how the event loop watches it."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from codeenv.sandbox.api import SandboxLost
from codeenv.sandbox.box.wire import frames, pack
from codeenv.sandbox.channel import Channel

pytestmark = pytest.mark.anyio
BOTH_LOOPS = pytest.mark.parametrize(
    "anyio_backend", ["asyncio", ("asyncio", {"use_uvloop": True})], ids=["asyncio", "uvloop"]
)


class Watched:
    """A channel, its other end, and how often the running loop was asked to watch and to forget a descriptor."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls: list[str] = []
        loop = asyncio.get_running_loop()

        class Counting:
            def __getattr__(_, name: str) -> Any:  # uvloop's own methods cannot be replaced
                if name in ("add_reader", "remove_reader"):
                    self.calls.append(name)
                return getattr(loop, name)

        counting = Counting()
        monkeypatch.setattr("codeenv.sandbox.channel.asyncio.get_running_loop", lambda: counting)
        ours, self.agent = socket.socketpair()
        self.agent.setblocking(False)
        self.channel = Channel(ours)
        self._inbox = bytearray()

    async def received(self) -> list[tuple[bytes, int]]:
        await anyio.wait_readable(self.agent)
        self._inbox += self.agent.recv(65_536)
        return [(kind, number) for kind, number, _ in frames(self._inbox)]

    async def serve(self, times: int) -> None:
        for _ in range(times):
            for _, number in await self.received():
                self.agent.send(pack(b"r", number, [b"%d" % number]))


@BOTH_LOOPS
async def test_one_watch_serves_all_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    watched = Watched(monkeypatch)
    with watched.agent:
        async with anyio.create_task_group() as group:
            group.start_soon(watched.serve, 20)
            for number in range(1, 21):
                assert (await watched.channel.request(b"x", [])).result == [b"%d" % number]
        watched.channel.close()
        await watched.channel.release()
    assert watched.calls == ["add_reader", "remove_reader"]


@BOTH_LOOPS
async def test_an_end_that_nobody_waits_for_ends_the_watch(monkeypatch: pytest.MonkeyPatch) -> None:
    watched = Watched(monkeypatch)
    async with anyio.create_task_group() as group:
        group.start_soon(watched.serve, 1)
        await watched.channel.request(b"x", [])
    watched.agent.close()
    with anyio.fail_after(5):
        while not watched.channel.closed:
            await anyio.lowlevel.checkpoint()
    assert watched.calls == ["add_reader", "remove_reader"]  # else the loop would be woken for ever
    with pytest.raises(SandboxLost):
        await watched.channel.request(b"x", [])
    await watched.channel.release()


@BOTH_LOOPS
async def test_what_comes_for_a_cancelled_caller_is_dropped_and_the_next_is_served(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    watched = Watched(monkeypatch)
    with watched.agent:
        with anyio.move_on_after(0.05) as scope:
            await watched.channel.request(b"x", [], cancel=b"k")
        assert scope.cancelled_caught
        assert await watched.received() == [(b"x", 1), (b"k", 1)]
        watched.agent.send(pack(b"d", 1, [b"late"]) + pack(b"r", 1, [b"late"])[:5])
        async with anyio.create_task_group() as group:

            async def answer() -> None:
                assert await watched.received() == [(b"x", 2)]
                watched.agent.send(pack(b"r", 1, [b"late"])[5:] + pack(b"r", 2, [b"mine"]))

            group.start_soon(answer)
            assert (await watched.channel.request(b"x", [])).result == [b"mine"]
        watched.channel.close()
        await watched.channel.release()


@BOTH_LOOPS
async def test_closing_wakes_every_caller_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    watched = Watched(monkeypatch)
    lost: list[int] = []

    async def call(number: int) -> None:
        with pytest.raises(SandboxLost):
            await watched.channel.request(b"x", [])
        lost.append(number)

    with watched.agent, anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            for number in range(10):
                group.start_soon(call, number)
            await watched.received()
            watched.channel.close()
        await watched.channel.release()
    assert sorted(lost) == list(range(10))
