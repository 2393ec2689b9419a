"""A gateway of each test's own, on the test's event loop, and boxes of it; afterwards nothing of either is left."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import wraps
from typing import Any

import anyio
import pytest

from codeenv.sandbox.beam import container, line, sandbox
from codeenv.sandbox.beam import gateway as channel
from codeenv.sandbox.beam.provider import BeamProvider
from codeenv.sandbox.beam.sandbox import BeamSandbox
from tests.beam_gateway.server import Gateway
from tests.sandbox.beam.support import beam, opened, serving

TEST_SECONDS = 60.0


def pytest_itemcollected(item: pytest.Item) -> None:
    """No test may hang."""
    if isinstance(item, pytest.Function) and inspect.iscoroutinefunction(item.obj):
        item.obj = _bounded(item.obj)


def _bounded(test: Callable[..., Awaitable[None]]) -> Callable[..., Awaitable[None]]:
    @wraps(test)
    async def bounded(**fixtures: Any) -> None:
        with anyio.fail_after(TEST_SECONDS):
            await test(**fixtures)

    return bounded


@pytest.fixture(autouse=True)
def haste(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waits that are measured in tens of seconds are so in seconds."""
    monkeypatch.setattr(channel, "PATIENCE", 6.0)
    monkeypatch.setattr(channel, "RPC_SECONDS", 0.7)
    monkeypatch.setattr(channel, "CREATE_RPC_SECONDS", 1.0)
    monkeypatch.setattr(container, "LOST_SECONDS", 3.0)
    monkeypatch.setattr(container, "LOOK_SECONDS", 1.0)
    monkeypatch.setattr(container, "CHECK_SECONDS", 0.3)
    monkeypatch.setattr(line, "MISSES", 8)
    monkeypatch.setattr(sandbox, "READY_SECONDS", 20.0)


@pytest.fixture
async def gateway(anyio_backend: Any) -> AsyncIterator[Gateway]:
    async with serving() as gateway:
        yield gateway


@pytest.fixture
def provider(gateway: Gateway) -> BeamProvider:
    return beam(gateway)


@pytest.fixture
async def box(provider: BeamProvider) -> AsyncIterator[BeamSandbox]:
    made = await opened(provider)
    yield made
    await made.close()
