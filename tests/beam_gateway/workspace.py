"""The services for what is not in a box: stubs, images, uploads, volumes, and the list of boxes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

from beta9.clients import types

from .messages import message_class
from .reach import Answer

if TYPE_CHECKING:
    from .server import Gateway

ContainerInfo = message_class(types.Container)


class Workspace:
    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    async def Authorize(self, request: Any, answer: Answer) -> Any:
        return answer(ok=True, workspace_id=self._gateway.workspace_id)

    async def HeadObject(self, request: Any, answer: Answer) -> Any:
        objects = self._gateway.store.objects
        return answer(ok=True, exists=request.hash in objects, object_id=objects.get(request.hash, ""))

    async def PutObjectStream(self, requests: AsyncIterator[Any], answer: Answer) -> Any:
        first = None
        async for request in requests:
            first = first or request
        if first is None:
            return answer(ok=False, error_msg="Unable to receive stream of bytes")
        return answer(ok=True, object_id=self._gateway.store.uploaded(first.hash))

    async def GetOrCreateStub(self, request: Any, answer: Answer) -> Any:
        try:
            return answer(ok=True, stub_id=self._gateway.store.stub(request).id)
        except LookupError as error:
            return answer(ok=False, err_msg=str(error))

    async def ListContainers(self, request: Any, answer: Answer) -> Any:
        listed = answer(ok=True)
        for container in self._gateway.active():
            info = listed.containers.add(
                container_id=container.id, stub_id=container.stub.id, status=container.status,
                workspace_id=self._gateway.workspace_id,
            )  # fmt: skip
            info.scheduled_at.seconds = int(container.scheduled_at)
            if container.started_at:
                info.started_at.seconds = int(container.started_at)
        return listed

    async def StopContainer(self, request: Any, answer: Answer) -> Any:
        container = self._gateway.containers.get(request.container_id)
        if container is None or container.status == "GONE":
            return answer(ok=False, error_msg=f"Container not found: {request.container_id}")
        self._gateway.do(container.stop())
        return answer(ok=True)


class Images:
    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    async def VerifyImageBuild(self, request: Any, answer: Answer) -> Any:
        store, named = self._gateway.store, bool(request.image_id)
        image_id = store.image_id(request)
        if self._gateway.conduct.images_exist and not named and image_id not in store.images:
            store.built(image_id, request)
        exists = image_id in store.images
        return answer(image_id=image_id, exists=exists, valid=True)

    async def BuildImage(self, request: Any, answer: Answer) -> AsyncIterator[Any]:
        conduct, image_id = self._gateway.conduct, self._gateway.store.image_id(request)
        yield answer(msg="Building image\n")
        await asyncio.sleep(0)
        if conduct.build_fails:
            yield answer(msg=conduct.build_fails, done=True, success=False)
            return
        self._gateway.store.built(image_id, request)
        built = answer(msg="Build completed successfully\n", done=True, success=True, image_id=image_id)
        built.python_version = request.python_version
        yield built


class Volumes:
    """Volumes have names and ids here, and nothing in them: no box sees one."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    async def GetOrCreateVolume(self, request: Any, answer: Answer) -> Any:
        return answer(ok=True, volume={"id": self._gateway.store.volume(request.name), "name": request.name})
