"""A box on this host: a process that runs our agent, and the socket to it. What contains that process is the backend's
affair (`bubblewrap`, or nothing at all in `subprocess`)."""

from __future__ import annotations

import os
import posixpath
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

import anyio
from anyio.lowlevel import RunVar

from codeenv.sandbox.agent import AgentSandbox
from codeenv.sandbox.api import (
    OUTPUT_LIMIT,
    ExecResult,
    Process,
    SandboxError,
    SandboxLost,
    SandboxSpec,
)
from codeenv.sandbox.channel import Channel
from codeenv.sandbox.environment import box_environment
from codeenv.sandbox.launch import Startable
from codeenv.sandbox.process import LocalProcess
from codeenv.sandbox.python import BoxPython

CREATE_SECONDS = 30.0
CLOSE_SECONDS = 2.0  # how long an agent may take to leave before it is killed from outside

_starting: RunVar[anyio.CapacityLimiter] = RunVar("codeenv_starting_boxes")


class LocalSandbox(AgentSandbox):
    """Implements `codeenv.sandbox.api.Sandbox`; see there for the contract."""

    def __init__(self, spec: SandboxSpec, python: BoxPython, launch: Startable) -> None:
        super().__init__(
            spec,
            workdir=launch.workdir or spec.workdir,
            scratch=launch.scratch,
            env=box_environment(posixpath.dirname(python.executable), spec.env),
        )
        self._on_close = launch.on_close
        self._out_of_memory = launch.out_of_memory
        self._killed = 0  # processes, for want of memory, that have been told of
        self._process, ours = launch.start()
        self._channel = self._line = Channel(ours)

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

    def _hang_up(self) -> None:
        self._channel.close()  # the agent sees it and leaves, and the box with it

    def _cause(self, error: SandboxLost) -> str:
        return " ".join(["its process is gone", self._process.said()]).strip()

    def _notices(self) -> list[str]:
        if self._out_of_memory() <= self._killed:
            return []
        self._killed = self._out_of_memory()
        return [f"out of memory: a process was killed; the ceiling is {self.spec.memory_mb} MiB"]

    async def _destroy(self) -> None:
        if not await self._process.gone(CLOSE_SECONDS):
            self._process.kill()
            await self._process.gone(None)
        await self._channel.release()
        self._process.release()
        self._on_close()
        self._closed = True


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
