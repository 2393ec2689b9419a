"""A box on this host: a process that runs our agent, and the socket to it. What contains that process is the backend's
affair (`bubblewrap`, or nothing at all in `subprocess`)."""

from __future__ import annotations

import errno
import os
import posixpath
import time
import uuid
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

import anyio
from anyio.lowlevel import RunVar

from codeenv.sandbox.api import (
    OUTPUT_LIMIT,
    READ_LIMIT,
    SAVE_LIMIT,
    ExecResult,
    ExportTooLarge,
    MiB,
    Process,
    SandboxError,
    SandboxExpired,
    SandboxLost,
    SandboxSpec,
)
from codeenv.sandbox.archive import KINDS, Archive, ArchiveLimits, Entry, Kind, clean_path
from codeenv.sandbox.channel import Answer, Channel
from codeenv.sandbox.environment import box_environment
from codeenv.sandbox.launch import Startable
from codeenv.sandbox.process import LocalProcess
from codeenv.sandbox.python import BoxPython

CREATE_SECONDS = 30.0
FILE_SECONDS = 60.0
ANSWER_GRACE = 10.0  # how much later than a command's own timeout its answer may come before the box counts as lost
CLOSE_SECONDS = 2.0  # how long an agent may take to leave before it is killed from outside
WRITE_CHUNK = MiB

_starting: RunVar[anyio.CapacityLimiter] = RunVar("codeenv_starting_boxes")


