"""A live process in a Beam box: each piece of its stream is a request to the agent."""

from __future__ import annotations

import errno
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import anyio

from codeenv.sandbox.api import ExecResult, MiB, SandboxLost
from codeenv.sandbox.beam.line import BeamAnswer, BeamLine
from codeenv.sandbox.box.wire import pack

HOLD_MILLISECONDS = 600
"""For how long the agent holds a request for what is not there yet: less than a gateway waits for a command's end."""
SEND_HOLD_MILLISECONDS = 40
"""The same for a request that brings something: mostly the answer comes at once, and saves a request of its own."""
ABOUT_TO_SEND = 0.02  # seconds that a receiver leaves for a send, which may bring what it wants, before it asks itself
PIECE = 262_144

Calling = Callable[[str, float | None], AbstractAsyncContextManager[None]]


class BeamProcess:
    """Implements `codeenv.sandbox.api.Process`; see there for the contract."""

    def __init__(
        self, line: BeamLine, number: int, calling: Calling, ended: Callable[[BeamAnswer], ExecResult]
    ) -> None:
        self._line, self._number = line, number
        self._calling, self._ended = calling, ended
        self._inbox = bytearray()
        self._early: dict[int, bytes] = {}  # by where in the stream they belong: replies that have overtaken others
        self._received = 0
        self._at_end = False
        self._news = anyio.Event()

    async def send(self, data: bytes) -> None:
        try:
            async with self._calling("send", None):
                for at in range(0, len(data), MiB):
                    last = at + MiB >= len(data)
                    hold = str(SEND_HOLD_MILLISECONDS if last else 0).encode()
                    self._take(await self._line.about(b"w", self._number, [data[at : at + MiB], hold]))
        except OSError as error:
            if error.errno == errno.EPIPE:
                raise BrokenPipeError("the process has closed its stream") from error
            raise

    async def receive(self) -> bytes:
        while not self._inbox and not self._at_end:
            with anyio.move_on_after(ABOUT_TO_SEND):
                await self._news.wait()
                continue
            try:
                async with self._calling("receive", None):
                    self._take(await self._line.about(b"g", self._number, [str(HOLD_MILLISECONDS).encode()]))
            except SandboxLost:  # the stream ends with the box; why, `wait` tells
                self._at_end = True
        data = bytes(self._inbox[:PIECE])
        del self._inbox[:PIECE]
        return data

    def _take(self, answer: BeamAnswer) -> None:
        assert answer.result is not None
        ended, at, data = answer.result
        self._at_end = self._at_end or ended == b"1"
        if data:
            self._early[int(at)] = data
        while (data := self._early.pop(self._received, b"")) != b"":
            self._inbox += data
            self._received += len(data)
        self._news.set()
        self._news = anyio.Event()

    async def kill(self) -> None:
        async with self._calling("kill", 60.0):
            await self._line.about(b"K", self._number, [])

    async def wait(self) -> ExecResult:
        async with self._calling("wait", None):
            answer = await self._line.ask(self._number, b"")
        return self._ended(answer)


@asynccontextmanager
async def started(line: BeamLine, fields: list[bytes], path: str) -> AsyncGenerator[int]:
    """Start a process: its number. At the end of the block it is killed. :raises OSError: it cannot be started."""
    number = line.reserve()
    try:
        try:
            opening = line.reserve()
            try:
                await line.ask(opening, pack(b"p", number, fields), path=path)
            finally:
                line.release(opening)
            yield number
        finally:
            await line.withdraw(b"k", number)
    finally:
        line.release(number)


__all__ = ["BeamProcess", "started"]
