"""Boxes that die, at each stage and in each way: told apart, in seconds, with the right words."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, cast

import anyio
import pytest

from codeenv.episode import Episode
from codeenv.sandbox.api import SandboxError, SandboxExpired, SandboxLost
from codeenv.sandbox.beam.lease import Leases
from codeenv.sandbox.beam.provider import BeamProvider
from codeenv.sandbox.beam.sandbox import BeamSandbox
from codeenv.tools import ToolCall
from tests.beam_gateway.container import LOST, OUT_OF_MEMORY, STOPPED_BY_SCHEDULER, STOPPED_BY_USER
from tests.beam_gateway.server import Gateway
from tests.episodes import pytest_task
from tests.sandbox.beam.support import opened

pytestmark = pytest.mark.anyio
SECONDS = 10.0
ENDS = {
    "ttl-or-machine": (STOPPED_BY_SCHEDULER, "its time to live was over, or its machine was taken away"),
    "stopped": (STOPPED_BY_USER, "it was stopped from outside"),
    "out-of-memory": (OUT_OF_MEMORY, "out of memory"),
    "lost": (LOST, "Beam does not say how it ended"),
    "other": (7, "it ended with exit code 7"),
}
by_end = pytest.mark.parametrize(("code", "says"), ENDS.values(), ids=ENDS)


async def process(box: BeamSandbox) -> None:
    async with box.open_process("cat") as live:
        await live.wait()


async def sending(box: BeamSandbox) -> None:
    async with box.open_process("sleep 60") as live:
        while True:
            await live.send(bytes(100_000))


STAGES: dict[str, Callable[[BeamSandbox], Awaitable[Any]]] = {
    "exec": lambda box: box.exec("sleep 60"),
    "wait": process,
    "send": sending,
}
CALLS: dict[str, Callable[[BeamSandbox], Awaitable[Any]]] = {
    "exec": lambda box: box.exec("true"),
    "read_file": lambda box: box.read_file("f"),
    "write_file": lambda box: box.write_file("f", bytes(100_000)),
    "export": lambda box: box.export(stop_processes=True),
    "open_process": process,
}


async def lost(call: Awaitable[Any], stage: str, says: str) -> None:
    started = time.monotonic()
    with pytest.raises(SandboxLost, match=says) as raised:
        await call
    assert not isinstance(raised.value, SandboxExpired)
    assert raised.value.stage == stage
    assert raised.value.seconds is not None
    assert time.monotonic() - started < SECONDS


@by_end
async def test_a_box_that_dies_idle(gateway: Gateway, provider: BeamProvider, code: int, says: str) -> None:
    box = await opened(provider)
    await gateway.kill(box.container.id, code)
    for stage, call in CALLS.items():
        await lost(call(box), stage, says)
    await box.close()


@by_end
async def test_a_box_that_dies_under_calls(
    gateway: Gateway, provider: BeamProvider, code: int, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    box = await opened(provider)
    open_process, there = box.open_process, list[str]()

    @asynccontextmanager
    async def noted(command: str) -> AsyncGenerator[Any]:
        async with open_process(command) as live:
            there.append(command)
            yield live

    monkeypatch.setattr(box, "open_process", noted)
    async with anyio.create_task_group() as group:
        for stage, call in STAGES.items():
            group.start_soon(lost, call(box), stage, says)
        with anyio.fail_after(SECONDS):
            while len(there) < 2:  # on busy cores they take their time
                await anyio.sleep(0.02)
        await anyio.sleep(0.3)
        await gateway.kill(box.container.id, code)
    await box.close()


@by_end
@pytest.mark.parametrize(
    ("rpc", "skip"), [("CreatePod", 0), ("SandboxExec", 0)], ids=["as-it-is-made", "as-its-agent-starts"]
)
async def test_a_box_that_dies_at_its_start(
    gateway: Gateway, provider: BeamProvider, rpc: str, skip: int, code: int, says: str
) -> None:
    gateway.faults.add(rpc, skip=skip, die=code, after=rpc == "CreatePod")
    started = time.monotonic()
    with pytest.raises(SandboxError, match=f"did not start.*{says}") as raised:
        await opened(provider)
    assert raised.value.stage == "create"
    assert time.monotonic() - started < SECONDS


@by_end
async def test_a_box_that_dies_as_it_is_closed(gateway: Gateway, provider: BeamProvider, code: int, says: str) -> None:
    box = await opened(provider)
    gateway.faults.add("StopContainer", die=code)
    await box.close()


async def test_a_receive_ends_with_the_box(gateway: Gateway, provider: BeamProvider) -> None:
    box = await opened(provider)
    async with box.open_process("cat") as live, anyio.create_task_group() as group:

        async def receive() -> None:
            assert await live.receive() == b""

        group.start_soon(receive)
        await anyio.sleep(0.2)
        await gateway.kill(box.container.id, OUT_OF_MEMORY)
    await box.close()


async def test_a_box_expires_at_its_own_time(gateway: Gateway, provider: BeamProvider) -> None:
    box = await opened(provider, ttl_seconds=2.5)

    async def expires(stage: str) -> None:
        with pytest.raises(SandboxExpired, match=r"time to live of 2\.5 s") as raised:
            await STAGES[stage](box)
        assert raised.value.stage == stage
        assert 2.5 <= box.seconds < 8

    async with anyio.create_task_group() as group:
        for stage in STAGES:
            group.start_soon(expires, stage)
    with pytest.raises(SandboxExpired):
        await box.read_file("f")
    await box.close()


async def test_a_server_does_not_end_a_box_before_its_time(gateway: Gateway, provider: BeamProvider) -> None:
    """Else the policy would have had less time than it was promised, and the box count as lost."""
    box = await opened(provider, ttl_seconds=11.4)
    (there,) = gateway.active()
    deadline = there._deadline
    assert deadline is not None
    assert deadline >= time.monotonic() + box.seconds_left
    await Leases(30.0)._renew_one(box, anyio.CapacityLimiter(1))
    assert 1 < (there._deadline or 0) - time.monotonic() - box.seconds_left < 3
    await box.close()


# --- the agent, which shares its user with the commands here ------------------------------------------------------

KILL = "for p in /proc/[0-9]*; do p=${p#/proc/}; [ $p -gt 1 ] && [ $p != $$ ] && kill -9 $p; done 2>/dev/null"
DELETE = "rm -rf /tmp/.codeenv-*"


@pytest.mark.parametrize("command", [KILL, DELETE], ids=["killed", "deleted"])
async def test_an_agent_that_the_policy_has_ended(provider: BeamProvider, command: str) -> None:
    """All that is under way hears of it, as does what comes later."""
    box = await opened(provider)

    async def under_way(call: Callable[[BeamSandbox], Awaitable[Any]]) -> None:
        started = time.monotonic()
        with pytest.raises(SandboxLost, match="its agent is gone") as raised:
            await call(box)
        assert not isinstance(raised.value, SandboxExpired)
        assert time.monotonic() - started < SECONDS

    async with anyio.create_task_group() as group:
        for call in STAGES.values():
            group.start_soon(under_way, call)
        group.start_soon(under_way, lambda box: box.exec(f"sleep 0.3; {command}; sleep 60"))
    for call in CALLS.values():
        await under_way(call)
    await box.close()


async def test_an_agent_whose_files_are_gone_in_part(provider: BeamProvider) -> None:
    box = await opened(provider)
    await box.exec("rm -f /tmp/.codeenv-*/call")
    with pytest.raises(SandboxLost, match="its agent is gone"):
        await box.exec("true")
    await box.close()


# --- what an episode makes of it ----------------------------------------------------------------------------------

SLOW = {"test_adding.py": "import time\n\n\ndef test_slow():\n    time.sleep(20)\n"}


@pytest.mark.parametrize("code", [OUT_OF_MEMORY, STOPPED_BY_SCHEDULER, LOST], ids=["memory", "machine", "lost"])
async def test_an_episode_whose_box_dies_is_a_fault(gateway: Gateway, provider: BeamProvider, code: int) -> None:
    async with Episode.start(pytest_task(), provider) as episode:
        (there,) = gateway.active()
        await gateway.kill(there.id, code)
        with pytest.raises(SandboxLost) as raised:
            await episode.step(ToolCall("bash", {"command": "ls"}))
        assert raised.value.stage == "exec"
        assert raised.value.seconds is not None
        assert episode.over != "expired"
        with pytest.raises(SandboxLost) as raised:
            await episode.finish()
        assert raised.value.stage == "export"


async def test_an_episode_whose_time_is_over_has_expired(gateway: Gateway, provider: BeamProvider) -> None:
    async with Episode.start(pytest_task(), provider, ttl_seconds=30.0) as episode:
        box = cast(BeamSandbox, episode.sandbox)
        box._created -= 30.0
        (there,) = gateway.active()
        await gateway.kill(there.id, STOPPED_BY_SCHEDULER)
        assert (await episode.finish()).outcome == "expired"


@pytest.mark.parametrize("code", [STOPPED_BY_SCHEDULER, OUT_OF_MEMORY], ids=["time", "memory"])
async def test_a_graders_box_that_dies_is_a_fault(gateway: Gateway, provider: BeamProvider, code: int) -> None:
    task = pytest_task(SLOW)
    async with Episode.start(task, provider, grading_retries=0) as episode, anyio.create_task_group() as group:
        (own,) = gateway.active()

        async def end_the_graders() -> None:
            while not (others := [each for each in gateway.active() if each.id != own.id and each.ready.is_set()]):
                await anyio.sleep(0.05)
            await anyio.sleep(1.0)
            await gateway.kill(others[0].id, code)

        group.start_soon(end_the_graders)
        with pytest.raises(SandboxError) as raised:
            await episode.finish()
        assert raised.value.stage.startswith("grading")
        assert not isinstance(raised.value, SandboxExpired)
