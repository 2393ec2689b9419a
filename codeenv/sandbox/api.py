"""The sandbox port: what a sandbox is. Backends implement it; nothing above knows one backend from another."""

from __future__ import annotations

import posixpath
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import Literal, Protocol, runtime_checkable

from pydantic import BaseModel, ConfigDict, Field, field_validator

from codeenv.sandbox.archive import Archive, ArchiveLimits, Entry

MiB = 1024 * 1024
OUTPUT_LIMIT = 64 * 1024
SAVE_LIMIT = 64 * MiB
READ_LIMIT = 64 * MiB


class SandboxError(Exception):
    """A sandbox could not be made, was lost, or broke. Never the policy's fault. `stage` says what was being done;
    `seconds` how long that had taken (None where it was not measured)."""

    def __init__(self, message: str, *, stage: str, seconds: float | None = None) -> None:
        super().__init__(message)
        self.stage = stage
        self.seconds = seconds

    @property
    def told(self) -> str:
        """Stage, seconds and message in one line."""
        took = f" after {self.seconds:.2f} s" if self.seconds is not None else ""
        return f"{self.stage}{took}: {self}"


class SandboxUnavailable(SandboxError):
    """No such backend works on this host; the message says what failed and how to allow it."""


class SandboxLost(SandboxError):
    """The box died or no longer answers: every later call fails alike."""


class SandboxExpired(SandboxLost):
    """The box reached its TTL and was destroyed."""


class ExportTooLarge(Exception):
    """What was to be exported is over its limits: the policy's doing, not a fault of the sandbox."""


class UnsupportedSpec(ValueError):
    """A spec asks for what this backend cannot enforce or provide. Raised at load time, never a silent downgrade."""


Hardness = Literal["hard", "soft", "none"]


class SandboxSpec(BaseModel):
    """What a box must be. Sizes in MiB, times in seconds."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    python: str | None = None
    """The box's Python: a command or a path on the host (local), a version (`3.12`). None: the one we run under."""
    packages: tuple[str, ...] = ()
    """Python packages (PEP 508 requirements) that the box's Python can import, read-only."""
    image: str | None = None
    """A container image, for backends that have them."""
    cpus: float | None = Field(default=None, gt=0)
    """CPU ceiling in cores. None: no ceiling."""
    memory_mb: int = Field(default=2048, ge=64)
    disk_mb: int = Field(default=512, ge=1)
    """Size of the work directory, and of /tmp, each."""
    processes: int = Field(default=256, ge=8)
    network: bool = False
    gpu: str | None = None
    ttl_seconds: float = Field(default=3600.0, gt=0, allow_inf_nan=False)
    """The box is destroyed this long after its creation, whatever happens to us."""
    env: Mapping[str, str] = Field(default_factory=dict)
    workdir: str = "/workspace"

    @field_validator("workdir")
    @classmethod
    def _is_a_place(cls, value: str) -> str:
        if not value.startswith("/") or value == "/" or "\0" in value or posixpath.normpath(value) != value:
            raise ValueError("must be an absolute path, normal, and not the root itself")
        return value


@dataclass(frozen=True)
class Capabilities:
    """What a backend can enforce or provide on this host."""

    isolation: Literal["none", "namespaces", "gvisor", "vm"]
    memory: Hardness
    processes: Hardness
    disk: Hardness
    cpus: Hardness
    network_off: bool
    shares_host: bool = False
    """Its boxes run on this host's cores: more at once only slows each."""
    images: bool = False
    gpu: bool = False
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Probe:
    """Whether a backend works here, found by running it. `error` says what failed and how to allow it."""

    backend: str
    available: bool
    error: str = ""
    capabilities: Capabilities | None = None
    versions: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True)
class ExecResult:
    """How a command ended.

    `exit_code` is 128+n after signal n. `stdout` and `stderr` hold at most the output limit each: when more came, the
    first and the last half of the limit, and `stdout_bytes` / `stderr_bytes` say how much there was. `saved_bytes` of
    the output stand in the file that `save_to` named (0: nothing was cut, or it could not be written). `notice` is what
    the box itself has to say of the call, for the model to read.
    """

    exit_code: int
    stdout: bytes
    stderr: bytes
    timed_out: bool
    seconds: float
    stdout_bytes: int
    stderr_bytes: int
    saved_bytes: int = 0
    notice: str = ""

    @property
    def truncated(self) -> bool:
        return self.stdout_bytes > len(self.stdout) or self.stderr_bytes > len(self.stderr)


