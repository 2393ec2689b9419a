"""Our end of a local box's control socket: many requests at once over one stream, without a task of our own.

The event loop watches the socket from the first request to the end, and what arrives is handed out in its callback: a
box needs no background task, may be used from any coroutine, and a cancelled caller leaves a whole stream behind.
`anyio.wait_readable` would ask the kernel anew for every answer.
"""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import sys
from collections import deque
from collections.abc import AsyncGenerator, Callable, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress

import anyio
import anyio.lowlevel

from codeenv.sandbox.api import SandboxLost
from codeenv.sandbox.box.wire import frames, pack, unpack

CHUNK = 262_144
WITHDRAW_SECONDS = 1.0
ANCILLARY = socket.CMSG_SPACE(4)  # room for one descriptor: the agent sends no more with a frame


class Answer:
    """What has come back for one request."""

    def __init__(self) -> None:
        self.data: list[list[bytes]] = []
        self.result: list[bytes] | None = None
        self.error: OSError | None = None
        self.stream: socket.socket | None = None
        self.waiting: set[asyncio.Future[None]] = set()  # plain futures, as this is a hot path

    @property
    def done(self) -> bool:
        return self.result is not None or self.error is not None

    def wake(self) -> None:
        for future in self.waiting:
            if not future.done():
                future.set_result(None)


def _raise(answer: Answer, path: str) -> None:
    if answer.error is not None:
        raise OSError(answer.error.errno, answer.error.strerror, path)


