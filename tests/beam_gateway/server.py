"""A Beam gateway for tests: a real gRPC server on loopback that speaks the installed SDK's messages, and whose boxes
are local sandboxes. What it does follows the server's source as of August 2026."""

from __future__ import annotations

import asyncio
import secrets
import time
import uuid
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, Self

import grpc
import grpc.aio
from beta9.clients import gateway, image, pod, volume

from codeenv.sandbox import make_provider
from codeenv.sandbox.api import SandboxProvider, SandboxSpec
from codeenv.sandbox.beam.messages import message_class

from .container import STOPPED_BY_SCHEDULER, Container
from .faults import Fault, Faults, suffer
from .images import Store
from .pods import Pods
from .processes import Gone, Refused
from .profiles import Conduct
from .workspace import Images, Volumes, Workspace

OPEN_TO_ALL = ("Authorize",)
Context = grpc.aio.ServicerContext[Any, Any]


class Gateway:
    """`async with Gateway(conduct=Conduct(quota=4)) as gateway`: served on the running event loop until the block ends,
    and its boxes with it. `gateway.conduct`, `gateway.faults` and `gateway.token` may be changed meanwhile."""

    host = "127.0.0.1"

    def __init__(
        self,
        *,
        provider: SandboxProvider | None = None,
        spec: SandboxSpec | None = None,
        conduct: Conduct | None = None,
        port: int = 0,
        token: str | None = None,
        workspace_secrets: dict[str, str] | None = None,
        connection_age: float | None = None,
    ) -> None:
        """`provider` makes the boxes, by `spec` but for memory and life. `port` 0: any. `workspace_secrets` by name.
        `connection_age` in seconds: a connection as old as that is told to go away (GOAWAY)."""
        self.provider = provider or make_provider("bubblewrap")
        self.spec = spec or SandboxSpec()
        self.conduct = conduct or Conduct()
        self.port = port
        self._connection_age = connection_age
        self.token = token or secrets.token_urlsafe(24)
        self.workspace_id = str(uuid.uuid4())
        self.faults = Faults()
        self.calls: Counter[str] = Counter()
        """How often each RPC was called, those that failed included."""
        self.store = Store(workspace_secrets or {})
        self.containers: dict[str, Container] = {}
        """All that there are, and those that were, for as long as their exit codes are kept."""
        self._tasks: set[asyncio.Task[Any]] = set()
        self._starts: tuple[int, asyncio.Semaphore] | None = None
        self._server: grpc.aio.Server | None = None

    async def __aenter__(self) -> Self:
        self.do(self._watch())
        await self._serve()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()
        await asyncio.gather(*(container.die(STOPPED_BY_SCHEDULER) for container in self.containers.values()))
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    # --- the server --------------------------------------------------------------------------------------------------

    async def _serve(self) -> None:
        options: list[tuple[str, int]] = [
            ("grpc.max_receive_message_length", self.conduct.message),
            ("grpc.max_send_message_length", self.conduct.message),
            ("grpc.so_reuseport", 0),
        ]
        if self._connection_age is not None:
            options.append(("grpc.max_connection_age_ms", int(self._connection_age * 1000)))
        self._server = grpc.aio.server(options=options)
        self._server.add_generic_rpc_handlers(
            (
                self._service("gateway.GatewayService", Workspace(self), gateway),
                self._service("image.ImageService", Images(self), image),
                self._service("pod.PodService", Pods(self), pod),
                self._service("volume.VolumeService", Volumes(self), volume),
            )
        )
        self.port = self._server.add_insecure_port(f"{self.host}:{self.port}")
        await self._server.start()

    async def stop(self, grace: float | None = None) -> None:
        """Serve no more; the boxes live on. `grace`: what is being answered may take this long, in seconds, while its
        callers are told to go away; None: connections are cut."""
        if self._server is not None:
            await self._server.stop(grace)
            self._server = None

    async def restart(self, *, grace: float | None = None, down: float = 0.0) -> None:
        """Stop, and `down` seconds later serve again on the same port, with the same boxes."""
        await self.stop(grace)
        await asyncio.sleep(down)
        await self._serve()

    def revoke(self) -> str:
        """Make the token invalid; answers the new one."""
        self.token = secrets.token_urlsafe(24)
        return self.token

    def _service(self, name: str, servicer: object, messages: Any) -> grpc.GenericRpcHandler:
        handlers: dict[str, grpc.RpcMethodHandler[Any, Any]] = {}
        for rpc in (name for name in dir(servicer) if not name.startswith("_")):
            stem = rpc.replace("TTL", "Ttl").removesuffix("Stream")
            stem = f"Pod{stem}" if stem.startswith("Sandbox") else stem
            request, response = (message_class(getattr(messages, stem + end)) for end in ("Request", "Response"))
            method, how = getattr(servicer, rpc), (request.FromString, response.SerializeToString)
            if rpc == "BuildImage":
                handlers[rpc] = grpc.unary_stream_rpc_method_handler(self._streaming(rpc, method, response), *how)
            elif rpc == "PutObjectStream":
                handlers[rpc] = grpc.stream_unary_rpc_method_handler(self._answering(rpc, method, response), *how)
            else:
                handlers[rpc] = grpc.unary_unary_rpc_method_handler(self._answering(rpc, method, response), *how)
        return grpc.method_handlers_generic_handler(name, handlers)

    def _answering(self, rpc: str, method: Callable[..., Any], answer: Any) -> Callable[..., Any]:
        async def late(request: Any, seconds: float) -> Any:
            await asyncio.sleep(seconds)
            return await method(request, answer)

        def effect(request: Any, seconds: float) -> asyncio.Task[Any]:
            return self.do(late(request, seconds) if seconds else method(request, answer))

        async def call(request: Any, context: Context) -> Any:
            if self.conduct.way:
                await asyncio.sleep(self.conduct.way)
            if not await self._admits(rpc, context):
                return answer(ok=False, error_msg="Invalid token")
            if fault := self.faults.of(rpc, request):
                return await suffer(fault, request, effect, answer, context, self.kill)
            return await method(request, answer)

        return call

    def _streaming(self, rpc: str, method: Callable[..., Any], answer: Any) -> Callable[..., Any]:
        def nothing(*_: Any) -> asyncio.Task[Any]:
            return self.do(asyncio.sleep(0))

        async def call(request: Any, context: Context) -> AsyncIterator[Any]:
            await self._admits(rpc, context)
            fault: Fault | None = self.faults.of(rpc, request)
            if fault is None or not fault.replaces:
                async for each in method(request, answer):
                    yield each
            if fault is not None:
                last = await suffer(fault, request, nothing, answer, context, self.kill)
                if last is not None:
                    yield last

        return call

    async def _admits(self, rpc: str, context: Context) -> bool:
        self.calls[rpc] += 1
        for name, value in context.invocation_metadata() or ():
            if name == "authorization":
                if value.removeprefix("Bearer ") == self.token:
                    return True
                break
        if rpc not in OPEN_TO_ALL:
            await context.abort(grpc.StatusCode.UNAUTHENTICATED, "invalid or missing token")
        return False

    # --- the boxes ---------------------------------------------------------------------------------------------------

    def do(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Work that goes on whoever leaves, until the gateway ends."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._is_done)
        return task

    def _is_done(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        # Whoever asked may have left, and not hear that the box is no more, or that it says no.
        if error is not None and not isinstance(error, (Gone, Refused)):
            task.get_loop().call_exception_handler({"message": "the gateway failed", "exception": error})

    def add(self, container: Container) -> Container:
        self.containers[container.id] = container
        return container

    def active(self) -> list[Container]:
        """The boxes that are not gone."""
        return [container for container in self.containers.values() if container.status != "GONE"]

    async def kill(self, container_id: str, exit_code: int) -> None:
        """End a box as if it had ended like that; see the codes in `container`."""
        if container_id in self.containers:
            await self.containers[container_id].die(exit_code)

    @asynccontextmanager
    async def starting(self) -> AsyncGenerator[None]:
        """One of the boxes that may start at once."""
        limit = self.conduct.starting_at_once
        if limit is None:
            yield
            return
        if self._starts is None or self._starts[0] != limit:
            self._starts = limit, asyncio.Semaphore(limit)
        async with self._starts[1]:
            yield

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(self.conduct.ttl_check)
            for container in list(self.containers.values()):
                if container.expired:
                    self.do(container.die(STOPPED_BY_SCHEDULER))
                elif container.status == "GONE" and time.time() - container.ended_at > self.conduct.exit_codes_kept:
                    del self.containers[container.id]
