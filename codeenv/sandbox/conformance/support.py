"""What the checks have in common. They know nothing of a backend: a box has bash, coreutils and python3, and may be far
away."""

from __future__ import annotations

import os
import random
from collections.abc import Awaitable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, TypeVar

import anyio

from codeenv.sandbox.api import ExecResult, Sandbox, SandboxProvider, SandboxSpec, UnsupportedSpec

LONG = 600
"""Seconds that a command would take which is not waited for."""

patience: ContextVar[float] = ContextVar("patience", default=20.0)
"""Seconds that what ends soon may take. A session sets it by the round trip that it has measured."""

READY_SECONDS = (0.6, 3.0, 15.0)
"""How long a command is given to get where it is to be killed, one after the other until it gets there."""

SESSION = "python3 -S -c 'import os, sys; os.setsid(); os.execvp(sys.argv[1], sys.argv[1:])'"
"""Put before a command that runs in the background: it gets a session of its own, as with `setsid`."""

_LIVING = """
import os, sys
wanted, found = sys.stdin.buffer.read(), 0
for pid in filter(str.isdigit, os.listdir("/proc")):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            found += wanted in file.read().split(b"\\0")
    except OSError:
        pass
print(found)
"""

E = TypeVar("E", bound=BaseException)


class NotPromised(Exception):
    """This backend does not promise what the check is about, or it cannot be seen from here; the text says which."""


@contextmanager
def in_time(extra: float = 0.0) -> Generator[None]:
    """For what ends soon. :raises AssertionError: it did not."""
    seconds = patience.get() + extra
    with anyio.move_on_after(seconds) as scope:
        yield
    if scope.cancelled_caught:
        raise AssertionError(f"it was not over after {seconds:.0f} s")


async def failure(call: Awaitable[object], *expected: type[E]) -> E:
    """The error that `call` ends with. :raises AssertionError: it ends without one."""
    try:
        result = await call
    except expected as error:
        return error
    raise AssertionError(f"it returned {result!r} and did not raise {' or '.join(kind.__name__ for kind in expected)}")


def marker() -> str:
    """Seconds for a `sleep` that is to be found among the processes: no other has this argument."""
    return f"987{random.SystemRandom().randrange(10**9):09}"


async def living(box: Sandbox, argument: str) -> int:
    """How many processes that can be seen in the box have exactly this argument."""
    result = await box.exec(["python3", "-S", "-c", _LIVING], stdin=argument.encode())
    assert result.exit_code == 0, result
    return int(result.stdout)


async def settles(box: Sandbox, argument: str, count: int) -> None:
    """Wait until so many processes have this argument. :raises AssertionError: they are never so many."""
    with in_time():
        while await living(box, argument) != count:
            await anyio.sleep(0.05)


async def until_ready(box: Sandbox, command: str, **options: Any) -> ExecResult:
    """Run, with a timeout, a command that prints `ready` and then never ends: as long as it takes to get there."""
    result = None
    for seconds in READY_SECONDS:
        with in_time(seconds):
            result = await box.exec(command, timeout=seconds, **options)
        if b"ready" in result.stdout:
            return result
    raise AssertionError(f"it never came to print 'ready': {result}")


def on_host(argument: str) -> list[int]:
    """The pids of this host's processes that have exactly this argument, in whatever box."""
    found: list[int] = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if argument.encode() in path.read_bytes().split(b"\0"):
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


def descendants() -> set[int]:
    """The pids of all processes of this host that descend from ours."""
    parents: dict[int, int] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(path.parent.name)] = int(path.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
    found = {os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return found - {os.getpid()}


def seen_from_here(provider: SandboxProvider) -> None:
    """:raises NotPromised: the processes of its boxes are not among this host's."""
    if not provider.capabilities.shares_host:
        raise NotPromised("its boxes run elsewhere: what is left of one cannot be seen from here")


def isolates(provider: SandboxProvider) -> None:
    """:raises NotPromised: its boxes see the host."""
    if provider.capabilities.isolation == "none":
        raise NotPromised("it isolates nothing")


def smaller(provider: SandboxProvider, spec: SandboxSpec, **fields: Any) -> SandboxSpec:
    """`spec` with these fields. :raises NotPromised: this backend cannot have it so."""
    changed = spec.model_copy(update=fields)
    try:
        provider.check(changed)
    except UnsupportedSpec as error:
        raise NotPromised(f"it does not take {fields}: {error}") from error
    return changed
