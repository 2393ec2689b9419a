"""Leases: a box lives on while we do. Beam ends a box whose lease is over, so those of a dead host go by themselves."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress

import anyio

from codeenv.sandbox.api import SandboxLost
from codeenv.sandbox.beam.sandbox import BeamSandbox

logger = logging.getLogger(__name__)
AT_ONCE = 16


class Leases:
    """Renews the leases of live boxes of one event loop, three times as often as they run out, in a task that is there
    while a box is."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._boxes: set[BeamSandbox] = set()
        self._task: asyncio.Task[None] | None = None

    def add(self, box: BeamSandbox) -> None:
        self._boxes.add(box)
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._renew(), name="codeenv: leases of boxes")

    async def remove(self, box: BeamSandbox) -> None:
        self._boxes.discard(box)
        if not self._boxes and self._task is not None:
            task, self._task = self._task, None
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def _renew(self) -> None:
        while True:
            await anyio.sleep(self.seconds / 3)
            limiter = anyio.CapacityLimiter(AT_ONCE)
            async with anyio.create_task_group() as group:
                for box in list(self._boxes):
                    group.start_soon(self._renew_one, box, limiter)

    async def _renew_one(self, box: BeamSandbox, limiter: anyio.CapacityLimiter) -> None:
        async with limiter:
            if box.seconds_left <= 0:
                return
            try:
                await box.container.live_on(min(self.seconds, box.seconds_left))
            except SandboxLost as error:  # its next call says so too
                logger.debug("sandbox %s: %s", box.id, error)
