"""Our end of a box's process manager: what runs in the box, and what it has said and not yet been asked for."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from codeenv.sandbox.api import Process
from codeenv.sandbox.box import wire
from codeenv.sandbox.box.wire import frames, pack, unpack

from .profiles import Profile

KILLED = 137  # what the server says of a process that is gone without an exit code
HERE = Path(__file__).parent


def _source() -> str:
    """The program that runs in the box, in one text: what its modules import of each other is above them."""
    texts = [Path(wire.__file__), HERE / "inbox_files.py", HERE / "inbox_processes.py"]
    lines = (line for text in texts for line in text.read_text(encoding="utf-8").splitlines())
    return "\n".join(line for line in lines if not line.startswith(("from inbox_files", "from wire")))


COMMAND = ["python3", "-I", "-S", "-c", _source()]


class Refused(Exception):
    """The process manager's own words for what it could not do."""


class Gone(Exception):
    """The process manager is no more."""


@dataclass
class Run:
    """One command that was started in a box."""

    pid: int
    command: str
    cwd: str
    env: list[str]
    output: dict[bytes, bytearray] = field(default_factory=lambda: {b"o": bytearray(), b"e": bytearray()})
    open: set[bytes] = field(default_factory=lambda: {b"o", b"e"})
    status: int | None = None
    """Its exit code, or minus the signal's number; None while it runs."""
    marked: bool = False
    """It was killed on request, and is gone."""
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def exit_code(self, profile: Profile) -> int:
        """What its server says; -1: it runs."""
        code = -1
        if self.status is not None and not (profile.waits_for_output and self.open):
            if profile.failures_are_one:
                code = int(self.status != 0)
            elif self.status < 0:
                code = 128 - self.status if profile.signals == "shell" else -1
            else:
                code = self.status
        return KILLED if code < 0 and self.marked else code

    def take(self, stream: bytes, limit: int) -> str:
        """What it has written since the last time. It is lost where it cannot be told.

        :raises Refused: it is no UTF-8, or more than one message holds.
        """
        data = bytes(self.output[stream])
        self.output[stream].clear()
        if len(data) > limit:
            raise Refused(
                "rpc error: code = ResourceExhausted desc = grpc: received message larger than max "
                f"({len(data)} vs. {limit})"
            )
        try:
            return data.decode()
        except UnicodeDecodeError:
            raise Refused(
                "rpc error: code = Internal desc = grpc: error while marshaling: string field contains invalid UTF-8"
            ) from None


class Manager:
    """The manager of one box. `serve` has to run for anything to be answered."""

    def __init__(self, process: Process, runs: dict[int, Run], memory: int) -> None:
        """`runs` by pid, which outlive their manager; `memory` in bytes: what it may keep of one command's output."""
        self.runs = runs
        self.overflowed = False
        self._process, self._memory = process, memory
        self._numbers = itertools.count(1)
        self._asked: dict[int, asyncio.Future[list[bytes]]] = {}
        self._by_number: dict[int, Run] = {}
        self._starting: dict[int, Run] = {}
        self.ready = self._expect(0)

    async def serve(self) -> None:
        """Take in what the manager says, until it is gone: then all it ran counts as killed."""
        inbox = bytearray()
        try:
            while not self.overflowed and (data := await self._process.receive()):
                inbox += data
                for kind, number, body in frames(inbox):
                    self._take(kind, number, unpack(body))
        finally:
            for future in self._asked.values():
                if not future.done():
                    future.set_exception(Gone())
                    future.exception()  # whoever asked may have left
            for run in self._by_number.values():
                run.status, run.open = -9 if run.status is None else run.status, set()
                run.changed.set()

    async def run(self, argv: list[str], cwd: str, env: Mapping[str, str]) -> Run:
        """Start a command. :raises Refused, Gone:"""
        number = next(self._numbers)
        words = [*argv, *(f"{name}={value}" for name, value in env.items())]
        fields = [cwd.encode(), str(len(argv)).encode(), *(word.encode() for word in words)]
        self._starting[number] = Run(0, " ".join(argv[1:]), cwd, [f"{name}={value}" for name, value in env.items()])
        await self._request(b"x", number, fields)
        return self._by_number[number]

    async def kill(self, pid: int, *, tree: bool) -> None:
        """:raises Refused, Gone:"""
        await self._request(b"k", next(self._numbers), [str(pid).encode(), b"1" if tree else b"0"])

    async def file(self, operation: str, path: str, *fields: bytes | int) -> list[bytes]:
        """See `inbox_files`. :raises Refused, Gone:"""
        rest = (field if isinstance(field, bytes) else str(field).encode() for field in fields)
        return await self._request(b"f", next(self._numbers), [operation.encode(), path.encode(), *rest])

    def _expect(self, number: int) -> asyncio.Future[list[bytes]]:
        future: asyncio.Future[list[bytes]] = asyncio.get_running_loop().create_future()
        self._asked[number] = future
        return future

    async def _request(self, kind: bytes, number: int, fields: Iterable[bytes]) -> list[bytes]:
        future = self._expect(number)
        try:
            await self._process.send(pack(kind, number, list(fields)))
            return await future
        except BrokenPipeError:
            raise Gone from None
        finally:
            self._asked.pop(number, None)
            self._starting.pop(number, None)

    def _take(self, kind: bytes, number: int, fields: list[bytes]) -> None:
        if kind in (b"s", b"!"):
            if kind == b"s" and (run := self._starting.get(number)):  # before anything else is said of it
                run.pid = int(fields[0])
                run.command = f"{fields[1].decode()} {run.command}".strip()
                self.runs[run.pid] = self._by_number[number] = run
            future = self._asked.get(number)
            if future and not future.done():
                if kind == b"s":
                    future.set_result(fields)
                else:
                    future.set_exception(Refused(fields[0].decode("utf-8", "replace")))
            return
        if not (run := self._by_number.get(number)):
            return
        if kind == b"q":
            run.status = int(fields[0])
        elif fields[0]:
            run.output[kind] += fields[0]
            self.overflowed = sum(len(data) for data in run.output.values()) > self._memory
        else:
            run.open.discard(kind)
        if run.status is not None:
            run.changed.set()
