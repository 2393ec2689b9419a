"""A box with our agent in it: the port's calls as requests to the agent, over whatever line leads into the box."""

from __future__ import annotations

import errno
import os
import posixpath
import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import ClassVar, Protocol

import anyio

from codeenv.sandbox.api import (
    OUTPUT_LIMIT,
    READ_LIMIT,
    SAVE_LIMIT,
    ExecResult,
    ExportTooLarge,
    MiB,
    SandboxExpired,
    SandboxLost,
    SandboxSpec,
)
from codeenv.sandbox.archive import KINDS, Archive, ArchiveLimits, Entry, Kind, clean_path

FILE_SECONDS = 60.0
WRITE_CHUNK = MiB


class Reply(Protocol):
    """What has come back for a request: rows of data, and the fields of its end."""

    @property
    def data(self) -> list[list[bytes]]: ...
    @property
    def result(self) -> list[bytes] | None: ...


class Line(Protocol):
    """The way to a box's agent."""

    async def request(self, kind: bytes, fields: Sequence[bytes], *, path: str = "", cancel: bytes = b"") -> Reply:
        """Send one request and wait for its end. Should we be cancelled, the agent gets a frame of kind `cancel`.

        :raises OSError: the agent's own answer, naming `path`. :raises SandboxLost: the box is gone.
        """
        ...


