"""Boxes of ours that are on a gateway now, whoever made them, and the end of those that nobody uses any more."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import anyio

from codeenv.sandbox.api import SandboxError
from codeenv.sandbox.beam import records
from codeenv.sandbox.beam.gateway import Gateway, Refused, Unreachable, gateway_of
from codeenv.sandbox.beam.records import Run
from codeenv.sandbox.beam.sdk import Account

AT_ONCE = 16
PATIENCE = 5.0
"""Seconds for which an unreachable gateway is tried again."""
GONE_SECONDS = 45.0
"""For how long stopped boxes are watched: Beam gives one 30 s to end by itself."""


@dataclass(frozen=True)
class Box:
    """A container of one of our stubs. `seconds` since it was scheduled, None where the gateway does not say."""

    id: str
    stub: str
    status: str
    seconds: float | None
    run_host: str
    run_pid: int
    run_lives: bool | None
    """None: its run is on another host, or cannot be seen from here."""
    ended: bool = False
    error: str = ""
    """Why it could not be ended."""


async def boxes(account: Account) -> list[Box]:
    """Those of all runs that are written down here, the oldest first. Records of runs that are over and left none are
    removed. :raises SandboxError: the gateway cannot be asked."""
    async with _reaching(account) as gateway:
        return await _boxes(gateway)


async def sweep(account: Account, *, all_runs: bool = False, seconds: float = GONE_SECONDS) -> list[Box]:
    """End the boxes of runs that are dead, or of `all_runs`, and wait until they are gone: what was to be ended, with
    `ended` or `error`. :raises SandboxError: the gateway cannot be asked."""
    async with _reaching(account) as gateway:
        doomed = [box for box in await _boxes(gateway) if all_runs or box.run_lives is False]
        refused: dict[str, str] = {}
        limiter = anyio.CapacityLimiter(AT_ONCE)

        async def end(box: Box) -> None:
            async with limiter:
                try:
                    reply = await gateway.call("StopContainer", container_id=box.id, patience=PATIENCE)
                    if not reply.ok and "not found" not in reply.error_msg.lower():
                        refused[box.id] = reply.error_msg
                except (Refused, Unreachable) as error:
                    refused[box.id] = str(error)

        async with anyio.create_task_group() as group:
            for box in doomed:
                group.start_soon(end, box)
        left = await _left(gateway, {box.id for box in doomed} - set(refused), seconds)
        await _boxes(gateway)  # the records of what is over now
    return [
        replace(box, ended=box.id not in refused and box.id not in left,
                error=refused.get(box.id) or ("it is still there" if box.id in left else ""))
        for box in doomed
    ]  # fmt: skip


async def _left(gateway: Gateway, ids: set[str], seconds: float) -> set[str]:
    end = time.monotonic() + seconds
    delay = 0.05
    while ids:
        ids = ids & {str(container.container_id) for container in await _containers(gateway)}
        if not ids or time.monotonic() > end:
            break
        await anyio.sleep(delay)
        delay = min(2.0, delay * 2)
    return ids


async def _boxes(gateway: Gateway) -> list[Box]:
    noted = [(path, run) for path, run in records.all_runs() if run.gateway == str(gateway.account)]
    by_stub: dict[str, list[Run]] = {}
    for _, run in noted:
        for stub in run.stubs:
            by_stub.setdefault(stub, []).append(run)
    found: list[Box] = []
    for container in await _containers(gateway):
        if runs := by_stub.get(container.stub_id):
            run = max(runs, key=_liveliness)
            since = container.scheduled_at.seconds or container.started_at.seconds
            age = max(0.0, time.time() - since) if since else None
            box = Box(container.container_id, container.stub_id, container.status.lower(), age, run.host, run.pid,
                      run.lives)  # fmt: skip
            found.append(box)
    _tidy(noted, {box.stub for box in found}, records.fingerprint(gateway.account))
    return sorted(found, key=lambda box: -(box.seconds or 0.0))


def _liveliness(run: Run) -> int:
    return {True: 2, None: 1, False: 0}[run.lives]


def _tidy(noted: Sequence[tuple[Path, Run]], stubs: set[str], account: str) -> None:
    """Only what this account would have listed: another's boxes are not seen with our token."""
    for path, run in noted:
        if run.account == account and run.lives is False and not stubs.intersection(run.stubs):
            path.unlink(missing_ok=True)


async def _containers(gateway: Gateway) -> Sequence[Any]:
    listed = await gateway.call("ListContainers", patience=PATIENCE)
    if not listed.ok:
        raise SandboxError(f"{gateway.account} does not list its containers: {listed.error_msg}", stage="list")
    return listed.containers


@asynccontextmanager
async def _reaching(account: Account) -> AsyncGenerator[Gateway]:
    async with gateway_of(account) as gateway:
        try:
            yield gateway
        except Unreachable as error:
            raise SandboxError(str(error), stage="list") from error
