"""One gateway, one client and one lasting box for the tests of a module; the gateway's conduct is as new for each."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.beam_gateway.client import Client
from tests.beam_gateway.container import STOPPED_BY_USER
from tests.beam_gateway.profiles import Conduct
from tests.beam_gateway.server import Gateway
from tests.conftest import provider_or_skip


@pytest.fixture(scope="module")
async def lasting(anyio_backend: Any) -> AsyncIterator[tuple[Gateway, Client, str]]:
    async with Gateway(provider=provider_or_skip("bubblewrap")) as gateway, Client(gateway) as client:
        yield gateway, client, await client.box()


@pytest.fixture
async def gateway(lasting: tuple[Gateway, Client, str]) -> AsyncIterator[Gateway]:
    """One gateway for all tests, as a real one but that it waits less for boxes and longer for commands."""
    gateway = lasting[0]
    gateway.conduct = Conduct(
        exec_connect=0.1, address_wait=0.1, manager_wait=0.1, ttl_check=0.05, inline_wait=30.0, connect_ready=30.0
    )
    yield gateway
    gateway.faults.clear()
    gateway.conduct = Conduct()
    for container in gateway.active():
        if container.id != lasting[2]:
            await gateway.kill(container.id, STOPPED_BY_USER)


@pytest.fixture
def client(lasting: tuple[Gateway, Client, str], gateway: Gateway) -> Client:
    return lasting[1]


@pytest.fixture
async def box(lasting: tuple[Gateway, Client, str], client: Client) -> str:
    """A box for all tests that break none; without what others left in its directory."""
    await client.exec(lasting[2], "sh -c 'rm -rf /workspace/*'")
    return lasting[2]
