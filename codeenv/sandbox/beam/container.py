"""A container of Beam's: commands run in it to their end, whatever a server's version makes of that; how it died."""

from __future__ import annotations

import random
import shlex
import time
from collections.abc import Mapping, Sequence
from typing import Any

import anyio

from codeenv.sandbox.api import SandboxLost
from codeenv.sandbox.beam.gateway import Gateway, Refused, Unreachable

LOST_SECONDS = 15.0
"""For how long a box that the gateway calls running but cannot reach is tried again."""
FIRST_LOOK, LAST_LOOK = 0.02, 2.0  # seconds between looks at a command that the gateway has not waited for
LOOK_SHARE = 0.1  # of the time that it has taken so far: so much later its end may be seen
ENDS: Mapping[int, str] = {
    137: "out of memory, or killed (exit code 137)",
    558: "Beam ended it: its time to live was over, or its machine was taken away (exit code 558)",
    560: "it was stopped from outside (exit code 560)",
}
OVER = ("complete", "completed", "exited", "failed", "error", "stopped", "terminated")


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
        self, argv: Sequence[str], *, env: Mapping[str, str] | None = None, patience: float = LOST_SECONDS
    ) -> str:
        """Have a command run, which may happen twice: its output, of which nothing is left when a reply was lost.

        :raises SandboxLost: the box is gone, and why.
        """
        started = time.monotonic()
        command = shlex.join(argv)
        done = await self._ask("SandboxExec", patience, command=command, cwd="/", env=dict(env or {}), wait=True)
        if done.done:
            return str(done.stdout)
        while True:
            passed = time.monotonic() - started
            await anyio.sleep(min(LAST_LOOK, max(FIRST_LOOK, LOOK_SHARE * passed)) * random.uniform(0.8, 1.2))
            status = await self._ask("SandboxStatus", patience, pid=done.pid)
            if status.exit_code >= 0 or status.status.lower() in OVER:
                return str((await self._ask("SandboxStdout", patience, pid=done.pid)).stdout)

    async def upload(self, path: str, data: bytes) -> None:
        """Write a file, which may happen twice. :raises SandboxLost: the box is gone, and why."""
        await self._ask("SandboxUploadFile", LOST_SECONDS, container_path=path, mode=0o600, data=data)

    async def live_on(self, seconds: float) -> None:
        """Let it live for so long from now. :raises SandboxLost: it is gone."""
        await self._ask("SandboxUpdateTTL", LOST_SECONDS, ttl=max(1, round(seconds)))

    async def _ask(self, method: str, patience: float, **fields: object) -> Any:
        end: float | None = None
        delay = 0.05
        while True:
            reply = await self._call(method, fields)
            if reply.ok:
                return reply
            end = end or time.monotonic() + patience
            if time.monotonic() > end or await self.is_over():
                raise SandboxLost(f"Beam cannot reach it: {reply.error_msg}", stage="connection")
            await anyio.sleep(delay * random.uniform(0.5, 1.5))
            delay = min(1.0, delay * 2)

    async def _call(self, method: str, fields: Mapping[str, Any]) -> Any:
        with anyio.CancelScope() as scope:
            self._scopes.add(scope)
            try:
                if not self._hung_up:
                    return await self.gateway.call(method, container_id=self.id, **fields)
            except (Refused, Unreachable) as error:
                raise SandboxLost(str(error), stage="connection") from error
            finally:
                self._scopes.discard(scope)
        raise SandboxLost("it is closed", stage="connection")

    async def is_over(self) -> bool:
        """False while the gateway has it running, or does not say. :raises SandboxLost: it has ended, and how."""
        try:
            status = await self.gateway.call("SandboxStatus", container_id=self.id, pid=0, patience=5.0)
        except (Refused, Unreachable):
            return False
        if not status.ok:
            return "get sandbox status" not in status.error_msg
        if status.exit_code >= 0 and status.status.lower() in OVER:
            code = status.exit_code
            raise SandboxLost(ENDS.get(code, f"it ended with exit code {code}"), stage="connection")
        return False
