"""Starting the process of a local box."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import anyio
import anyio.to_thread

NICENESS = 5


class Outermost(Protocol):
    """The outermost process of a box, as the host sees it."""

    @property
    def pid(self) -> int:
        """The host's; 0 when it never came to be."""
        ...

    @property
    def greeting(self) -> bytes:
        """What it is to be sent first."""
        ...

    async def settle(self) -> None:
        """While it gets ready: put it under its ceilings. :raises OSError: the kernel refuses."""
        ...

    async def gone(self, seconds: float | None) -> bool:
        """Its socket is closed: wait until no process of the box is left, for so long at most."""
        ...

    def kill(self) -> None: ...

    def said(self) -> str:
        """What it had to say so far, which is the reason where it has failed."""
        ...

    def release(self) -> None:
        """Once it is gone."""
        ...


class Startable(Protocol):
    """How to have a box made, how many of its processes have died for want of memory, what to do when it has gone."""

    @property
    def workdir(self) -> str | None: ...
    @property
    def scratch(self) -> str: ...
    @property
    def out_of_memory(self) -> Callable[[], int]: ...
    @property
    def on_close(self) -> Callable[[], None]: ...
    def start(self) -> tuple[Outermost, socket.socket]: ...


class Child:
    """A child process of ours."""

    def __init__(
        self, process: subprocess.Popen[bytes], greeting: bytes, on_start: Callable[[int], None] | None
    ) -> None:
        self._process, self.greeting, self._on_start = process, greeting, on_start
        self._said = ""
        self.kill = process.kill

    @property
    def pid(self) -> int:
        return self._process.pid

    async def settle(self) -> None:
        if self._on_start is not None:
            await anyio.to_thread.run_sync(self._on_start, self.pid)

    async def gone(self, seconds: float | None) -> bool:
        """Without a thread."""
        with anyio.move_on_after(seconds) as scope:
            if self._process.returncode is not None:
                return True
            try:
                pidfd = os.pidfd_open(self._process.pid)
            except OSError:  # no descriptor is left to watch it by
                while self._process.poll() is None:  # noqa: ASYNC110
                    await anyio.sleep(0.01)
                return True
            try:
                if self._process.poll() is None:
                    await anyio.wait_readable(pidfd)
            finally:
                os.close(pidfd)
        return not scope.cancelled_caught

    def said(self) -> str:
        stream = self._process.stderr
        if stream is not None and not stream.closed:
            os.set_blocking(stream.fileno(), False)
            text = self._said + (stream.read() or b"").decode("utf-8", "replace")
            self._said = text.strip()[-2000:]
        return self._said

    def release(self) -> None:
        self._process.wait()
        self.said()
        assert self._process.stderr is not None
        self._process.stderr.close()


@dataclass(frozen=True)
class Launch:
    """How to start a box: the command that becomes the agent, descriptors it needs (those in `own_fds` are closed here
    once it has started), what to do with its pid in a thread while it starts, how many of its processes have died for
    want of memory, what to do when it has gone."""

    argv: list[str]
    greeting: bytes = b""
    pass_fds: tuple[int, ...] = ()
    own_fds: tuple[int, ...] = ()
    workdir: str | None = None
    scratch: str = "/tmp"
    on_start: Callable[[int], None] | None = None
    out_of_memory: Callable[[], int] = lambda: 0
    on_close: Callable[[], None] = lambda: None

    def start(self) -> tuple[Outermost, socket.socket]:
        """The process and our end of its control socket. :raises OSError: it could not be started."""
        ours = theirs = None
        try:
            ours, theirs = socket.socketpair()
            # On the event loop's own thread: a box dies with the thread that started it (PR_SET_PDEATHSIG). In a
            # session of its own: Ctrl-C is for us, who may still want the workspace; no variable of ours comes in.
            process = subprocess.Popen(
                self.argv, stdin=theirs.fileno(), stdout=theirs.fileno(), stderr=subprocess.PIPE, env={},
                pass_fds=self.pass_fds, cwd="/", start_new_session=True,
            )  # fmt: skip
            # All that runs in boxes yields to us: on a crowded host the event loop would wait its turn behind them.
            os.setpriority(os.PRIO_PROCESS, process.pid, NICENESS)
            return Child(process, self.greeting, self.on_start), ours
        except BaseException:
            if ours:
                ours.close()
            self.on_close()
            raise
        finally:
            if theirs:
                theirs.close()
            for descriptor in self.own_fds:
                os.close(descriptor)
