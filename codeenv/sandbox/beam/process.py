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
        self._length: int | None = None  # of the stream, once its end is known
        self._unheard: list[int] = []  # requests whose answer nobody waited for: it may hold what the stream brought
        self._news = anyio.Event()

    async def send(self, data: bytes) -> None:
        try:
            async with self._calling("send", None):
                while self._unheard:  # one that nobody waited for may still be on its way, and come after this one
                    await self._make_up_for(self._unheard.pop(0), 0)
                for at in range(0, len(data), MiB):
                    last = at + MiB >= len(data)
                    hold = str(SEND_HOLD_MILLISECONDS if last else 0).encode()
                    await self._ask(self._line.reserve(), b"w", [data[at : at + MiB], hold])
        except OSError as error:
            if error.errno == errno.EPIPE:
                raise BrokenPipeError("the process has closed its stream") from error
            raise

    async def receive(self) -> bytes:
        while not self._inbox and (self._length is None or self._received < self._length):
            if not self._unheard:
                with anyio.move_on_after(ABOUT_TO_SEND):
                    await self._news.wait()
                    continue
            number = self._unheard.pop(0) if self._unheard else self._line.reserve()
            try:
                async with self._calling("receive", None):
                    await self._make_up_for(number, HOLD_MILLISECONDS)
            except SandboxLost:  # the stream ends with the box; why, `wait` tells
                self._length = self._received
        data = bytes(self._inbox[:PIECE])
        del self._inbox[:PIECE]
        return data

    async def _make_up_for(self, number: int, milliseconds: int) -> None:
        """Ask for what the stream has, as a request of that number. Was it a send that has not come, this takes its
        place, and it will not be carried out."""
        try:
            await self._ask(number, b"g", [str(milliseconds).encode()])
        except BrokenPipeError:
            pass  # it was a send, which brought nothing

    async def _ask(self, number: int, kind: bytes, fields: list[bytes]) -> None:
        try:
            answer = await self._line.ask(number, pack(kind, self._number, fields))
        except anyio.get_cancelled_exc_class():
            self._unheard.append(number)
            raise
        except BaseException:
            self._line.release(number)
            raise
        self._line.release(number)
        assert answer.result is not None
        ended, at, data = answer.result
        if ended == b"1":
            self._length = int(at or 0)
        if data:
            self._early[int(at)] = data
        while (data := self._early.pop(self._received, b"")) != b"":
            self._inbox += data
            self._received += len(data)
        self._news.set()
        self._news = anyio.Event()

    def forget(self) -> None:
        """Nothing more will be received."""
        for number in self._unheard:
            self._line.release(number)

    async def kill(self) -> None:
        async with self._calling("kill", 60.0):
            await self._line.about(b"K", self._number)

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
