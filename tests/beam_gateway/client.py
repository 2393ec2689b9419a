"""The plainest client of the protocol, for tests that look at the gateway itself: one call, one message each way."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import grpc.aio
from beta9.clients import gateway, image, pod, volume

from .messages import message_class
from .server import Gateway

SERVICES: dict[str, ModuleType] = {
    "gateway.GatewayService": gateway,
    "image.ImageService": image,
    "pod.PodService": pod,
    "volume.VolumeService": volume,
}


class Client:
    """`async with Client(gateway) as client: answer = await client("SandboxExec", container_id=..., command=...)`."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self.channel = grpc.aio.insecure_channel(
            f"{gateway.host}:{gateway.port}", options=[("grpc.max_receive_message_length", 32 * 1024 * 1024)]
        )

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.channel.close()

    async def __call__(self, rpc: str, *, timeout: float = 30.0, token: str | None = None, **fields: Any) -> Any:
        """The answer of a unary call. :raises grpc.aio.AioRpcError: its status is not OK."""
        stem = rpc.replace("TTL", "Ttl")
        stem = f"Pod{stem}" if stem.startswith("Sandbox") else stem
        service, module = next((name, each) for name, each in SERVICES.items() if hasattr(each, f"{stem}Request"))
        request, response = (message_class(getattr(module, stem + end)) for end in ("Request", "Response"))
        call = self.channel.unary_unary(f"/{service}/{rpc}", request.SerializeToString, response.FromString)
        metadata = (("authorization", f"Bearer {token or self._gateway.token}"),)
        return await call(request(**fields), metadata=metadata, timeout=timeout)

    async def build(self, **fields: Any) -> list[Any]:
        """All that a build of an image answers."""
        request, response = message_class(image.BuildImageRequest), message_class(image.BuildImageResponse)
        call = self.channel.unary_stream(
            "/image.ImageService/BuildImage", request.SerializeToString, response.FromString
        )
        metadata = (("authorization", f"Bearer {self._gateway.token}"),)
        return [answer async for answer in call(request(**fields), metadata=metadata, timeout=30.0)]

    async def stub(self, **fields: Any) -> str:
        """The id of a new stub, of boxes that live for ten minutes unless told otherwise."""
        wanted = {"memory": 512, "keep_warm_seconds": 600, "force_create": True, **fields}
        return (await self("GetOrCreateStub", **wanted)).stub_id

    async def box(self, **fields: Any) -> str:
        """The id of a new box that is ready."""
        made = await self("CreatePod", stub_id=await self.stub(**fields))
        assert made.ok, made.error_msg
        connected = await self("SandboxConnect", container_id=made.container_id)
        assert connected.ok, connected.error_msg
        return made.container_id

    async def exec(self, box: str, command: str, *, wait: bool = True, **fields: Any) -> Any:
        return await self("SandboxExec", container_id=box, command=command, wait=wait, **fields)

    async def ended(self, box: str, pid: int) -> int:
        """The exit code of a command, once it has one; its output is still to be asked for."""
        while (status := await self("SandboxStatus", container_id=box, pid=pid)).exit_code < 0:
            assert status.ok, status.error_msg
        return status.exit_code
