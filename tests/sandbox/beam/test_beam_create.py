"""Boxes that are made slowly, not at all, or without our being told."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import anyio
import grpc
import pytest

from codeenv.sandbox.api import SandboxError, SandboxSpec
from codeenv.sandbox.beam import fleet
from codeenv.sandbox.beam import sandbox as beam_sandbox
from codeenv.sandbox.beam.provider import BeamProvider
from tests.beam_gateway.container import STOPPED_BY_SCHEDULER
from tests.beam_gateway.server import Gateway
from tests.sandbox.beam.support import beam, opened

pytestmark = pytest.mark.anyio
Code = grpc.StatusCode


@contextmanager
def fails(text: str, within: float) -> Iterator[None]:
    started = time.monotonic()
    with pytest.raises(SandboxError, match=text) as raised:
        yield
    assert raised.value.stage == "create"
    assert raised.value.seconds is not None
    assert time.monotonic() - started < within


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        ({"answer": {"ok": False, "error_msg": "stub is not deployed"}}, "stub is not deployed"),
        ({"answer": {"ok": False}}, "Beam gave no reason"),
        ({"status": Code.UNAUTHENTICATED, "details": "invalid or missing token"}, "run `beam login` or set BEAM_TOKEN"),
        ({"status": Code.PERMISSION_DENIED, "details": "no"}, "does not accept the token"),
        ({"status": Code.INVALID_ARGUMENT, "details": "no such gpu"}, "INVALID_ARGUMENT no such gpu"),
        ({"status": Code.UNIMPLEMENTED}, "UNIMPLEMENTED"),
    ],
    ids=["refused", "refused-without-a-reason", "unauthenticated", "denied", "invalid", "unknown-to-the-server"],
)
async def test_what_will_not_come_true_fails_at_once(
    gateway: Gateway, provider: BeamProvider, fault: dict[str, Any], says: str
) -> None:
    await (await opened(provider)).close()  # the stub is there
    gateway.faults.add("CreatePod", times=None, **fault)
    with fails(says, within=2.0):
        await opened(provider)
    assert gateway.calls["CreatePod"] == 2


async def test_ok_without_a_box_is_a_fault(gateway: Gateway, provider: BeamProvider) -> None:
    gateway.faults.add("CreatePod", answer={"ok": True}, after=True)  # it is there, and nameless
    with fails("could not be made", within=5.0):
        await opened(provider)


@pytest.mark.parametrize(
    "fault",
    [
        {"status": Code.UNAVAILABLE},
        {"status": Code.UNAVAILABLE, "after": True},
        {"status": Code.DEADLINE_EXCEEDED, "after": True},
        {"status": Code.CANCELLED, "after": True},
        {"hang": True},
        {"hang": True, "after": True},
        {"copies": 2, "status": Code.UNAVAILABLE, "after": True},
        {"delay": 1.5},
    ],
    ids=[
        "lost-before", "lost-after", "late-after", "cancelled-after", "hangs-before", "hangs-after", "twice-and-lost",
        "effect-after-the-deadline",
    ],
)  # fmt: skip
async def test_a_lost_reply_costs_a_box_that_is_stopped(
    gateway: Gateway, provider: BeamProvider, fault: dict[str, Any]
) -> None:
    gateway.faults.add("CreatePod", **fault)
    box = await opened(provider)
    try:
        assert (await box.exec("echo fine")).stdout == b"fine\n"
        if "delay" not in fault:  # then the stranger is seen only at the end
            assert len([each for each in gateway.active() if each.status != "STOPPING"]) == 1
    finally:
        if "delay" in fault:
            await anyio.sleep(0.7)
        await box.close()


async def test_a_create_that_is_delivered_twice_costs_a_lease(gateway: Gateway) -> None:
    """Nothing says that there is another box. Nobody renews its lease."""
    provider = beam(gateway, lease_seconds=30)
    gateway.faults.add("CreatePod", copies=2)
    box = await opened(provider)
    (stranger,) = [each for each in gateway.active() if each.id != box.container.id]
    assert stranger.stub.keep_warm == 30
    await box.close()
    await gateway.kill(stranger.id, STOPPED_BY_SCHEDULER)


async def test_what_others_have_been_given_is_not_stopped(gateway: Gateway, provider: BeamProvider) -> None:
    """Creates of one stub at once, of which some lose their reply, while others are still on their way."""
    gateway.faults.add("CreatePod", status=Code.UNAVAILABLE, after=True, times=4)
    gateway.faults.add("CreatePod", delay=0.4, times=3)
    said: list[bytes] = []

    async def live() -> None:
        async with provider.create(SandboxSpec()) as box:
            await anyio.sleep(1.0)
            said.append((await box.exec("echo fine")).stdout)

    async with anyio.create_task_group() as group:
        for _ in range(10):
            group.start_soon(live)
    assert said == [b"fine\n"] * 10


async def test_two_event_loops_leave_each_others_boxes_alone(gateway: Gateway, provider: BeamProvider) -> None:
    box = await opened(provider)

    async def elsewhere() -> None:
        gateway.faults.add("CreatePod", status=Code.UNAVAILABLE, after=True)
        await (await opened(provider)).close()

    await anyio.to_thread.run_sync(anyio.run, elsewhere)
    assert (await box.exec("echo fine")).stdout == b"fine\n"
    await box.close()


async def test_a_full_quota_is_waited_for(gateway: Gateway, provider: BeamProvider) -> None:
    gateway.conduct.quota = 2
    done: list[int] = []

    async def live(number: int) -> None:
        async with provider.create(SandboxSpec()) as box:
            await box.exec("true")
            done.append(number)

    async with anyio.create_task_group() as group:
        for number in range(6):
            group.start_soon(live, number)
    assert sorted(done) == list(range(6))
    assert gateway.calls["CreatePod"] > 6


@pytest.mark.parametrize(
    "fault",
    [
        {"answer": {"ok": False, "error_msg": "concurrency_limit_reached: cpu quota exceeded"}},
        {"status": Code.RESOURCE_EXHAUSTED, "details": "too many requests"},
    ],
    ids=["quota", "rate"],
)
async def test_but_not_for_ever(
    gateway: Gateway, provider: BeamProvider, fault: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fleet, "CREATE_PATIENCE", 0.4)
    gateway.faults.add("CreatePod", times=None, **fault)
    with fails("quota exceeded|too many requests", within=6.0):
        await opened(provider)
    assert gateway.calls["CreatePod"] > 1


async def test_a_gateway_that_is_gone(
    gateway: Gateway, provider: BeamProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    await (await opened(provider)).close()
    await gateway.stop()
    with monkeypatch.context() as patch, fails("gave no answer to CreatePod", within=15.0):
        patch.setattr(fleet, "UNREACHABLE_PATIENCE", 0.4)
        patch.setattr("codeenv.sandbox.beam.census.LIST_SECONDS", 0.5)
        await opened(provider)
    await gateway.restart()
    await (await opened(provider)).close()


async def test_a_gateway_that_comes_back(gateway: Gateway, provider: BeamProvider) -> None:
    await (await opened(provider)).close()
    async with anyio.create_task_group() as group:
        await gateway.stop()
        group.start_soon(lambda: gateway.restart(down=0.6))
        await (await opened(provider)).close()


@pytest.mark.parametrize(
    ("conduct", "says"),
    [({"start_fails": True}, "ended with exit code 1"), ({"images_exist": False}, "ended with exit code 555")],
    ids=["start", "image"],
)
async def test_a_box_that_does_not_start(
    gateway: Gateway, provider: BeamProvider, conduct: dict[str, Any], says: str
) -> None:
    for name, value in conduct.items():
        setattr(gateway.conduct, name, value)
    if "images_exist" in conduct:
        await provider_with_a_stub(gateway, provider)
        gateway.store.images.clear()
    with fails(says, within=8.0):
        await opened(provider)


async def provider_with_a_stub(gateway: Gateway, provider: BeamProvider) -> None:
    gateway.conduct.images_exist = True
    await (await opened(provider)).close()
    gateway.conduct.images_exist = False


async def test_a_box_that_is_never_ready(
    gateway: Gateway, provider: BeamProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(beam_sandbox, "READY_SECONDS", 0.8)
    gateway.conduct.readiness = 60.0
    with fails("not ready within 0.8 s|cannot reach it", within=8.0):
        await opened(provider)


async def test_an_image_without_python_says_so(gateway: Gateway, provider: BeamProvider) -> None:
    text = 'exec: "python3": executable file not found in $PATH'
    gateway.faults.add("SandboxExec", times=None, answer={"ok": False, "error_msg": text})
    with fails("our agent needs python3", within=5.0):
        await opened(provider)


@pytest.mark.parametrize(
    "fault",
    [
        {"status": Code.UNAVAILABLE},
        {"status": Code.UNAVAILABLE, "after": True},
        {"hang": True, "after": True},
        {"copies": 2},
        {"copies": 2, "at_once": True},
        {"copies": 2, "status": Code.UNAVAILABLE, "after": True},
        {"again": 0.3},
        {"answer": {"ok": True, "done": True, "exit_code": 0, "stdout": ""}, "after": True},
        {"answer": {"ok": False, "error_msg": "Process manager not ready within timeout"}},
    ],
    ids=[
        "lost-before", "lost-after", "hangs-after", "twice", "twice-at-once", "twice-and-lost", "again", "output-lost",
        "not-ready",
    ],
)  # fmt: skip
async def test_an_agent_is_started_once(gateway: Gateway, provider: BeamProvider, fault: dict[str, Any]) -> None:
    hit = gateway.faults.add("SandboxExec", **fault)
    box = await opened(provider)
    assert hit.hits == 1
    await anyio.sleep(fault.get("again", 0.0))
    with anyio.fail_after(10):  # it, and the supervisor of the command that counts
        while (await box.exec("pgrep -cf '[ ]/tmp/.codeenv-'")).stdout != b"2\n":
            await anyio.sleep(0.05)
    assert (await box.exec("id -un; pwd")).stdout.endswith(b"/workspace\n")
    await box.close()


@pytest.mark.parametrize("refused", [True, False], ids=["refused", "allowed"])
async def test_a_token_in_the_box(gateway: Gateway, refused: bool) -> None:
    from dataclasses import replace

    gateway.conduct.profile = replace(gateway.conduct.profile, token_in_box=True)
    provider = beam(gateway, token_in_box="refuse" if refused else "warn")
    if refused:
        with pytest.raises(SandboxError, match="token_in_box='warn'"):
            await opened(provider)
    else:
        await (await opened(provider)).close()


async def test_a_hundred_at_once(gateway: Gateway) -> None:
    """Few start at a time, and none is ready at once."""
    gateway.conduct.starting_at_once = 6
    gateway.conduct.scheduling = 0.2
    gateway.conduct.readiness = 0.1
    provider = beam(gateway, create_at_once=24)
    said: list[bytes] = []

    async def live(number: int) -> None:
        async with provider.create(SandboxSpec()) as box:
            said.append((await box.exec(f"echo {number}")).stdout)

    async with anyio.create_task_group() as group:
        for number in range(100):
            group.start_soon(live, number)
    assert sorted(said) == sorted(b"%d\n" % number for number in range(100))
    assert gateway.calls["CreatePod"] == 100
