"""The relay: frames from the tests' process to the solution's and back, in our own process. What comes from the
solution is believed in nothing: each frame must be one that is owed, of the size that is allowed; then its body is
passed on, to be read by the tests' side's decoder."""

from __future__ import annotations

import struct
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, NamedTuple

import anyio
from anyio.abc import TaskGroup, TaskStatus

from codeenv.grading.functions.box.codec import MESSAGE_LIMIT
from codeenv.grading.functions.plain import decode
from codeenv.grading.functions.program import command, program
from codeenv.grading.records import Record
from codeenv.sandbox.api import Process, Sandbox, SandboxError

HEADER = struct.Struct("<IcIH")
OTHERS = 0x80000000
CONVERSATIONS_LIMIT = 1000  # that the solution may begin
RESTART_LIMIT = 200
SAID = 300


class BrokenFrame(Exception):
    """What the solution's process sent is not what it owes."""


class Frame(NamedTuple):
    """`raw` is the whole of it, to be passed on as it came."""

    kind: bytes
    conversation: int
    epoch: int
    raw: bytes

    @classmethod
    def of(cls, kind: bytes, conversation: int, epoch: int, body: bytes) -> Frame:
        return cls(kind, conversation, epoch, HEADER.pack(len(body), kind, conversation, epoch) + body)

    @property
    def body(self) -> bytes:
        return self.raw[HEADER.size :]


def frames(inbox: bytearray) -> Iterator[Frame]:
    """Take the whole frames off the front of `inbox`. :raises BrokenFrame: one is announced as too large."""
    while len(inbox) >= HEADER.size:
        size, kind, conversation, epoch = HEADER.unpack_from(inbox)
        if size > MESSAGE_LIMIT:
            raise BrokenFrame(f"a message of {size} bytes, more than {MESSAGE_LIMIT}")
        end = HEADER.size + size
        if len(inbox) < end:
            return
        raw = bytes(memoryview(inbox)[:end])
        del inbox[:end]
        yield Frame(kind, conversation, epoch, raw)


