"""A provider in front of a real one."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Any

from codeenv.sandbox.api import SandboxProvider, SandboxSpec, opened


class Wrapping:
    """Is like `inner`, but that a subclass has its own `open`, through which `create` goes."""

    def __init__(self, inner: SandboxProvider) -> None:
        self.inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    async def open(self, spec: SandboxSpec) -> Any:
        return await self.inner.open(spec)

    def create(self, spec: SandboxSpec) -> AbstractAsyncContextManager[Any]:
        return opened(self, spec)
