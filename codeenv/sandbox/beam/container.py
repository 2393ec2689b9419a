"""A container of Beam's: commands run in it to their end, whatever a server's version makes of that; how it died."""

from __future__ import annotations

import errno
import math
import os
import random
import re
import shlex
import time
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import anyio

from codeenv.sandbox.api import SandboxLost
from codeenv.sandbox.beam.gateway import Gateway, Refused, Unreachable

LOST_SECONDS = 15.0
"""For how long a box that the gateway calls running but cannot reach is tried again."""
LOOK_SECONDS = 5.0  # for asking how a box is
CHECK_SECONDS = 5.0
"""How often whoever waits for a command looks whether its end can come at all."""
FIRST_LOOK, LAST_LOOK = 0.02, 2.0  # seconds between looks at a command that the gateway has not waited for
LOOKS = 3  # of which the last asks whether it runs still
LOOK_SHARE = 0.15  # of the time that it has taken so far: so much later its end may be seen
ENDS: Mapping[int, str] = {
    137: "out of memory, or killed (exit code 137)",
    558: "Beam ended it: its time to live was over, or its machine was taken away (exit code 558)",
    560: "it was stopped from outside (exit code 560)",
}
UNKNOWN = "it is gone, and Beam does not say how it ended: its machine may have been lost"
NOT_RUN = re.compile(r"executable file not found|fork/exec |chdir ", re.IGNORECASE)
OVER = ("complete", "completed", "exited", "failed", "error", "stopped", "terminated")


class NotRun(SandboxLost):
    """There is no such program in the box."""


class Container:
    def __init__(self, gateway: Gateway, id: str) -> None:
        self.gateway = gateway
        self.id = id
        self._scopes: set[anyio.CancelScope] = set()
        self._hung_up = False

    def hang_up(self) -> None:
        """Whoever waits is woken with `SandboxLost`, as is all that comes later."""
        self._hung_up = True
        for scope in self._scopes:
            scope.cancel()

    async def run(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        patience: float | None = None,
        meanwhile: Callable[[], Awaitable[None]] | None = None,
        whole: Callable[[str], bool] | None = None,
    ) -> str:
        """Have a command run, which may happen twice: its output, of which nothing is left when a reply was lost.
        `meanwhile` is called every CHECK_SECONDS until it ends; `patience` is LOST_SECONDS unless given; `whole` says
        of what it has printed that there will be no more.

        :raises SandboxLost: the box is gone, and why. :raises NotRun: it does not have the program.
        """
        with self._unless_hung_up():
            started = checked = time.monotonic()
            command = shlex.join(argv)
            done = await self._ask("SandboxExec", patience, command=command, cwd="/", env=dict(env or {}), wait=True)
            if done.done:
                return str(done.stdout)
            said, looks = "", 0
            while True:
                passed = time.monotonic() - started
                await anyio.sleep(min(LAST_LOOK, max(FIRST_LOOK, LOOK_SHARE * passed)) * random.uniform(0.8, 1.2))
                if meanwhile and time.monotonic() - checked >= CHECK_SECONDS:
                    await meanwhile()
                    checked = time.monotonic()
                looks += 1
                over = (not whole or looks % LOOKS == 0) and await self._is_over(done.pid)
                if not whole and not over:
                    continue
                # What it prints tells its end as well, in one question instead of two, unless a reply is lost. That
                # fails, and the output is lost, where it was no text, or too long for a message.
                reply = await self._call("SandboxStdout", pid=done.pid)
                said += str(reply.stdout)
                if over or (whole and whole(said)):
                    return said
                looks = looks if reply.ok else LOOKS - 1

    async def _is_over(self, pid: int) -> bool:
        status = await self._call("SandboxStatus", pid=pid)
        if not status.ok:
            await self._look()
            return True
        return status.exit_code >= 0 or status.status.lower() in OVER

    async def upload(self, path: str, data: bytes) -> None:
        """Write a file, which may happen twice. :raises SandboxLost: the box is gone, and why. :raises OSError: there
        is no room for it."""
        with self._unless_hung_up():
            await self._ask("SandboxUploadFile", None, container_path=path, mode=0o600, data=data)

    async def live_on(self, seconds: float) -> None:
        """Let it live for so long from now, or a little longer; tried once.

        :raises SandboxLost: it cannot be reached."""
        with self._unless_hung_up():
            reply = await self._call("SandboxUpdateTTL", ttl=max(1, math.ceil(seconds)))
        if not reply.ok:
            raise SandboxLost(f"Beam cannot reach it: {reply.error_msg}", stage="connection")

    @contextmanager
    def _unless_hung_up(self) -> Generator[None]:
        if not self._hung_up:
            with anyio.CancelScope() as scope:
                self._scopes.add(scope)
                try:
                    yield
                finally:
                    self._scopes.discard(scope)
            if not scope.cancelled_caught:
                return
        raise SandboxLost("it is closed", stage="connection")

    async def _ask(self, method: str, patience: float | None, **fields: object) -> Any:
        """Until it can be done."""
        end: float | None = None
        delay = 0.05
        while True:
            reply = await self._call(method, **fields)
            if reply.ok:
                return reply
            if NOT_RUN.search(reply.error_msg):
                raise NotRun(str(reply.error_msg), stage="connection")
            if "no space left" in reply.error_msg.lower():
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(fields.get("container_path", "")))
            status = await self._look()
            end = end or time.monotonic() + (LOST_SECONDS if patience is None else patience)
            if time.monotonic() > end:
                text = f"Beam calls it {status or 'unknown'} and cannot reach it: {reply.error_msg}"
                raise SandboxLost(text, stage="connection")
            await anyio.sleep(delay * random.uniform(0.5, 1.5))
            delay = min(1.0, delay * 2)

    async def _call(self, method: str, **fields: Any) -> Any:
        try:
            return await self.gateway.call(method, container_id=self.id, **fields)
        except (Refused, Unreachable) as error:
            raise SandboxLost(str(error), stage="connection") from error

    async def _look(self) -> str:
        """What Beam calls it; nothing if it cannot say. :raises SandboxLost: it has ended, and how."""
        try:
            status = await self.gateway.call("SandboxStatus", container_id=self.id, pid=0, patience=LOOK_SECONDS)
            if status.ok and status.exit_code >= 0 and status.status.lower() in OVER:
                code = int(status.exit_code)
                raise SandboxLost(ENDS.get(code, f"it ended with exit code {code}"), stage="connection")
            if status.ok:
                return str(status.status).lower()
            # It has no state, or the gateway cannot get at it.
            listed = await self.gateway.call("ListContainers", patience=LOOK_SECONDS)
        except (Refused, Unreachable):
            return ""
        if listed.ok and all(container.container_id != self.id for container in listed.containers):
            raise SandboxLost(UNKNOWN, stage="connection")
        return ""