class LocalSandbox:
    """Implements `codeenv.sandbox.api.Sandbox`; see there for the contract."""

    def __init__(self, spec: SandboxSpec, python: BoxPython, launch: Startable) -> None:
        self.spec = spec
        self._id = uuid.uuid4().hex[:12]
        self._workdir = launch.workdir or spec.workdir
        self._scratch = launch.scratch
        self._env = box_environment(posixpath.dirname(python.executable), spec.env)
        self._on_close = launch.on_close
        self._out_of_memory = launch.out_of_memory
        self._killed = 0  # processes, for want of memory, that have been told of
        self._created = time.monotonic()
        self._closed = False
        self._closing = False
        self._destroying = anyio.Lock()
        self._process, ours = launch.start()
        self._channel = Channel(ours)

    @property
    def id(self) -> str:
        return self._id

    @property
    def workdir(self) -> str:
        return self._workdir

    @property
    def scratch(self) -> str:
        return self._scratch

    @property
    def pid(self) -> int:
        """The host's pid of the outermost process of the box."""
        return self._process.pid

    async def start(self) -> None:
        """Wait until the agent answers. :raises SandboxError: it does not, with what the process said."""
        try:
            with anyio.fail_after(CREATE_SECONDS):
                await self._channel.send_raw(self._process.greeting)
                await self._process.settle()
                await self._channel.ready()
        except (SandboxLost, OSError) as error:
            seconds = time.monotonic() - self._created
            await self.close()
            said = self._process.said() or str(error) or f"no answer within {CREATE_SECONDS:.0f} s"
            raise SandboxError(f"the sandbox did not start: {said}", stage="create", seconds=seconds) from error
        except BaseException:
            await self.close()
            raise

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
        limit = None if timeout is None else max(0.0, timeout) + ANSWER_GRACE
        async with self._calling("exec", limit):
            answer = await self._channel.request(b"x", fields, path=os.fsdecode(directory), cancel=b"k")
        return self._ended(answer)

    @asynccontextmanager
    async def open_process(
        self, command: str | Sequence[str], *, cwd: str | None = None, env: Mapping[str, str] | None = None
    ) -> AsyncGenerator[Process]:
        directory = self._path(cwd or ".")
        fields = [directory, b"", str(OUTPUT_LIMIT).encode(), b"", b"0", b"0", b"", *self._command(command, env)]
        running = self._channel.streaming(b"p", fields, path=os.fsdecode(directory), cancel=b"k")
        async with AsyncExitStack() as stack:
            async with self._calling("open_process"):
                number, answer, stream = await stack.enter_async_context(running)

            async def kill() -> None:
                async with self._calling("kill"):
                    await self._channel.tell(b"K", number)

            async def wait() -> ExecResult:
                async with self._calling("wait", None):
                    await self._channel.ended(answer)
                return self._ended(answer)

            yield await stack.enter_async_context(LocalProcess.over(stream, kill, wait))

    def _command(self, command: str | Sequence[str], env: Mapping[str, str] | None) -> list[bytes]:
        argv = ["bash", "-c", command] if isinstance(command, str) else list(command)
        if not argv or not argv[0]:
            raise ValueError("an empty command cannot be run")
        variables = (_variable(name, value) for name, value in {**self._env, **(env or {})}.items())
        return [str(len(argv)).encode(), *(_encode(word) for word in argv), *variables]

    def _ended(self, answer: Answer) -> ExecResult:
        assert answer.result is not None
        code, timed_out, seconds, out, out_bytes, err, err_bytes, saved, notice = answer.result
        notices = [notice.decode()] if notice else []
        if code != b"0" and self._out_of_memory() > self._killed:
            self._killed = self._out_of_memory()
            notices.append(f"out of memory: a process was killed; the ceiling is {self.spec.memory_mb} MiB")
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

    async def read_file(self, path: str, *, limit: int = READ_LIMIT) -> bytes:
        async with self._calling("read_file"):
            answer = await self._channel.request(b"R", [self._path(path), str(limit).encode()], path=path)
        return b"".join(data for (data,) in answer.data)

    async def write_file(self, path: str, data: bytes, *, mode: int | None = None) -> None:
        async with self._calling("write_file"):
            for at, piece, last in _pieces(data):
                mode_text = str(mode).encode() if last and mode is not None else b""
                fields = [self._path(path), mode_text, b"1" if at else b"0", piece]
                await self._channel.request(b"W", fields, path=path)

    async def list_files(self, path: str = ".", *, limit: int = 10_000) -> list[Entry]:
        async with self._calling("list_files"):
            answer = await self._channel.request(b"L", [self._path(path), str(limit).encode()], path=path)
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
            await self._channel.request(b"D", [self._path(path)], path=path)

    async def export(
        self, path: str = ".", *, limits: ArchiveLimits | None = None, stop_processes: bool = False
    ) -> Archive:
        limits = limits or ArchiveLimits()
        fields = [self._path(path), str(limits.max_bytes).encode(), str(limits.max_entries).encode()]
        async with self._calling("export"):
            if stop_processes:
                await self._channel.request(b"q", [])
            try:
                answer = await self._channel.request(b"E", fields, path=path)
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
                        await self._channel.request(b"I", batch, path=path)
                        batch, size = batch[:1], 0
            if len(batch) > 1:
                await self._channel.request(b"I", batch, path=path)

    async def close(self) -> None:
        self._closing = True
        self._channel.close()  # before anything can interrupt us: the agent sees it and leaves, and the box with it
        interrupted: BaseException | None = None
        while not self._closed:
            try:
                with anyio.CancelScope(shield=True):
                    async with self._destroying:
                        await self._destroy()
            except anyio.get_cancelled_exc_class() as error:
                # asyncio's own cancel() goes through anyio's shield. What has begun to close is closed first.
                interrupted = error
        if interrupted is not None:
            raise interrupted

    async def _destroy(self) -> None:
        if self._closed:
            return
        if not await self._process.gone(CLOSE_SECONDS):
            self._process.kill()
            await self._process.gone(None)
        await self._channel.release()
        self._process.release()
        self._on_close()
        self._closed = True

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
                self._channel.close()  # whatever it is doing: no later call need wait as long
            else:
                text = " ".join(["its process is gone", self._process.said()]).strip()
            raise SandboxLost(f"the sandbox was lost: {text}", stage=stage, seconds=waited) from error

    def _path(self, path: str) -> bytes:
        if not path or "\0" in path:
            raise ValueError(f"{path!r} is not a path")
        return os.fsencode(posixpath.join(self._workdir, path))


async def start_box(sandbox: Callable[[], LocalSandbox]) -> LocalSandbox:
    """Make a box and wait for it, with no more boxes starting at once than this machine can start."""
    limiter = _starting.get(None)
    if limiter is None:
        limiter = anyio.CapacityLimiter(2 * (os.cpu_count() or 1))
        _starting.set(limiter)
    async with limiter:
        try:
            box = sandbox()
        except OSError as error:  # no descriptor, no process, no memory is left, or what is to be started is gone
            raise SandboxError(f"the sandbox process could not be started: {error}", stage="create") from error
        await box.start()
        return box


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
