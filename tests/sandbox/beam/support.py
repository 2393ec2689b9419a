"""What tests of Beam boxes are made with."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import anyio

from codeenv.sandbox import make_provider
from codeenv.sandbox.api import SandboxSpec
from codeenv.sandbox.beam.provider import BeamProvider
from codeenv.sandbox.beam.sandbox import BeamSandbox
from tests.beam_gateway.profiles import Conduct
from tests.beam_gateway.server import Gateway
from tests.conftest import provider_or_skip

GRPC = "(_poll_wrapper)", "(_run)"  # names of its threads


def hasty(**changes: Any) -> Conduct:
    """A server that is less patient than a real one."""
    return Conduct(
        **{
            "exec_connect": 0.1,
            "address_wait": 0.1,
            "manager_wait": 0.5,
            "ttl_check": 0.05,
            "inline_wait": 0.2,
            **changes,
        }
    )


def beam(gateway: Gateway, **settings: Any) -> BeamProvider:
    place = {"host": gateway.host, "port": gateway.port, "token": gateway.token, "token_in_box": "allow"}
    made = make_provider("beam", **{**place, **settings})
    assert isinstance(made, BeamProvider)
    return made


async def opened(provider: BeamProvider, **spec: Any) -> BeamSandbox:
    box = await provider.open(SandboxSpec(**spec))
    assert isinstance(box, BeamSandbox)
    return box


@asynccontextmanager
async def serving(**changes: Any) -> AsyncGenerator[Gateway]:
    """A gateway at which no box is left at the end, and nothing here."""
    tasks, threads = asyncio.all_tasks(), set(threading.enumerate())
    async with Gateway(provider=provider_or_skip("bubblewrap"), conduct=hasty(), **changes) as gateway:
        yield gateway
        gateway.faults.clear()
        with anyio.fail_after(10):
            while boxes := gateway.active():
                assert all(box.status == "STOPPING" for box in boxes), boxes
                await anyio.sleep(0.02)
    left = [repr(task.get_coro()) for task in asyncio.all_tasks() - tasks]
    assert [task for task in left if "grpc" not in task and "TestRunner" not in task] == []
    names = [thread.name for thread in set(threading.enumerate()) - threads]
    assert [name for name in names if not name.startswith("AnyIO worker") and not name.endswith(GRPC)] == []
