"""For how long boxes live: what a backend bills."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

from codeenv.sandbox.api import Capabilities, Probe, Sandbox, SandboxProvider, SandboxSpec


class Metered:
    """A provider of which `lived` hears the seconds that each box of `create` took, from the wish for it to its end,
    also of one that could not be made. Implements `codeenv.sandbox.api.SandboxProvider`."""

    def __init__(self, inner: SandboxProvider, lived: Callable[[float], None]) -> None:
        self._inner = inner
        self._lived = lived

    @property
    def name(self) -> str:
        return self._inner.name

    @property
    def capabilities(self) -> Capabilities:
        return self._inner.capabilities

    def probe(self) -> Probe:
        return self._inner.probe()

    def check(self, spec: SandboxSpec) -> None:
        self._inner.check(spec)

    @asynccontextmanager
    async def create(self, spec: SandboxSpec) -> AsyncGenerator[Sandbox]:
        started = time.monotonic()
        try:
            async with self._inner.create(spec) as box:
                yield box
        finally:
            self._lived(time.monotonic() - started)

    async def open(self, spec: SandboxSpec) -> Sandbox:
        """Not counted: its end is the caller's."""
        return await self._inner.open(spec)
