"""What can go wrong with a call, by script. A fault is added to a running gateway and goes off on calls it names."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

import grpc
import grpc.aio


@dataclass
class Fault:
    """What happens to calls of `rpc` (`"*"`: any), in the order of the fields below `when`."""

    rpc: str
    times: int | None = 1
    """How many calls it goes off on. None: all."""
    skip: int = 0
    """How many calls go unharmed first."""
    when: Callable[[Any], bool] = lambda request: True
    """Which requests."""
    after: bool = False
    """What follows comes when the request has taken effect, else before it, or instead."""
    delay: float = 0.0
    """Seconds. An effect that is late takes place also if the caller has left."""
    copies: int = 1
    """How often a request takes effect, one after the other, as where a proxy tries again; the last answer counts."""
    at_once: bool = False
    """The copies take effect beside each other."""
    again: float | None = None
    """Seconds. So much later the request takes effect once more, and nobody is told."""
    die: int | None = None
    """The box that the request, or its answer, names dies with this exit code; -1: without one."""
    answer: Mapping[str, Any] | None = None
    """The answer's fields."""
    status: grpc.StatusCode | None = None
    details: str = ""
    hang: bool = False
    """There is no answer: the caller has to give up."""

    hits: int = 0
    """How many calls it has gone off on."""

    def takes(self, request: Any) -> bool:
        if (self.times is not None and self.hits >= self.times) or not self.when(request):
            return False
        if self.skip > 0:
            self.skip -= 1
            return False
        self.hits += 1
        return True

    @property
    def replaces(self) -> bool:
        """Whether the request has no effect."""
        return not self.after and (self.answer is not None or self.status is not None or self.hang)


class Faults:
    """The faults of a gateway. The first that takes a call is the only one it meets."""

    def __init__(self) -> None:
        self._faults: list[Fault] = []

    def add(self, fault: Fault | str, **fields: Any) -> Fault:
        """`add("SandboxExec", status=..., after=True)`, or a fault that is made already."""
        made = Fault(fault, **fields) if isinstance(fault, str) else fault
        self._faults.append(made)
        return made

    def remove(self, fault: Fault) -> None:
        self._faults.remove(fault)

    def clear(self) -> None:
        self._faults.clear()

    def of(self, rpc: str, request: Any) -> Fault | None:
        if not self._faults:
            return None
        return next((fault for fault in self._faults if fault.rpc in ("*", rpc) and fault.takes(request)), None)


async def suffer(
    fault: Fault,
    request: Any,
    effect: Callable[[Any, float], asyncio.Task[Any]],
    answer: Callable[..., Any],
    context: grpc.aio.ServicerContext[Any, Any],
    die: Callable[[str, int], Awaitable[None]],
) -> Any:
    """Answer a call that meets a fault. `effect` takes the request and how late it is to be, and goes on by itself."""
    result = None
    if fault.replaces:
        await asyncio.sleep(fault.delay)
    if fault.die is not None and not fault.after:
        await die(getattr(request, "container_id", ""), fault.die)
    if not fault.replaces:
        seconds = 0.0 if fault.after else fault.delay
        if fault.at_once:
            copies = [effect(request, seconds) for _ in range(fault.copies)]
            result = (await asyncio.shield(asyncio.gather(*copies)))[-1]
        else:
            for _ in range(fault.copies):
                result = await asyncio.shield(effect(request, seconds))
        if fault.again is not None:
            effect(request, fault.again)
    if fault.after:
        await asyncio.sleep(fault.delay)
        if fault.die is not None:
            await die(getattr(request, "container_id", "") or getattr(result, "container_id", ""), fault.die)
    if fault.answer is not None:
        result = answer(**fault.answer)
    if fault.status is not None:
        await context.abort(fault.status, fault.details)
    if fault.hang:
        await asyncio.Event().wait()
    return result
