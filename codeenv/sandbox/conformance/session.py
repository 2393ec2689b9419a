"""Running checks on one backend: a box that they share, made anew whenever a check may have spoilt it."""

from __future__ import annotations

import time
from contextlib import suppress

import anyio

from codeenv.sandbox.api import ExportTooLarge, Sandbox, SandboxProvider, SandboxSpec
from codeenv.sandbox.archive import Archive
from codeenv.sandbox.conformance.catalogue import Check
from codeenv.sandbox.conformance.support import patience

PATIENCE = 5.0
"""Seconds that what ends soon may take, on top of 20 round trips."""

CHECK_SECONDS = 60.0
"""For a check, on top of 30 times the patience: nothing hangs for ever."""


class Session:
    """Runs checks one after the other, all on one event loop, until it is closed. Times are bounded by what a round
    trip to the box takes, measured when one is made."""

    def __init__(self, provider: SandboxProvider, spec: SandboxSpec | None = None) -> None:
        self._provider = provider
        self._spec = spec or SandboxSpec()
        self._box: Sandbox | None = None
        self._patience = PATIENCE

    async def run(self, check: Check) -> None:
        """:raises NotPromised: it is not for this backend. Any other exception: the promise is not kept."""
        box = await self._ready() if "box" in check.needs else None
        given = {"box": box, "provider": self._provider, "spec": self._spec}
        token = patience.set(self._patience)
        try:
            with anyio.fail_after(CHECK_SECONDS + 30 * self._patience):
                await check.run(**{name: given[name] for name in check.needs})
                if box is not None and not await self._cleared(box):
                    await self.close()
        except BaseException:
            await self.close()
            raise
        finally:
            patience.reset(token)

    async def _ready(self) -> Sandbox:
        if self._box is None:
            self._box = await self._provider.open(self._spec)
            trips: list[float] = []
            for _ in range(3):
                started = time.monotonic()
                await self._box.exec(["true"])
                trips.append(time.monotonic() - started)
            self._patience = PATIENCE + 20 * min(trips)
        return self._box

    async def _cleared(self, box: Sandbox) -> bool:
        """Make it like new: no process, no file in its work directory. False: it is not to be used again.
        :raises SandboxLost: the check has broken it."""
        try:
            with suppress(ExportTooLarge):
                await box.export(stop_processes=True)
            for path in {entry.path.split("/")[0] for entry in await box.list_files()}:
                await box.remove(path)
            return await box.export() == Archive()
        except OSError:
            return False

    async def close(self) -> None:
        """Destroy the shared box."""
        box, self._box = self._box, None
        if box is not None:
            await box.close()
