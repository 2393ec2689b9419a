"""What the boxes of one provider share on one event loop: the channel, the leases, how many are made at a time."""

from __future__ import annotations

import logging
import random
import re
import time
from contextlib import AsyncExitStack
from functools import partial

import anyio

from codeenv.sandbox.api import SandboxError
from codeenv.sandbox.beam.census import Census
from codeenv.sandbox.beam.container import Container
from codeenv.sandbox.beam.gateway import Gateway, Refused, Unreachable, gateway_of
from codeenv.sandbox.beam.lease import Leases
from codeenv.sandbox.beam.records import record_of
from codeenv.sandbox.beam.sandbox import BeamSandbox
from codeenv.sandbox.beam.sdk import Account
from codeenv.sandbox.beam.uninterrupted import uninterrupted

logger = logging.getLogger(__name__)

QUOTA = re.compile(r"concurrency_limit|quota|rate.?limit|resource_exhausted|too many|capacity", re.IGNORECASE)
CREATE_PATIENCE = 300.0
"""Seconds for which a create waits for room under the account's quota."""
UNREACHABLE_PATIENCE = 60.0
"""Seconds after which a create that has got no reply is not tried again."""
GONE_SECONDS = 3.0
"""For how long a stopped box is watched until the gateway calls it stopping or over."""


class Fleet:
    def __init__(self, account: Account, census: Census, at_once: int, lease_seconds: float) -> None:
        self._account = account
        self._census = census
        self._users = 0
        self._stack = AsyncExitStack()
        self._entering = anyio.Lock()
        self._gateway: Gateway | None = None
        self.limiter = anyio.CapacityLimiter(at_once)
        self.leases = Leases(lease_seconds)
        self._record = record_of(account)

    async def enter(self) -> Gateway:
        async with self._entering:
            if self._gateway is None:
                self._gateway = await self._stack.enter_async_context(gateway_of(self._account))
            self._users += 1
            return self._gateway

    async def leave(self) -> None:
        """Not to be interrupted."""
        async with self._entering:
            self._users -= 1
            if not self._users and self._gateway is not None:
                doubtful = self._census.doubtful
                await self._census.settle(self._gateway)
                for stub in doubtful - self._census.doubtful:
                    self._record.ended(stub)
                self._gateway = None
                await self._stack.aclose()

    async def make(self, gateway: Gateway, stub: str, started: float) -> Container:
        """A container, with patience while the account's quota is used up or the gateway is not there. Not interrupted
        while a reply may come: what was made and is not known would be billed until its lease is over."""
        delay = 0.2
        self._record.will_make(stub)
        while True:
            try:
                reply = await uninterrupted(self._census.create(gateway, stub), partial(self._census.undo, gateway))
                if reply.ok and reply.container_id:
                    self._record.made(str(reply.container_id))
                    return Container(gateway, str(reply.container_id))
                said = str(reply.error_msg or "Beam gave no reason")
                patience = CREATE_PATIENCE if QUOTA.search(said) else 0.0
            except Unreachable as error:
                said, patience = str(error), UNREACHABLE_PATIENCE
            except Refused as error:
                said, patience = str(error), CREATE_PATIENCE if QUOTA.search(str(error)) else 0.0
            if stub in self._census.doubtful:
                self._record.made(stub)  # something may be there that somebody has to end
            if (seconds := time.monotonic() - started) >= patience:
                raise SandboxError(f"the sandbox could not be made: {said}", stage="create", seconds=seconds)
            await anyio.sleep(delay * random.uniform(0.5, 1.5))
            delay = min(15.0, delay * 2)

    async def end(self, box: BeamSandbox) -> None:
        """Stop a box for good. Never fails; what may be left is reported."""
        await self.leases.remove(box)
        container = box.container
        try:
            reply = await container.gateway.call("StopContainer", container_id=container.id)
            if not reply.ok and "not found" not in reply.error_msg.lower():
                logger.warning("sandbox %s: Beam did not stop it: %s", container.id, reply.error_msg)
            elif reply.ok and not await self._is_going(container):
                logger.warning("sandbox %s: Beam has been told to stop it and still calls it running", container.id)
            else:
                self._record.ended(container.id)
        except (Refused, Unreachable) as error:
            logger.warning("sandbox %s: it may live on until its lease is over: %s", container.id, error)
        finally:
            self._census.known.discard(container.id)
            await self.leave()

    async def _is_going(self, container: Container) -> bool:
        end = time.monotonic() + GONE_SECONDS
        delay = 0.05
        while True:
            status = await container.gateway.call("SandboxStatus", container_id=container.id, pid=0, patience=5.0)
            if not status.ok or status.status.lower() not in ("running", "pending"):
                return True
            if time.monotonic() > end:
                return False
            await anyio.sleep(delay)
            delay *= 2