@dataclass
class Relay:
    """One grading's. `record` is told of each record of the tests' process."""

    box: Sandbox
    call_timeout: float
    record: Callable[[Record], None]
    called: Callable[[], None] = lambda: None
    """Told of each call that the tests' own code makes."""
    meanwhile: Callable[[], Coroutine[Any, Any, None]] | None = None
    """What is to go on while the tests run; cancelled at the end."""
    fresh_hashes: bool = False
    """See `Boxes`."""
    epoch: int = 0
    tests: Process | None = None
    solution: Process | None = None
    owing: dict[int, list[str]] = field(default_factory=dict[int, list[str]])
    """By conversation, who owes an answer: the innermost call last."""
    since: dict[int, float] = field(default_factory=dict[int, float])
    """When the outermost call of a conversation was made."""
    restarts: int = 0
    sending: anyio.Lock = field(default_factory=lambda: anyio.Lock(fast_acquire=True))
    started: anyio.Event = field(default_factory=anyio.Event)
    connected: anyio.Event = field(default_factory=anyio.Event)

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[None]:
        """The solution's process, begun while the block goes on: to bring up the tests' takes as long. At the end of
        the block it is over. :raises SandboxError: a box was lost. :raises OSError: as the block does."""
        try:
            async with anyio.create_task_group() as self._group:
                self._group.start_soon(self._watch)
                self._group.start_soon(self._begin)
                yield
                self._group.cancel_scope.cancel()
        except BaseExceptionGroup as group:
            lost = group.subgroup((SandboxError, OSError))
            while isinstance(lost, BaseExceptionGroup):
                lost = lost.exceptions[0]
            raise lost or group from group

    async def _begin(self) -> None:
        await self.start(self._group)
        self.started.set()

    async def run(self, tests: Process) -> None:
        """Within `open`, once the tests' process has been told what to run: until it is through."""
        self.tests = tests
        if self.meanwhile is not None:
            self._group.start_soon(self.meanwhile)
        await self.started.wait()
        self.connected.set()
        inbox = bytearray()
        while data := await tests.receive():
            inbox += data
            for frame in frames(inbox):
                if frame.kind == b"E":
                    record = Record.model_validate(decode(frame.body))
                    self.record(record)
                    if record.kind == "end":
                        return
                elif frame.epoch == self.epoch:
                    await self._to_solution(frame, self._group)

    async def start(self, group: TaskGroup) -> None:
        """Start the solution's process; `_live` ends with it."""
        await group.start(self._live, self.epoch)

    async def _to_solution(self, frame: Frame, group: TaskGroup) -> None:
        stack = self.owing.setdefault(frame.conversation, [])
        if frame.kind == b"C":
            if self.solution is None:
                if self.restarts >= RESTART_LIMIT:
                    await self._dead(f"the solution's process has ended {RESTART_LIMIT} times")
                    return
                self.restarts += 1
                await self.start(group)
            if not stack:
                self.since[frame.conversation] = monotonic()
                self.called()
            stack.append("solution")
        elif frame.kind == b"R" and stack and stack[-1] == "tests":
            stack.pop()
        elif frame.kind == b"Z" and not stack:
            del self.owing[frame.conversation]
        if self.solution is not None:
            with suppress(BrokenPipeError):
                await self.solution.send(frame.raw)

    async def _live(self, epoch: int, *, task_status: TaskStatus[None]) -> None:
        """One process of the solution's, from its start to its end."""
        reasons: list[str] = []
        async with (
            self.box.open_process(command("solution", epoch, fresh=self.fresh_hashes)) as process,
            anyio.create_task_group() as group,
        ):
            await process.send(program("solution"))
            self.solution = process
            task_status.started()

            async def ended() -> None:
                done = await process.wait()
                said = done.stderr[-SAID:].decode("utf-8", "replace").strip()
                parts = [f"the solution's process ended with exit code {done.exit_code}", done.notice, said]
                reasons.append(": ".join(part for part in parts if part))
                group.cancel_scope.cancel()

            group.start_soon(ended)
            try:
                await self._from_solution(process, epoch)
                await anyio.sleep(0.5)  # its end is told by `ended`, with the reason
                reasons.append("the solution's process closed its stream")
            except BrokenFrame as error:
                reasons.append(f"the solution's process broke the protocol: {error}")
            group.cancel_scope.cancel()
        if self.epoch == epoch:
            await self._dead(reasons[0])

    async def _from_solution(self, process: Process, epoch: int) -> None:
        inbox = bytearray()
        while data := await process.receive():
            inbox += data
            for frame in frames(inbox):
                if self.epoch != epoch:
                    return
                self._expected(frame)
                await self._to_tests(frame)

    def _expected(self, frame: Frame) -> None:
        """:raises BrokenFrame: the solution owes no such frame."""
        if frame.epoch != self.epoch:
            raise BrokenFrame("a message of another process")
        stack = self.owing.get(frame.conversation)
        if frame.kind == b"R":
            if not stack or stack[-1] != "solution":
                raise BrokenFrame("an answer that nobody asked for")
            stack.pop()
            if not stack:
                self.since.pop(frame.conversation, None)
        elif frame.kind == b"C":
            if frame.conversation >= OTHERS:
                if stack is None:
                    if len(self.owing) > CONVERSATIONS_LIMIT:
                        raise BrokenFrame("too many conversations")
                    stack = self.owing[frame.conversation] = []
                if stack and stack[-1] == "tests":
                    raise BrokenFrame("a call while another is not answered")
            elif not stack or stack[-1] != "solution":
                raise BrokenFrame("a call out of order")
            stack.append("tests")
        elif frame.kind == b"Z" and frame.conversation >= OTHERS and not stack:
            self.owing.pop(frame.conversation, None)
        else:
            raise BrokenFrame("a message of no kind")

    async def _dead(self, reason: str) -> None:
        """Tell the tests' side; its calls fail with the reason."""
        self.epoch += 1
        self.solution = None
        self.owing.clear()
        self.since.clear()
        await self._to_tests(Frame.of(b"D", 0, self.epoch, reason.encode()))

    async def _to_tests(self, frame: Frame) -> None:
        await self.connected.wait()
        assert self.tests is not None
        async with self.sending:  # the solution's frames and the news of its end come from different tasks
            with suppress(BrokenPipeError):
                await self.tests.send(frame.raw)

    async def _watch(self) -> None:
        """End calls that take too long."""
        while True:
            await anyio.sleep(min(0.25, self.call_timeout / 4))
            late = [start for start in self.since.values() if monotonic() - start > self.call_timeout]
            if late and self.solution is not None:
                await self.solution.kill()
                await self._dead(f"no answer within {self.call_timeout:g} s")
