"""Which of an account's containers are ours, and which were made without our being told."""

from __future__ import annotations

import logging
from typing import Any

from codeenv.sandbox.beam import gateway as channel
from codeenv.sandbox.beam.gateway import Gateway, Refused, Unreachable

logger = logging.getLogger(__name__)
LIST_SECONDS = 10.0


class Census:
    """A provider's creations, on all its event loops: they share its stubs, which nobody else uses."""

    def __init__(self) -> None:
        self.known: set[str] = set()
        """Ids of containers that somebody has been given."""
        self._creates: dict[str, set[object]] = {}  # stub -> creates whose reply may still come
        self._suspects: dict[str, set[object]] = {}  # container -> those creates of which it may be the effect
        self._unlisted: set[str] = set()  # stubs of creates without a reply, not looked for yet
        self._in_doubt: set[str] = set()  # stubs of creates without a reply, whose effect may come late

    @property
    def doubtful(self) -> frozenset[str]:
        """Stubs of creates without a reply, whose effect may come late."""
        return frozenset(self._in_doubt)

    async def create(self, gateway: Gateway, stub: str) -> Any:
        """Ask for a container, once, and stop those that were made without a reply. Not to be interrupted.

        :raises Unreachable: there was no reply. :raises Refused: there will be none.
        """
        create = object()
        creates = self._creates.setdefault(stub, set())
        creates.add(create)
        try:
            reply = await gateway.call("CreatePod", stub_id=stub, seconds=channel.CREATE_RPC_SECONDS, patience=0.0)
            if reply.container_id:
                self.known.add(str(reply.container_id))
            elif reply.ok:
                self._doubt(stub)
            return reply
        except Refused:
            raise
        except BaseException:
            self._doubt(stub)
            raise
        finally:
            creates.discard(create)
            for others in self._suspects.values():
                others.discard(create)
            if stub in self._unlisted:
                await self._look_for(gateway, [stub])
            if self._suspects:
                await self._stop_strangers(gateway)

    async def undo(self, gateway: Gateway, reply: Any) -> None:
        """Whoever asked for a container is not there any more."""
        if reply.container_id:
            self.known.discard(str(reply.container_id))
            await self._stop(gateway, str(reply.container_id))

    async def settle(self, gateway: Gateway) -> None:
        """Look once more for what creates have made without a reply."""
        if self._in_doubt:
            await self._look_for(gateway, list(self._in_doubt))
            await self._stop_strangers(gateway)
            self._in_doubt -= {stub for stub in self._in_doubt if not self._creates.get(stub)} - self._unlisted

    def _doubt(self, stub: str) -> None:
        self._in_doubt.add(stub)
        self._unlisted.add(stub)

    async def _look_for(self, gateway: Gateway, stubs: list[str]) -> None:
        try:
            listed = await gateway.call("ListContainers", patience=LIST_SECONDS)
        except (Refused, Unreachable) as error:
            logger.warning("sandbox: boxes may be left until their lease is over: %s", error)
            return
        self._unlisted -= set(stubs)
        for container in listed.containers:
            if container.stub_id in stubs and container.container_id not in self.known:
                # It may be the effect of another create, whose reply is on its way.
                others = set(self._creates.get(container.stub_id, ()))
                self._suspects.setdefault(str(container.container_id), others)

    async def _stop_strangers(self, gateway: Gateway) -> None:
        for container, creates in list(self._suspects.items()):
            if creates or self._suspects.pop(container, None) is None or container in self.known:
                continue
            logger.info("sandbox: stopping %s, which was made without a reply", container)
            await self._stop(gateway, container)

    async def _stop(self, gateway: Gateway, container: str) -> None:
        try:
            await gateway.call("StopContainer", container_id=container)
        except (Refused, Unreachable) as error:
            logger.warning("sandbox %s: it may live on until its lease is over: %s", container, error)
