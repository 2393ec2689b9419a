"""Boxes on Beam, managed or self-hosted. Never picked by `auto`: nobody is billed by surprise."""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Literal

import anyio
import anyio.to_thread
from anyio.lowlevel import RunVar
from pydantic import ConfigDict, validate_call

from codeenv.sandbox.api import (
    Capabilities,
    Probe,
    Sandbox,
    SandboxError,
    SandboxSpec,
    UnsupportedSpec,
    opened,
)
from codeenv.sandbox.beam import image_cache
from codeenv.sandbox.beam.census import Census
from codeenv.sandbox.beam.container import Container
from codeenv.sandbox.beam.fleet import Fleet
from codeenv.sandbox.beam.sandbox import BeamSandbox
from codeenv.sandbox.beam.sdk import Account, Blueprint, find_account, make_stub
from codeenv.sandbox.beam.uninterrupted import uninterrupted

logger = logging.getLogger(__name__)

OVERHEAD_MB = 256
"""Memory of a box beside what its commands may have: our agent, the system, files in memory."""


class BeamProvider:
    """Implements `codeenv.sandbox.api.SandboxProvider`.

    :param host, port, token: the gateway and whose boxes they are; by default what beam-client uses.
    :param name: the app that the boxes are filed under.
    :param dockerfile: path of a Dockerfile, instead of a spec's image; :param commands: run while an image is built.
    :param allow: hosts and networks that boxes without `network` may reach all the same.
    :param volumes: mount path -> volume name; :param secrets: names of workspace secrets that boxes get.
    :param pool: a private pool by name.
    :param create_at_once: boxes that are made at a time.
    :param lease_seconds: a box outlives us by this at most.
    :param token_in_box: what to do about a box in which commands could read the account's token.
    """

    name = "beam"

    @validate_call(config=ConfigDict(hide_input_in_errors=True))
    def __init__(
        self,
        *,
        host: str | None = None,
        port: int | None = None,
        token: str | None = None,
        name: str = "codeenv",
        dockerfile: str | None = None,
        commands: Sequence[str] = (),
        allow: Sequence[str] = (),
        volumes: dict[str, str] | None = None,
        secrets: Sequence[str] = (),
        pool: str | None = None,
        create_at_once: int = 24,
        lease_seconds: float = 300.0,
        token_in_box: Literal["refuse", "warn", "allow"] = "refuse",
    ) -> None:
        if create_at_once < 1 or lease_seconds < 30:
            raise ValueError("create_at_once must be 1 or more, and lease_seconds 30 or more")
        self._given = (host, port, token)
        self._app = name
        self._dockerfile, self._commands = dockerfile, tuple(commands)
        self._allow, self._pool = tuple(allow), pool
        self._volumes = tuple((volume, path) for path, volume in (volumes or {}).items())
        self._secrets = tuple(secrets)
        self._at_once = create_at_once
        self._lease_seconds = lease_seconds
        self._token_in_box = token_in_box
        self._account: Account | None = None
        self._stubs: dict[Blueprint, str] = {}
        self._making = threading.Lock()
        self._census = Census()
        self._fleets: RunVar[Fleet] = RunVar(f"codeenv_beam_fleet_{id(self)}")

    def __repr__(self) -> str:
        return f"BeamProvider({self._account or 'not yet connected'})"

    @property
    def account(self) -> Account:
        """Blocks the first time. :raises NoAccount: there is none."""
        if self._account is None:
            self._account = find_account(*self._given)
        return self._account

    def probe(self) -> Probe:
        """Whether there is an account: asking the gateway would take an event loop, and a box money."""
        try:
            account = self.account
        except SandboxError as error:
            return Probe(self.name, False, str(error))
        return Probe(self.name, True, "", self.capabilities, {"gateway": str(account)})

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(
            isolation="gvisor",
            memory="soft",
            processes="soft",
            disk="soft",
            cpus="hard",
            network_off=True,
            images=True,
            gpu=True,
            notes=("a box that fills its memory as a whole may be ended as a whole",),
        )

    def check(self, spec: SandboxSpec) -> None:
        """Have Beam prepare the image and the stub. Blocks, for minutes while an image is built."""
        if spec.image and spec.image.startswith("id:") and spec.packages:
            missing = image_cache.lacking(spec.image, spec.packages)
            if missing is None:
                logger.warning("sandbox: image %s must have %s", spec.image, ", ".join(spec.packages))
            elif missing:
                text = f"image {spec.image} lacks {', '.join(missing)}: give `codeenv image build` --requirement"
                raise UnsupportedSpec(text)
        self._stub(spec)

    def _blueprint(self, spec: SandboxSpec) -> Blueprint:
        if spec.python is not None and not re.fullmatch(r"3\.\d+", spec.python):
            raise UnsupportedSpec(f"sandbox 'beam' takes a Python by its version, as 3.12, not {spec.python!r}")
        return Blueprint(
            image=spec.image,
            dockerfile=self._dockerfile,
            python=spec.python,
            packages=spec.packages,
            commands=self._commands,
            cpus=spec.cpus or 1.0,
            memory_mb=max(512, spec.memory_mb + OVERHEAD_MB),
            gpu=spec.gpu,
            ttl=round(self._lease_seconds),
            network=spec.network,
            allow=self._allow,
            volumes=self._volumes,
            secrets=self._secrets,
            pool=self._pool,
            name=self._app,
        )

    def _stub(self, spec: SandboxSpec) -> str:
        blueprint = self._blueprint(spec)
        with self._making:
            if blueprint not in self._stubs:
                self._stubs[blueprint] = make_stub(self.account, blueprint)
            return self._stubs[blueprint]

    def create(self, spec: SandboxSpec) -> AbstractAsyncContextManager[Sandbox]:
        return opened(self, spec)

    async def open(self, spec: SandboxSpec) -> Sandbox:
        stub = self._stubs.get(self._blueprint(spec)) or await anyio.to_thread.run_sync(
            self._stub, spec, abandon_on_cancel=True
        )
        return await self._open(spec, stub)

    @asynccontextmanager
    async def bare(self, spec: SandboxSpec) -> AsyncGenerator[tuple[Container, str]]:
        """A container without our agent, of a stub of its own, and the stub's id: for what is made into an image. As
        `create`, it is gone after the block. :raises UnsupportedSpec: it would hold what no image may."""
        if self._secrets:
            raise UnsupportedSpec("secrets would be kept in the image: leave the sandbox setting 'secrets' out")
        stub = await anyio.to_thread.run_sync(make_stub, self.account, self._blueprint(spec), abandon_on_cancel=True)
        box = await self._open(spec, stub, bare=True)
        try:
            yield box.container, stub
        finally:
            await box.close()

    async def _open(self, spec: SandboxSpec, stub: str, *, bare: bool = False) -> BeamSandbox:
        started = time.monotonic()
        fleet = self._fleets.get(None)
        if fleet is None:
            fleet = Fleet(self.account, self._census, self._at_once, self._lease_seconds)
            self._fleets.set(fleet)
        async with fleet.limiter:
            gateway = await fleet.enter()
            try:
                container = await fleet.make(gateway, stub, started)
                box = BeamSandbox(spec, container, fleet.end)
            except BaseException:
                await uninterrupted(fleet.leave())
                raise
            try:
                fleet.leases.add(box)
                if not bare:
                    facts = await box.start()
                    self.look_at(facts.exposes_token)
            except BaseException:
                await box.close()
                raise
            return box

    def look_at(self, exposes_token: bool) -> None:
        """:raises SandboxError: such a box is not to be used."""
        if not exposes_token or self._token_in_box == "allow":
            return
        text = (
            "commands in this box can read the account's Beam token, as older servers put it into every sandbox. "
            "Use an account of its own for untrusted code"
        )
        if self._token_in_box == "refuse":
            raise SandboxError(f"{text}, and set token_in_box='warn' to go on", stage="create")
        logger.warning("sandbox: %s", text)