class Channel:
    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        self._sock = sock
        self._inbox = bytearray()
        self._answers: dict[int, Answer] = {}
        self._next = 0
        self._loop: asyncio.AbstractEventLoop | None = None  # that watches the socket
        self._writers = 0  # that wait for it
        self._sending = anyio.Lock()
        self._outbox = bytearray()
        self._descriptors: deque[int | None] = deque()  # received, each for the next frame of kind "s"; None: lost
        self.closed = False

    async def request(self, kind: bytes, fields: Sequence[bytes], *, path: str = "", cancel: bytes = b"") -> Answer:
        """Send one request and wait for its end.

        `cancel` is the kind of frame that tells the agent, should we be cancelled, that nobody waits any longer.

        :raises OSError: the agent's own answer, naming `path`. :raises SandboxLost: the box is gone.
        """
        self._next += 1
        number = self._next
        answer = Answer()
        try:
            with self._expecting(number, answer):
                await self._send(pack(kind, number, list(fields)))
                await self._wait(answer)
        except BaseException:
            if cancel and not answer.done:
                await self._withdraw(cancel, number)
            raise
        _raise(answer, path)
        return answer

    @asynccontextmanager
    async def streaming(
        self, kind: bytes, fields: Sequence[bytes], *, path: str, cancel: bytes
    ) -> AsyncGenerator[tuple[int, Answer, socket.socket]]:
        """A request that the agent answers with a socket at once, and in the end like any other: its number, what comes
        back for it, the socket. When the block is left before the end, the agent gets a frame of kind `cancel`.

        :raises OSError, SandboxLost: as `request`.
        """
        self._next += 1
        number = self._next
        answer = Answer()
        try:
            with self._expecting(number, answer):
                await self._send(pack(kind, number, list(fields)))
                await self._wait(answer, lambda: answer.done or answer.stream is not None)
                _raise(answer, path)
                assert answer.stream is not None
                yield number, answer, answer.stream
        finally:
            if answer.stream is not None:
                answer.stream.close()
            if not answer.done:
                await self._withdraw(cancel, number)

    async def ended(self, answer: Answer) -> None:
        """Wait for the end of what `streaming` began. :raises SandboxLost: the box is gone."""
        await self._wait(answer)

    async def tell(self, kind: bytes, number: int) -> None:
        """Send a frame without fields about a request that is under way."""
        await self._send(pack(kind, number, []))

    async def ready(self) -> None:
        """Wait for the agent's first frame."""
        answer = Answer()
        with self._expecting(0, answer):
            await self._wait(answer)

    async def send_raw(self, data: bytes) -> None:
        await self._send(data)

    def close(self) -> None:
        """At once; the agent sees the end of its input and takes the box down, and whoever waits here is woken."""
        with suppress(OSError):
            self._sock.shutdown(socket.SHUT_RDWR)
        self._end()

    async def release(self) -> None:
        """Give the descriptor back, once closed. Not before the last that waits on it has left: its number may go to
        another descriptor at once, whose watch would then be ended with theirs."""
        while self._writers:
            await anyio.lowlevel.checkpoint()
        self._sock.close()
        for descriptor in self._descriptors:
            if descriptor is not None:
                os.close(descriptor)
        self._descriptors.clear()

    async def _withdraw(self, cancel: bytes, number: int) -> None:
        """Tell the agent, in the face of a cancellation. Nearly always one system call; an agent that is busy gets a
        moment."""
        with anyio.CancelScope(shield=True), anyio.move_on_after(WITHDRAW_SECONDS), suppress(SandboxLost):
            await self._send(pack(cancel, number, []))

    async def _send(self, data: bytes) -> None:
        # The outbox outlives a cancelled sender: half a frame on the wire would garble every later one.
        self._outbox += data
        if not self._flush():
            async with self._sending:
                while not self._flush():
                    await self._writable()

    def _flush(self) -> bool:
        while self._outbox and not self.closed:
            try:
                sent = self._sock.send(memoryview(self._outbox)[:CHUNK].tobytes())
            except BlockingIOError:
                return False
            except OSError as error:
                raise self._lost() from error
            del self._outbox[:sent]
        return True

    async def _writable(self) -> None:
        """Wait until the agent reads on. Meanwhile we read what it writes: it does one thing at a time, and may be held
        up by an answer whose caller was cancelled."""
        self._watch()
        self._writers += 1
        try:
            await anyio.wait_writable(self._sock)
        except (anyio.ClosedResourceError, ValueError, OSError) as error:
            raise self._lost() from error
        finally:
            self._writers -= 1

    @contextmanager
    def _expecting(self, number: int, answer: Answer) -> Generator[None]:
        self._answers[number] = answer
        try:
            yield
        finally:
            del self._answers[number]

    async def _wait(self, answer: Answer, enough: Callable[[], bool] | None = None) -> None:
        enough = enough or (lambda: answer.done)
        while not enough():
            if self.closed:
                raise self._lost()
            future = self._watch().create_future()
            answer.waiting.add(future)
            try:
                await future
            finally:
                answer.waiting.discard(future)

    def _watch(self) -> asyncio.AbstractEventLoop:
        """Have the running loop watch the socket, until the end."""
        loop = asyncio.get_running_loop()
        if loop is not self._loop and not self.closed:
            self._unwatch()
            loop.add_reader(self._sock, self._receive)
            self._loop = loop
        return loop

    def _unwatch(self) -> None:
        if self._loop is not None:
            if not self._loop.is_closed():
                self._loop.remove_reader(self._sock)
            self._loop = None

    def _end(self) -> None:
        """Of a lost box all hear."""
        self.closed = True
        self._unwatch()
        for answer in self._answers.values():
            answer.wake()

    def _receive(self) -> None:
        try:
            data, ancillary, flags, _ = self._sock.recvmsg(CHUNK, ANCILLARY, socket.MSG_CMSG_CLOEXEC)
        except BlockingIOError:
            return
        except OSError:  # it ended with something of ours unread
            data, ancillary, flags = b"", [], 0
        for _, _, numbers in ancillary:
            self._descriptors.append(int.from_bytes(numbers[:4], sys.byteorder))
        if flags & socket.MSG_CTRUNC:  # we have no descriptor left
            self._descriptors.append(None)
        if not data:
            self._end()
            return
        self._inbox += data
        for kind, number, body in frames(self._inbox):
            answer = self._answers.get(number)
            if kind == b"s":
                self._hand_out_stream(answer)
                continue
            if answer is None:  # its caller was cancelled
                continue
            if kind == b"d":
                answer.data.append(unpack(body))
                continue
            fields = unpack(body)
            if kind == b"r":
                answer.result = fields
            else:
                code = int(fields[0])
                answer.error = OSError(code, fields[1].decode("utf-8", "replace") or os.strerror(code or errno.EIO))
            answer.wake()

    def _hand_out_stream(self, answer: Answer | None) -> None:
        descriptor = self._descriptors.popleft()
        if answer is None:
            if descriptor is not None:
                os.close(descriptor)
            return
        if descriptor is None:
            answer.error = OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        else:
            answer.stream = socket.socket(fileno=descriptor)
            answer.stream.setblocking(False)
        answer.wake()

    def _lost(self) -> SandboxLost:
        return SandboxLost("the sandbox is gone", stage="connection")