class Process(Protocol):
    """A command that runs in a box, and the two-way stream of bytes that is its stdin and its stdout at once."""

    async def send(self, data: bytes) -> None:
        """Write all of `data`; waits while the command does not read. :raises BrokenPipeError: it reads no more. A send
        that is cancelled may have written a part."""
        ...

    async def receive(self) -> bytes:
        """What it has written next, at most 256 KiB; empty at the end: all that held the stream have closed it."""
        ...

    async def kill(self) -> None:
        """Kill the command and all that it started, daemons included; `wait` then tells of it."""
        ...

    async def wait(self) -> ExecResult:
        """How it ended, as soon as the main process has. `stdout` is empty; `stderr` is cut as that of `exec`."""
        ...


@runtime_checkable
class Sandbox(Protocol):
    """One isolated machine, alive for one episode. Paths: relative ones are below `workdir`; symlinks resolve inside
    the box only. Every call may raise `SandboxLost`; file calls raise the builtin `FileNotFoundError`,
    `IsADirectoryError`, `NotADirectoryError`, `PermissionError` or another `OSError` that names the path."""

    @property
    def id(self) -> str: ...

    @property
    def workdir(self) -> str: ...

    @property
    def scratch(self) -> str:
        """A directory of the box outside `workdir`, for files that are not the policy's work."""
        ...

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
        """Run `command`: a str with `bash -c`, a sequence as the argv it is. Returns as soon as the main process ends,
        also when a child keeps its pipes open; such children live on. stdin is at its end unless given. After `timeout`
        seconds (0: at once) the whole process tree dies and what was printed so far is kept. `combine` sends stderr
        into stdout, in order; `save_to` names a new file in the box that gets all of stdout (up to 64 MiB) when it is
        over `output_limit` bytes. What cannot be run is exit code 127 (not found) or 126, as in a shell.

        :raises OSError: `cwd` is missing, no directory, or may not be entered. :raises ValueError: a NUL, or an
            empty argv.
        """
        ...

    def open_process(
        self, command: str | Sequence[str], *, cwd: str | None = None, env: Mapping[str, str] | None = None
    ) -> AbstractAsyncContextManager[Process]:
        """Run `command` as `exec` does, for the length of an `async with` and without a time limit, with a stream to it
        instead of stdin and stdout. At the end of the block it is killed with all that it started.

        :raises OSError, ValueError: as `exec`.
        """
        ...

    async def read_file(self, path: str, *, limit: int = READ_LIMIT) -> bytes:
        """The bytes of a regular file. Over `limit` bytes: `OSError` with errno EFBIG."""
        ...

    async def write_file(self, path: str, data: bytes, *, mode: int | None = None) -> None:
        """Create or overwrite a file; parents are made; an existing file keeps its mode unless `mode` is given."""
        ...

    async def list_files(self, path: str = ".", *, limit: int = 10_000) -> list[Entry]:
        """Everything below `path`, without contents, in order of path, special files left out. Over `limit` entries:
        `OSError` with errno E2BIG."""
        ...

    async def remove(self, path: str) -> None:
        """Remove a file, a link or a whole directory."""
        ...

    async def export(
        self, path: str = ".", *, limits: ArchiveLimits | None = None, stop_processes: bool = False
    ) -> Archive:
        """The tree below `path` as one bounded archive. `stop_processes` kills every process of the box first, so that
        nothing changes meanwhile. :raises ExportTooLarge: over the limits."""
        ...

    async def import_(self, archive: Archive, path: str = ".") -> None:
        """Lay an archive below `path`, over what is there: as in `Archive.overlay`, what is in its way goes."""
        ...

    async def close(self) -> None:
        """Destroy the box. Idempotent, never fails; after it every process of the box is gone. A cancellation
        meanwhile, also one of asyncio's own, is put off until then."""
        ...


class SandboxProvider(Protocol):
    """Makes sandboxes of one backend."""

    @property
    def name(self) -> str: ...

    @property
    def capabilities(self) -> Capabilities:
        """What it can enforce and provide on this host."""
        ...

    def probe(self) -> Probe:
        """Run the smallest box and say whether this backend works here. Blocks for at most 10 s."""
        ...

    def check(self, spec: SandboxSpec) -> None:
        """Prepare what the spec needs (a Python, packages), once. Blocks. :raises UnsupportedSpec: it cannot be met."""
        ...

    def create(self, spec: SandboxSpec) -> AbstractAsyncContextManager[Sandbox]:
        """Make a box, for the length of an `async with`. :raises SandboxError: it could not be made."""
        ...

    async def open(self, spec: SandboxSpec) -> Sandbox:
        """Make a box that the caller must `close()`, for callers whose box outlives one coroutine."""
        ...


@asynccontextmanager
async def opened(provider: SandboxProvider, spec: SandboxSpec) -> AsyncGenerator[Sandbox]:
    """`create` for a provider that has `open`. :raises SandboxError: the box could not be made."""
    box = await provider.open(spec)
    try:
        yield box
    finally:
        await box.close()
