"""Where notebooks' episodes live: a thread with a loop of its own, one a process.

So a call may wait for a box without the caller's loop (`OpenEpisode.close`), a cell that is interrupted or that blocks
its loop holds up no episode, and what is open when the interpreter ends is closed before.
"""

from __future__ import annotations

import asyncio
import atexit
import logging
import os
import threading
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from typing import Protocol, TypeVar

import anyio
from anyio.from_thread import BlockingPortal

logger = logging.getLogger(__name__)

TICK = 0.1  # seconds until an interrupt is noticed

Result = TypeVar("Result")


class Tenant(Protocol):
    """What lives here: something with a box."""

    async def close(self) -> None: ...


class Home:
    def __init__(self) -> None:
        self._process = os.getpid()
        self._tenants: set[Tenant] = set()
        self._ready = threading.Event()
        self._portal: BlockingPortal
        self._loop: asyncio.AbstractEventLoop
        self._left: asyncio.Queue[Tenant | None]
        # A daemon: the interpreter waits for other threads before it tells anybody that it ends.
        self._thread = threading.Thread(target=anyio.run, args=(self._live,), name="codeenv episodes", daemon=True)
        self._thread.start()
        self._ready.wait()
        atexit.register(self._end)

    async def _live(self) -> None:
        self._loop, self._left = asyncio.get_running_loop(), asyncio.Queue()
        async with anyio.create_task_group() as closing:
            async with BlockingPortal() as self._portal:
                self._ready.set()
                while (tenant := await self._left.get()) is not None:
                    closing.start_soon(self._close, tenant)
                await self._portal.stop(cancel_remaining=True)
            for tenant in list(self._tenants):
                closing.start_soon(self._close, tenant)

    @property
    def alive(self) -> bool:
        """False in a fork of the process: threads do not come along."""
        return self._process == os.getpid() and self._thread.is_alive()

    async def call(self, function: Callable[..., Awaitable[Result]], *args: object) -> Result:
        """Await it here. A cancelled caller has it cancelled, and goes on when it has ended.

        :raises RuntimeError: this process is a fork of the one that lives here.
        """
        self._check()
        with _awake(asyncio.get_running_loop()):
            return await self._portal.call_async(function, *args)

    def wait_for(self, function: Callable[..., Awaitable[Result]], *args: object) -> Result:
        """The same without a loop: the calling thread waits.

        :raises RuntimeError: as `call`.
        """
        self._check()
        return self._portal.call(function, *args)

    def _check(self) -> None:
        if not self.alive:
            raise RuntimeError("the episode lives in another process, of which this one is a fork")

    def enter(self, tenant: Tenant) -> None:
        self._tenants.add(tenant)

    def leave(self, tenant: Tenant) -> None:
        """Nobody holds it any more: have it closed. From whatever thread, as garbage is collected in any."""
        if self.alive:
            self._loop.call_soon_threadsafe(self._left.put_nowait, tenant)

    async def _close(self, tenant: Tenant) -> None:
        try:
            await tenant.close()
        except Exception:
            logger.exception("an episode could not be closed")
        finally:
            self._tenants.discard(tenant)

    def _end(self) -> None:
        """The interpreter ends."""
        if self.alive:
            self._loop.call_soon_threadsafe(self._left.put_nowait, None)
            self._thread.join()


@contextmanager
def _awake(loop: asyncio.AbstractEventLoop) -> Generator[None]:
    """A kernel's handler of an interrupt puts its callback into the loop without waking it: one that waits for nothing
    else would not be interrupted before the call has ended."""

    def tick() -> None:
        nonlocal timer
        timer = loop.call_later(TICK, tick)

    timer = loop.call_later(TICK, tick)
    try:
        yield
    finally:
        timer.cancel()


_home: Home | None = None
_making = threading.Lock()


def home() -> Home:
    """The process's one, made when it is first asked for."""
    global _home
    with _making:
        if _home is None or not _home.alive:
            _home = Home()
        return _home
