"""A gateway of a module's own, and ways to be a process that uses it as people would: by beam-client's variables."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.beam_gateway.client import Client
from tests.beam_gateway.profiles import Conduct
from tests.beam_gateway.server import Gateway
from tests.conftest import provider_or_skip

UNSET = ("BEAM_TOKEN", "BETA9_TOKEN", "GATEWAY_HOST", "GATEWAY_PORT", "BETA9_GATEWAY_HOST", "BETA9_GATEWAY_PORT",
         "CONFIG_PATH")  # fmt: skip


@pytest.fixture(scope="module")
async def lasting_gateway(anyio_backend: Any) -> AsyncIterator[Gateway]:
    async with Gateway(provider=provider_or_skip("bubblewrap"), conduct=Conduct(ttl_check=0.1)) as gateway:
        yield gateway


@pytest.fixture
async def gateway(lasting_gateway: Gateway) -> AsyncIterator[Gateway]:
    yield lasting_gateway
    lasting_gateway.faults.clear()
    lasting_gateway.conduct = Conduct(ttl_check=0.1)
    for container in lasting_gateway.active():
        await container.die(560)


@pytest.fixture
async def client(gateway: Gateway) -> AsyncIterator[Client]:
    async with Client(gateway) as client:
        yield client


@pytest.fixture
def nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The environment of somebody without an account, for this process and for others."""
    for name in UNSET:
        monkeypatch.delenv(name, raising=False)
    own = {
        "HOME": str(tmp_path),
        "CODEENV_STATE_DIR": str(tmp_path / "state"),
        "CODEENV_CACHE_DIR": str(tmp_path / "cache"),
    }
    for name, value in own.items():
        monkeypatch.setenv(name, value)
    return dict(os.environ)


@pytest.fixture
def somebody(nobody: dict[str, str], gateway: Gateway) -> dict[str, str]:
    """The environment of somebody who has an account on the gateway, for other processes."""
    return {
        **nobody,
        "BEAM_TOKEN": gateway.token,
        "GATEWAY_HOST": gateway.host,
        "GATEWAY_PORT": str(gateway.port),
    }
