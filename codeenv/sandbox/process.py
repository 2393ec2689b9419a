"""A live process in a local box: our end of the socket that is its stdin and stdout."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import cast

import anyio

from codeenv.sandbox.api import ExecResult

INBOX_LIMIT = 262_144


class LocalProcess(asyncio.Protocol):
    """Implements `codeenv.sandbox.api.Process`; see there for the contract. One coroutine at a time may send, and one
    receive. The agent has passed the socket on and is not in between.

    A transport of the event loop's watches the socket for as long as it lives: a message costs a third of what it does
    with `anyio.wait_readable`, which asks the kernel for each anew.
    """

    def __init__(self, kill: Callable[[], Awaitable[None]], wait: Callable[[], Awaitable[ExecResult]]) -> None:
        self._kill, self._wait = kill, wait
        self._inbox: list[bytes] = []
        self._size = 0
        self._ended = False
        self._waiting: asyncio.Future[None] | None = None  # whoever receives: a plain future, as this is a hot path
        self._writable, self._closed = anyio.Event(), anyio.Event()
        self._writable.set()

    @classmethod
    @asynccontextmanager
    async def over(
        cls,
        stream: socket.socket,
        kill: Callable[[], Awaitable[None]],
        wait: Callable[[], Awaitable[ExecResult]],
    ) -> AsyncGenerator[LocalProcess]:
        """The process behind `stream`, which is closed at the end of the block."""
        process = cls(kill, wait)
        with anyio.CancelScope(shield=True):
            await asyncio.get_running_loop().create_unix_connection(lambda: process, sock=stream)
        try:
            yield process
        finally:
            process._transport.abort()
            with anyio.CancelScope(shield=True):
                await process._closed.wait()

    async def send(self, data: bytes) -> None:
        if not self._transport.is_closing():
            self._transport.write(data)
            if not self._writable.is_set():
                await self._writable.wait()
        if self._transport.is_closing():
            raise BrokenPipeError("the process has closed its stream")

    async def receive(self) -> bytes:
        while not self._inbox:
            if self._ended:
                return b""
            self._waiting = asyncio.get_running_loop().create_future()
            await self._waiting
        data = self._inbox[0] if len(self._inbox) == 1 else b"".join(self._inbox)
        self._inbox.clear()
        if rest := data[INBOX_LIMIT:]:
            self._inbox.append(rest)
        if self._size > INBOX_LIMIT >= len(rest):
            self._transport.resume_reading()
        self._size = len(rest)
        return data[:INBOX_LIMIT]

    async def kill(self) -> None:
        await self._kill()

    async def wait(self) -> ExecResult:
        return await self._wait()

    # --- what the transport tells ------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(0)

    def data_received(self, data: bytes) -> None:
        self._inbox.append(data)
        self._size += len(data)
        if self._size > INBOX_LIMIT:
            self._transport.pause_reading()
        self._wake()

    def eof_received(self) -> bool:
        self._ended = True
        self._wake()
        return True  # it may still read

    def _wake(self) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)

    def connection_lost(self, exc: Exception | None) -> None:
        self.eof_received()
        self._writable.set()
        self._closed.set()

    def pause_writing(self) -> None:
        self._writable = anyio.Event()

    def resume_writing(self) -> None:
        self._writable.set()
