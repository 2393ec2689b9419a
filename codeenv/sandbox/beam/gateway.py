"""The gateway, natively: one gRPC channel for each account and event loop, the SDK's messages in protobuf's own
classes. A call that waits holds no thread."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import anyio
import anyio.lowlevel
import grpc
from anyio.lowlevel import RunVar

from codeenv.sandbox.api import SandboxError
from codeenv.sandbox.beam.sdk import Account, message_types

MESSAGE_LIMIT = 64 * 1024 * 1024
PATIENCE = 60.0
"""Seconds for which an unreachable gateway is tried again: a new version of it may be on its way."""
RPC_SECONDS = 20.0
CREATE_RPC_SECONDS = 30.0
TRANSIENT = {
    grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.ABORTED,
    grpc.StatusCode.CANCELLED,  # by the gateway, which is shutting down
}  # fmt: skip

SERVICES: Mapping[str, tuple[str, ...]] = {
    "pod": (
        "CreatePod", "SandboxExec", "SandboxStatus", "SandboxStdout", "SandboxUploadFile", "SandboxUpdateTTL",
        "SandboxCreateImageFromFilesystem",
    ),
    "gateway": ("StopContainer", "ListContainers", "Authorize"),
}  # fmt: skip
METHODS = {method: service for service, methods in SERVICES.items() for method in methods}


class Unreachable(Exception):
    """The gateway did not answer: whether it did what was asked is unknown."""


class Refused(SandboxError):
    """The gateway answered that it will not: a bad token, a bad request. Trying again would not help."""


class Gateway:
    """An open channel; see `gateway_of`."""

    def __init__(self, account: Account) -> None:
        self.account = account
        self.users = 0
        target = f"{account.host}:{account.port}"
        options = [
            ("grpc.max_receive_message_length", MESSAGE_LIMIT),
            ("grpc.max_send_message_length", MESSAGE_LIMIT),
            ("grpc.keepalive_time_ms", 30_000),
            ("grpc.keepalive_timeout_ms", 10_000),
            ("grpc.max_reconnect_backoff_ms", 2_000),
            ("grpc.initial_reconnect_backoff_ms", 100),
            ("grpc.min_reconnect_backoff_ms", 100),
        ]
        secure = account.port == 443
        self._channel: Any = (
            grpc.aio.secure_channel(target, grpc.ssl_channel_credentials(), options=options)
            if secure
            else grpc.aio.insecure_channel(target, options=options)
        )
        self._metadata = (("authorization", f"Bearer {account.token}"),)
        self._methods: dict[str, tuple[Callable[..., Any], Any]] = {}

    async def close(self) -> None:
        await self._channel.close()

    async def call(
        self, method: str, *, seconds: float | None = None, patience: float | None = None, **fields: Any
    ) -> Any:
        """One RPC of `seconds` at most (RPC_SECONDS), tried again for `patience` seconds (PATIENCE; 0: once) while the
        gateway cannot be reached; so only for what may happen twice, unless `patience` is 0.

        :raises Unreachable: there was no answer. :raises Refused: there was, and it is final.
        """
        if method not in self._methods:
            self._methods[method] = self._bind(method)
        send, request = self._methods[method]
        message = request(**fields)
        seconds = RPC_SECONDS if seconds is None else seconds
        end = time.monotonic() + (PATIENCE if patience is None else patience)
        delay = 0.05
        while True:
            left = seconds if patience == 0 else min(seconds, max(1.0, end - time.monotonic()))
            try:
                return await send(message, timeout=left, metadata=self._metadata)
            except asyncio.CancelledError:
                # gRPC raises one of its own, which no cancel scope would take for its: this raises the scope's.
                await anyio.lowlevel.checkpoint_if_cancelled()
                raise
            except grpc.aio.AioRpcError as error:
                code, text = error.code(), str(error.details() or "")
                if code in (grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.PERMISSION_DENIED):
                    hint = "run `beam login` or set BEAM_TOKEN"
                    raise Refused(f"{self.account} does not accept the token ({text}): {hint}", stage=method) from None
                if not (code in TRANSIENT or "RST_STREAM" in text or text == "Stream removed"):
                    raise Refused(f"{self.account} refuses {method}: {code.name} {text}", stage=method) from None
                if time.monotonic() + delay > end:
                    raise Unreachable(f"{self.account} gave no answer to {method}: {code.name} {text}") from None
            await anyio.sleep(delay * random.uniform(0.5, 1.5))
            delay = min(2.0, delay * 2)

    def _bind(self, method: str) -> tuple[Callable[..., Any], Any]:
        from codeenv.sandbox.beam.messages import message_class  # betterproto takes a while

        service = METHODS[method]
        types = message_types(service)
        name = f"Pod{method}" if method.startswith("Sandbox") else method
        known = {known.lower(): known for known in types}  # the SDK writes `Ttl` where the service has `TTL`
        request = message_class(types[known[f"{name}Request".lower()]])
        response = message_class(types[known[f"{name}Response".lower()]])
        send = self._channel.unary_unary(
            f"/{service}.{service.title()}Service/{method}",
            request_serializer=request.SerializeToString,
            response_deserializer=response.FromString,
        )
        return send, request


_open: RunVar[dict[Account, Gateway]] = RunVar("codeenv_beam_gateways")


@asynccontextmanager
async def gateway_of(account: Account) -> AsyncGenerator[Gateway]:
    """The channel of this event loop to the account's gateway, shared by all that use it at a time."""
    shared = _open.get(None)
    if shared is None:
        shared = dict[Account, Gateway]()
        _open.set(shared)
    gateway = shared.get(account)
    if gateway is None:
        gateway = shared[account] = Gateway(account)
    gateway.users += 1
    try:
        yield gateway
    finally:
        gateway.users -= 1
        if not gateway.users:
            del shared[account]
            with anyio.CancelScope(shield=True):
                await gateway.close()
