"""A live process in a Beam box: each piece of its stream is a request to the agent."""

from __future__ import annotations

import errno
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from codeenv.sandbox.api import ExecResult, MiB, SandboxLost
from codeenv.sandbox.beam.line import BeamAnswer, BeamLine
from codeenv.sandbox.box.wire import pack

HOLD_MILLISECONDS = 600
"""For how long the agent holds a request for what is not there yet: less than a gateway waits for a command's end."""

Calling = Callable[[str, float | None], AbstractAsyncContextManager[None]]


class BeamProcess:
    """Implements `codeenv.sandbox.api.Process`; see there for the contract."""

    def __init__(
        self, line: BeamLine, number: int, calling: Calling, ended: Callable[[BeamAnswer], ExecResult]
    ) -> None:
        self._line, self._number = line, number
        self._calling, self._ended = calling, ended
        self._at_end = False
        self._asking: int | None = None
        """The request that a receive has left without its answer, for which something may have come since."""

    async def send(self, data: bytes) -> None:
        async with self._calling("send", None):
            for at in range(0, len(data), MiB):
                try:
                    await self._line.about(b"w", self._number, [data[at : at + MiB]])
                except OSError as error:
                    if error.errno == errno.EPIPE:
                        raise BrokenPipeError("the process has closed its stream") from error
                    raise

    async def receive(self) -> bytes:
        while not self._at_end:
            try:
                async with self._calling("receive", None):
                    answer = await self._next()
            except SandboxLost:  # the stream ends with the box; why, `wait` tells
                break
            assert answer.result is not None
            ended, data = answer.result
            self._at_end = ended == b"1"
            if data:
                return data
        return b""

    async def _next(self) -> BeamAnswer:
        number = self._asking = self._asking or self._line.reserve()
        answer = await self._line.ask(number, pack(b"g", self._number, [str(HOLD_MILLISECONDS).encode()]))
        self._line.release(number)
        self._asking = None
        return answer

    def forget(self) -> None:
        """Nothing more will be received."""
        if self._asking is not None:
            self._line.release(self._asking)

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