class AgentSandbox(ABC):
    """Implements `codeenv.sandbox.api.Sandbox` but for `open_process`; see there for the contract."""

    _line: Line
    """Set by the backend before anything is asked of the box."""

    answer_grace: ClassVar[float] = 10.0
    """How many seconds later than a command's own timeout its answer may come before the box counts as lost."""

    def __init__(self, spec: SandboxSpec, *, workdir: str, scratch: str, env: Mapping[str, str]) -> None:
        self.spec = spec
        self._id = uuid.uuid4().hex[:12]
        self._workdir = workdir
        self._scratch = scratch
        self._env = env
        self._created = time.monotonic()
        self._closed = False
        self._closing = False
        self._destroying = anyio.Lock()

    # --- what a backend says -----------------------------------------------------------------------------------------

    @abstractmethod
    def _hang_up(self) -> None:
        """Give the line up, at once: whoever waits on it is woken, and no later call waits."""

    @abstractmethod
    def _cause(self, error: SandboxLost) -> str:
        """Why the box is lost."""

    def _notices(self) -> list[str]:
        """What the box has to say of a command that has just failed."""
        return []

    @abstractmethod
    async def _destroy(self) -> None:
        """End the box and set `_closed`. Never fails."""

    # --- the port ----------------------------------------------------------------------------------------------------

    @property
    def id(self) -> str:
        return self._id

    @property
    def workdir(self) -> str:
        return self._workdir

    @property
    def scratch(self) -> str:
        return self._scratch

    async def exec(
        self,
        command: str | Sequence[str],
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        stdin: bytes = b"",
        timeout: float | None = None,
        output_limit: int = OUTPUT_LIMIT,
        combine: bool = False,
        save_to: str | None = None,
    ) -> ExecResult:
        fields = [
            directory := self._path(cwd or "."),
            b"" if timeout is None else repr(float(timeout)).encode(),
            str(max(0, output_limit)).encode(),
            self._path(save_to) if save_to else b"",
            str(SAVE_LIMIT).encode(),
            b"1" if combine else b"0",
            stdin,
            *self._command(command, env),
        ]
        limit = None if timeout is None else max(0.0, timeout) + self.answer_grace
        async with self._calling("exec", limit):
            answer = await self._line.request(b"x", fields, path=os.fsdecode(directory), cancel=b"k")
        return self._ended(answer)

    async def read_file(self, path: str, *, limit: int = READ_LIMIT) -> bytes:
        async with self._calling("read_file"):
            answer = await self._line.request(b"R", [self._path(path), str(limit).encode()], path=path)
        return b"".join(data for (data,) in answer.data)

    async def write_file(self, path: str, data: bytes, *, mode: int | None = None) -> None:
        async with self._calling("write_file"):
            for at, piece, last in _pieces(data):
                mode_text = str(mode).encode() if last and mode is not None else b""
                fields = [self._path(path), mode_text, b"1" if at else b"0", piece]
                await self._line.request(b"W", fields, path=path)

    async def list_files(self, path: str = ".", *, limit: int = 10_000) -> list[Entry]:
        async with self._calling("list_files"):
            answer = await self._line.request(b"L", [self._path(path), str(limit).encode()], path=path)
        return sorted(
            (
                Entry(os.fsdecode(name), KINDS[kind], int(mode), int(size))
                for kind, name, mode, size in answer.data
                if kind in KINDS
            ),
            key=lambda entry: entry.path,
        )

    async def remove(self, path: str) -> None:
        async with self._calling("remove"):
            await self._line.request(b"D", [self._path(path)], path=path)

    async def export(
        self, path: str = ".", *, limits: ArchiveLimits | None = None, stop_processes: bool = False
    ) -> Archive:
        limits = limits or ArchiveLimits()
        largest = "" if limits.max_file_bytes is None else str(limits.max_file_bytes)
        fields = [self._path(path), *(str(n).encode() for n in (limits.max_bytes, limits.max_entries, largest))]
        fields += map(_encode, limits.leave_out)
        async with self._calling("export"):
            if stop_processes:
                await self._line.request(b"q", [])
            try:
                answer = await self._line.request(b"E", fields, path=path)
            except OSError as error:
                if error.errno in (errno.EFBIG, errno.E2BIG):
                    raise ExportTooLarge(f"{path} holds {error.strerror}") from error
                raise
        return Archive.of_rows(answer.data)

    async def import_(self, archive: Archive, path: str = ".") -> None:
        batch: list[bytes] = [self._path(path)]
        size = 0
        codes: dict[Kind, bytes] = {kind: code for code, kind in KINDS.items()}
        async with self._calling("import_"):
            for entry in archive:
                name = os.fsencode(clean_path(entry.path))
                for at, piece, last in _pieces(entry.data):
                    mode = str(entry.mode).encode() if last else b""
                    batch += [b"+" if at else codes[entry.kind], name, mode, piece]
                    size += len(piece) + len(name)
                    if size >= WRITE_CHUNK:
                        await self._line.request(b"I", batch, path=path)
                        batch, size = batch[:1], 0
            if len(batch) > 1:
                await self._line.request(b"I", batch, path=path)

    async def close(self) -> None:
        self._closing = True
        self._hang_up()  # before anything can interrupt us
        interrupted: BaseException | None = None
        while not self._closed:
            try:
                with anyio.CancelScope(shield=True):
                    async with self._destroying:
                        if not self._closed:
                            await self._destroy()
            except anyio.get_cancelled_exc_class() as error:
                # asyncio's own cancel() goes through anyio's shield. What has begun to close is closed first.
                interrupted = error
        if interrupted is not None:
            raise interrupted

    def _command(self, command: str | Sequence[str], env: Mapping[str, str] | None) -> list[bytes]:
        argv = ["bash", "-c", command] if isinstance(command, str) else list(command)
        if not argv or not argv[0]:
            raise ValueError("an empty command cannot be run")
        variables = (_variable(name, value) for name, value in {**self._env, **(env or {})}.items())
        return [str(len(argv)).encode(), *(_encode(word) for word in argv), *variables]

    def _ended(self, answer: Reply) -> ExecResult:
        assert answer.result is not None
        code, timed_out, seconds, out, out_bytes, err, err_bytes, saved, notice = answer.result
        notices = [notice.decode()] if notice else []
        if code != b"0":
            notices += self._notices()
        return ExecResult(
            exit_code=int(code),
            stdout=out,
            stderr=err,
            timed_out=timed_out == b"1",
            seconds=float(seconds),
            stdout_bytes=int(out_bytes),
            stderr_bytes=int(err_bytes),
            saved_bytes=int(saved),
            notice="; ".join(notices),
        )

    @asynccontextmanager
    async def _calling(self, stage: str, seconds: float | None = FILE_SECONDS) -> AsyncGenerator[None]:
        """The one place where a failing box becomes one of our errors."""
        started = time.monotonic()
        try:
            with anyio.fail_after(seconds):
                yield
        except (SandboxLost, TimeoutError) as error:
            if isinstance(error, TimeoutError) and error.errno is not None:
                raise  # ETIMEDOUT of the box's kernel, not ours
            age, waited = time.monotonic() - self._created, time.monotonic() - started
            if age >= self.spec.ttl_seconds:
                text = f"the sandbox reached its time to live of {self.spec.ttl_seconds:g} s"
                raise SandboxExpired(text, stage=stage, seconds=waited) from error
            if self._closing:
                text = "it is closed"
            elif isinstance(error, TimeoutError):
                text = "it gave no answer in time"
                self._hang_up()  # whatever it is doing: no later call need wait as long
            else:
                text = self._cause(error)
            raise SandboxLost(f"the sandbox was lost: {text}", stage=stage, seconds=waited) from error

    def _path(self, path: str) -> bytes:
        if not path or "\0" in path:
            raise ValueError(f"{path!r} is not a path")
        return os.fsencode(posixpath.join(self._workdir, path))


def _pieces(data: bytes) -> Iterator[tuple[int, bytes, bool]]:
    """`data` as frames can carry it: where a piece starts, the piece, whether it is the last, which brings the mode (a
    read-only file could not be written on to)."""
    for at in range(0, max(1, len(data)), WRITE_CHUNK):
        yield at, data[at : at + WRITE_CHUNK], at + WRITE_CHUNK >= len(data)


def _encode(text: str) -> bytes:
    if "\0" in text:
        raise ValueError("a command or a variable cannot hold a NUL character")
    return text.encode("utf-8", "surrogateescape")


def _variable(name: str, value: str) -> bytes:
    if not name or "=" in name:
        raise ValueError(f"{name!r} is not the name of a variable")
    return _encode(f"{name}={value}")
