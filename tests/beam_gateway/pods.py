"""pod.PodService: boxes, and through its parents the processes in them and their files."""

from __future__ import annotations

import asyncio
from typing import Any

from .commands import Commands
from .container import Container
from .files import Files
from .processes import Manager, Refused
from .reach import UNREACHABLE, Answer, Unreachable


class Pods(Commands, Files):
    async def CreatePod(self, request: Any, answer: Answer) -> Any:
        stub = self._gateway.store.stubs.get(request.stub_id)
        if stub is None or request.HasField("checkpoint_id"):
            return answer(ok=False)
        quota = self._gateway.conduct.quota
        if quota is not None and len(self._gateway.active()) >= quota:
            return answer(ok=False, error_msg="concurrency_limit_reached: cpu quota exceeded", stub_id=stub.id)
        image_id = request.image_id if request.HasField("image_id") else stub.request.image_id
        made = self._gateway.add(Container(self._gateway, stub, image_id))
        return answer(ok=True, container_id=made.id, stub_id=stub.id)

    async def SandboxConnect(self, request: Any, answer: Answer) -> Any:
        # One that is not there is waited for as well, and as long.
        try:
            async with asyncio.timeout(self._gateway.conduct.connect_ready):
                container = await self._box(request, patience=self._gateway.conduct.connect_ready)
                await container.wait_ready()
        except (TimeoutError, Refused, Unreachable):
            return answer(ok=False, error_msg=UNREACHABLE)
        return answer(ok=True, stub_id=container.stub.id)

    async def SandboxUpdateTTL(self, request: Any, answer: Answer) -> Any:
        try:
            (await self._box(request)).set_ttl(request.ttl if request.ttl > 0 else -1)
        except Unreachable:
            return answer(ok=False, error_msg=UNREACHABLE)
        return answer(ok=True)

    async def SandboxCreateImageFromFilesystem(self, request: Any, answer: Answer) -> Any:
        try:
            image = await (await self._box(request)).archive(request.stub_id)
        except Unreachable:
            return answer(ok=False, error_msg=UNREACHABLE)
        except Refused as error:
            return answer(ok=False, error_msg=str(error))
        return answer(ok=True, image_id=image.id)

    async def SandboxUpdateNetworkPermissions(self, request: Any, answer: Answer) -> Any:
        return await self._in_box(request, answer, self._no_network)

    async def SandboxExposePort(self, request: Any, answer: Answer) -> Any:
        return await self._in_box(request, answer, self._no_network)

    async def SandboxListUrls(self, request: Any, answer: Answer) -> Any:
        return await self._in_box(request, answer, self._no_urls)

    async def _no_network(self, container: Container, manager: Manager) -> dict[str, Any]:
        raise Refused("container network manager unavailable")

    async def _no_urls(self, container: Container, manager: Manager) -> dict[str, Any]:
        return {}
