"""The box that a request names, and the server's own words where it cannot be reached."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from .container import Container
from .processes import Gone, Manager, Refused

if TYPE_CHECKING:
    from .server import Gateway

Answer = Callable[..., Any]

UNREACHABLE = "Failed to connect to sandbox"
BROKEN = "rpc error: code = Unavailable desc = error reading from server: EOF"


class Unreachable(Exception):
    """There is no such box, or it has no worker."""


class Reach:
    """Above every service that does something in a box."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    async def _in_box(
        self,
        request: Any,
        answer: Answer,
        do: Callable[[Container, Manager], Awaitable[dict[str, Any]]],
        *,
        wait: bool = False,
    ) -> Any:
        try:
            container = await self._box(request)
            if wait:
                await self._ready(container)
            return answer(ok=True, **await do(container, container.manager))
        except Unreachable:
            return answer(ok=False, error_msg=UNREACHABLE)
        except Refused as error:
            return answer(ok=False, error_msg=str(error))
        except Gone:
            return answer(ok=False, error_msg=BROKEN)

    async def _ready(self, container: Container) -> None:
        """Wait for its process manager, which here does the files as well. :raises Refused: it takes too long."""
        if not container.ready.is_set():
            try:
                async with asyncio.timeout(self._gateway.conduct.manager_wait):
                    await container.wait_ready()
            except TimeoutError:
                raise Refused("Process manager not ready within timeout") from None

    async def _box(self, request: Any, patience: float = 0.0) -> Container:
        """The box, once it has a worker. One that is gone is looked for again for `patience` seconds.

        :raises Unreachable: it is not there, or has no worker yet.
        """
        clock = asyncio.get_running_loop().time
        until = clock() + patience
        while True:
            container = self._gateway.containers.get(request.container_id)
            if container is not None and container.running.is_set():
                return container
            if container is not None and container.status == "PENDING":
                try:
                    async with asyncio.timeout_at(max(until, clock() + self._gateway.conduct.address_wait)):
                        await container.running.wait()
                    return container
                except TimeoutError:
                    raise Unreachable from None
            if container is not None and container.status == "STOPPING":
                raise Refused("Container not found")
            if clock() >= until:
                raise Unreachable
            await asyncio.sleep(0.05)
