"""One box of the gateway: a local sandbox with a process manager in it, and what the server knows of it."""

from __future__ import annotations

import asyncio
import posixpath
import time
import uuid
from contextlib import suppress
from typing import TYPE_CHECKING, Literal

from codeenv.sandbox.api import MiB, Sandbox, SandboxError, SandboxSpec

from .images import Image, Stub
from .processes import COMMAND, Gone, Manager, Refused, Run

if TYPE_CHECKING:
    from .server import Gateway

STOPPED_BY_USER = 560
STOPPED_BY_SCHEDULER = 558  # whose time was up
OUT_OF_MEMORY = 137
NO_IMAGE = 555
FAILED = 1
LOST = -1  # nothing is known of how it ended
SANDBOX_TTL = 24 * 3600.0  # the gateway's own clock decides; this one only if nothing else does
CONTENT = ("workspace", "/tmp")  # what can be written to


class Container:
    """Made by CreatePod. Its life is one task; what ends it is `die`."""

    def __init__(self, gateway: Gateway, stub: Stub, image_id: str) -> None:
        self.id = f"sandbox-{stub.id}-{uuid.uuid4().hex[:8]}"
        self.stub, self.image_id = stub, image_id
        self.scheduled_at, self.started_at = time.time(), 0.0
        self.status: Literal["PENDING", "RUNNING", "STOPPING", "GONE"] = "PENDING"
        self.exit_code: int | None = None
        self.ended_at = 0.0
        self.runs: dict[int, Run] = {}
        self.ports: list[int] = []
        self.env: dict[str, str] = {}
        self.sandbox: Sandbox | None = None
        """The local sandbox that it is, from when it runs."""
        self.running, self.ready = asyncio.Event(), asyncio.Event()
        self._gateway = gateway
        self._manager: Manager | None = None
        self._deadline: float | None = None
        self.set_ttl(stub.keep_warm)
        self._life = asyncio.create_task(self._live())

    # --- its life ----------------------------------------------------------------------------------------------------

    async def _live(self) -> None:
        conduct = self._gateway.conduct
        image = self._gateway.store.images.get(self.image_id)
        if image is None and conduct.images_exist:
            image = Image(self.image_id)
        await asyncio.sleep(conduct.scheduling)
        try:
            async with self._gateway.starting():
                if image is None or conduct.start_fails:
                    self._end(FAILED if image else NO_IMAGE)
                    return
                await self._start(image)
                await asyncio.sleep(conduct.readiness)
            while True:  # a command may kill every process of the box but its first, which is not ours to be
                await self._manage()
        except SandboxError:
            self._end(LOST)
        finally:
            if self.sandbox is not None:
                await self.sandbox.close()
            self._end(self.exit_code if self.exit_code is not None else LOST)

    async def _start(self, image: Image) -> None:
        """:raises SandboxError: there is no box to be had."""
        try:
            self.sandbox = box = await self._gateway.provider.open(self._spec(image.packages))
        except SandboxError:
            self._end(FAILED)
            raise
        self._packages = image.packages
        self.env = {**image.env, **self.stub.env, **self._variables()}
        for path, archive in image.content.items():
            await box.import_(archive, box.workdir if path == "workspace" else path)
        self.status, self.started_at = "RUNNING", time.time()
        self.running.set()

    async def _manage(self) -> None:
        box = self.sandbox
        assert box is not None
        async with box.open_process(COMMAND, cwd=box.workdir, env=self.env) as process:
            manager = self._manager = Manager(process, self.runs, self._memory_mb * MiB)
            serving = asyncio.create_task(manager.serve())
            try:
                with suppress(Gone):
                    await manager.ready
                    self.ready.set()
                await serving
            finally:
                self.ready.clear()
                serving.cancel()
        if manager.overflowed:  # the buffers are in the box's memory
            self._end(OUT_OF_MEMORY)
            raise SandboxError("out of memory", stage="exec")
        if not manager.ready.done() or manager.ready.exception():
            raise SandboxError("the process manager did not start", stage="create")

    @property
    def _memory_mb(self) -> int:
        return max(self.stub.request.memory, 64)

    def _spec(self, packages: tuple[str, ...]) -> SandboxSpec:
        wanted = {"memory_mb": self._memory_mb, "ttl_seconds": SANDBOX_TTL, "packages": packages}
        return self._gateway.spec.model_copy(update=wanted)

    def _variables(self) -> dict[str, str]:
        told = {"STUB_ID": self.stub.id, "STUB_TYPE": "sandbox", "KEEP_WARM_SECONDS": str(self.stub.keep_warm)}
        return {**told, "BETA9_TOKEN": self._gateway.token} if self._gateway.conduct.profile.token_in_box else told

    def _end(self, exit_code: int) -> None:
        if self.status != "GONE":
            self._leave("GONE")
            self.exit_code, self.ended_at = exit_code, time.time()

    def _leave(self, status: Literal["STOPPING", "GONE"]) -> None:
        self.status = status
        self.running.clear()
        self.ready.clear()

    async def die(self, exit_code: int) -> None:
        """End at once, with all its processes; `LOST` leaves no exit code."""
        if self.exit_code is None:
            self.exit_code = exit_code
        if self.status != "GONE":
            self._leave("STOPPING")
        self._life.cancel()
        await asyncio.wait([self._life])
        self._end(self.exit_code)

    async def stop(self) -> None:
        """Be told to stop, and be gone a little later."""
        if self.status == "GONE":
            return
        self._leave("STOPPING")
        self.exit_code = STOPPED_BY_USER
        await asyncio.sleep(self._gateway.conduct.stopping)
        await self.die(STOPPED_BY_USER)

    def set_ttl(self, seconds: int) -> None:
        self._deadline = None if seconds < 0 else time.monotonic() + seconds

    @property
    def expired(self) -> bool:
        """Its time is up: a box that has not started yet is let be."""
        return self._deadline is not None and self.status == "RUNNING" and time.monotonic() >= self._deadline

    # --- what is done in it ------------------------------------------------------------------------------------------

    @property
    def manager(self) -> Manager:
        """:raises Refused: it is not ready."""
        if self.status != "RUNNING":
            raise Refused("Container not found")
        if not self.ready.is_set() or self._manager is None:
            raise Refused("Sandbox process manager is not ready")
        return self._manager

    def run_of(self, pid: int) -> Run:
        """:raises Refused: there is none."""
        if pid not in self.runs:
            raise Refused("process not found")
        return self.runs[pid]

    def path(self, path: str) -> str:
        """A path as the server takes it: relative ones are below the box's own directory."""
        assert self.sandbox is not None
        return posixpath.normpath(posixpath.join(self.sandbox.workdir, path))

    async def archive(self, stub_id: str) -> Image:
        """An image of what is in it now, named by a stub, its variables included."""
        if self.status != "RUNNING" or self.sandbox is None:
            raise Refused("Container not found")
        content = {path: await self.sandbox.export("." if path == "workspace" else path) for path in CONTENT}
        return self._gateway.store.snapshot(stub_id, content, dict(self.env), self._packages)

    async def wait_ready(self) -> None:
        """Until its process manager answers. :raises Refused: it is gone."""
        while not self.ready.is_set():
            if self.status in ("STOPPING", "GONE"):
                raise Refused("Container not found")
            waits = [asyncio.ensure_future(self.ready.wait()), asyncio.ensure_future(asyncio.wait([self._life]))]
            try:
                await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for wait in waits:
                    wait.cancel()
