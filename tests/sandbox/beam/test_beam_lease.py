"""Leases: boxes live on while we do, and not much longer; a stop is certain, or it is reported."""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import grpc
import pytest

from codeenv.sandbox.api import SandboxLost
from codeenv.sandbox.beam import fleet
from codeenv.sandbox.beam.lease import Leases
from codeenv.sandbox.beam.provider import BeamProvider
from codeenv.sandbox.beam.sandbox import BeamSandbox
from tests.beam_gateway.container import OUT_OF_MEMORY, Container
from tests.beam_gateway.server import Gateway
from tests.sandbox.beam.support import opened

pytestmark = pytest.mark.anyio
ROOT = Path(__file__).parents[3]
LEASE = 1.2  # seconds; a provider takes 30 at least


@pytest.fixture
async def leased(gateway: Gateway, provider: BeamProvider, monkeypatch: pytest.MonkeyPatch) -> BeamSandbox:
    """A box whose lease ends in about a second. Beam counts in whole seconds."""
    init = Leases.__init__

    def short(leases: Leases, seconds: float) -> None:
        init(leases, LEASE)

    monkeypatch.setattr(Leases, "__init__", short)
    box = await opened(provider)
    await box.container.live_on(LEASE)
    return box


def container_of(gateway: Gateway, box: BeamSandbox) -> Container:
    return gateway.containers[box.container.id]


RENEWALS: dict[str, dict[str, Any]] = {
    "fine": {},
    "lost-before": {"status": grpc.StatusCode.UNAVAILABLE},
    "lost-after": {"status": grpc.StatusCode.UNAVAILABLE, "after": True},
    "twice": {"copies": 2},
    "not-connected": {"answer": {"ok": False, "error_msg": "Failed to connect to sandbox"}},
    "hangs": {"hang": True},
}


async def test_live_boxes_outlive_their_leases(gateway: Gateway, provider: BeamProvider, leased: BeamSandbox) -> None:
    """Renewals that go wrong are made good, and a box that cannot be reached keeps no other from its own."""
    boxes = {name: await opened(provider) for name in RENEWALS}
    unreachable = await opened(provider)

    def add(box: BeamSandbox, **fault: Any) -> None:
        gateway.faults.add("SandboxUpdateTTL", when=lambda request: request.container_id == box.container.id, **fault)

    for name, box in boxes.items():
        await box.container.live_on(LEASE)
        for skip in (0, 2, 4):
            add(box, skip=skip, **RENEWALS[name])
    add(unreachable, times=None, hang=True)
    await anyio.sleep(3.5 * LEASE)
    for name, box in boxes.items():
        assert (await box.exec("echo fine")).stdout == b"fine\n", name
    for box in (*boxes.values(), leased, unreachable):
        await box.close()


async def test_a_box_that_nobody_renews_is_lost(gateway: Gateway, leased: BeamSandbox) -> None:
    """Its lease is over, but not the time that it was promised."""
    gateway.faults.add("SandboxUpdateTTL", times=None, status=grpc.StatusCode.UNAVAILABLE)
    with pytest.raises(SandboxLost, match="its time to live was over, or its machine was taken away") as raised:
        await leased.exec("sleep 60")
    assert type(raised.value) is SandboxLost
    await leased.close()


async def test_the_renewing_ends_with_the_last_box(gateway: Gateway, provider: BeamProvider) -> None:
    def renewing() -> list[str]:
        return [task.get_name() for task in asyncio.all_tasks() if "leases" in task.get_name()]

    boxes = [await opened(provider) for _ in range(3)]
    assert len(renewing()) == 1
    for box in boxes[:2]:
        await box.close()
    assert len(renewing()) == 1
    await boxes[2].close()
    assert renewing() == []
    again = await opened(provider)
    assert len(renewing()) == 1
    await again.close()
    assert renewing() == []


SCRIPT = """
import asyncio, sys
from tests.sandbox.beam.support import opened
from codeenv.sandbox import make_provider
from codeenv.sandbox.beam import lease

async def main(host, port, token):
    provider = make_provider("beam", host=host, port=int(port), token=token, token_in_box="allow")
    for _ in range(3):
        box = await opened(provider)
        await box.container.live_on(2)
    print("up", flush=True)
    await asyncio.sleep(600)

init = lease.Leases.__init__
lease.Leases.__init__ = lambda self, seconds: init(self, 2.0)
asyncio.run(main(*sys.argv[1:]))
"""


async def test_the_boxes_of_a_dead_host_expire(gateway: Gateway) -> None:
    argv = [sys.executable, "-c", SCRIPT, gateway.host, str(gateway.port), gateway.token]
    process = await anyio.open_process(argv, cwd=ROOT, stderr=subprocess.DEVNULL)
    try:
        assert process.stdout is not None
        assert (await process.stdout.receive()).strip() == b"up"
        await anyio.sleep(2.5)
        assert len(gateway.active()) == 3  # past their first leases
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.aclose()
    with anyio.fail_after(10):
        while gateway.active():
            await anyio.sleep(0.05)


# --- the end of a box ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fault", "reported"),
    [
        ({"status": grpc.StatusCode.UNAVAILABLE}, ""),
        ({"status": grpc.StatusCode.UNAVAILABLE, "after": True}, ""),
        ({"hang": True}, ""),
        ({"hang": True, "after": True}, ""),
        ({"copies": 2}, ""),
        ({"die": OUT_OF_MEMORY}, ""),
        ({"answer": {"ok": False, "error_msg": "Unable to stop container: x"}, "times": None}, "did not stop it"),
        ({"answer": {"ok": True}, "times": None}, "still calls it running"),
        ({"status": grpc.StatusCode.UNAVAILABLE, "times": None}, "it may live on until its lease is over"),
        ({"status": grpc.StatusCode.UNAUTHENTICATED, "times": None}, "it may live on until its lease is over"),
    ],
    ids=[
        "lost-before", "lost-after", "hangs-before", "hangs-after", "twice", "dies", "refused", "without-effect",
        "unreachable", "unauthenticated",
    ],
)  # fmt: skip
async def test_a_stop_meets_a_fault(
    gateway: Gateway,
    provider: BeamProvider,
    fault: dict[str, Any],
    reported: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(fleet, "GONE_SECONDS", 0.5)
    monkeypatch.setattr("codeenv.sandbox.beam.gateway.PATIENCE", 3.0)
    box = await opened(provider)
    gateway.faults.add("StopContainer", **fault)
    with caplog.at_level(logging.WARNING, "codeenv"):
        await box.close()
        await box.close()
    said = [record.getMessage() for record in caplog.records if record.name.startswith("codeenv")]
    assert len(said) == bool(reported), said
    for text in said:
        assert reported in text
        assert box.container.id in text
    if reported:
        await gateway.kill(box.container.id, 558)


async def test_closing_while_the_gateway_is_down(gateway: Gateway, provider: BeamProvider) -> None:
    box = await opened(provider)
    await gateway.stop()
    async with anyio.create_task_group() as group:
        group.start_soon(box.close)
        await anyio.sleep(0.5)
        await gateway.restart()
