"""A live process in a local box: our end of the socket that is its stdin and stdout."""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable

import anyio

from codeenv.sandbox.api import ExecResult

CHUNK = 262_144


class LocalProcess:
    """Implements `codeenv.sandbox.api.Process`; see there for the contract. One coroutine at a time may send, and one
    receive. The agent has passed the socket on and is not in between."""

    def __init__(
        self, stream: socket.socket, kill: Callable[[], Awaitable[None]], wait: Callable[[], Awaitable[ExecResult]]
    ) -> None:
        self._stream = stream
        self._kill, self._wait = kill, wait

    async def kill(self) -> None:
        await self._kill()

    async def wait(self) -> ExecResult:
        return await self._wait()

    async def send(self, data: bytes) -> None:
        rest = memoryview(data)
        while True:
            try:
                rest = rest[self._stream.send(rest) :]
            except BlockingIOError:
                await anyio.wait_writable(self._stream)
            if not rest:
                return

    async def receive(self) -> bytes:
        while True:
            try:
                return self._stream.recv(CHUNK)
            except BlockingIOError:
                await anyio.wait_readable(self._stream)
            except ConnectionResetError:  # it ended with something of ours unread
                return b""
