"""A box on Beam: a container with our agent in it."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import anyio

from codeenv.sandbox.agent import FILE_SECONDS, AgentSandbox
from codeenv.sandbox.api import OUTPUT_LIMIT, MiB, Process, SandboxError, SandboxLost, SandboxSpec
from codeenv.sandbox.beam import agent_program
from codeenv.sandbox.beam.container import Container, NotRun
from codeenv.sandbox.beam.line import BeamLine
from codeenv.sandbox.beam.process import BeamProcess, started
from codeenv.sandbox.beam.uninterrupted import uninterrupted
from codeenv.sandbox.environment import HOME, box_environment

logger = logging.getLogger(__name__)

READY_SECONDS = 120.0
"""How long a container may take from its creation to its agent's first word, its image pulled meanwhile."""
SCRATCH = "/tmp"


class BeamSandbox(AgentSandbox):
    """Implements `codeenv.sandbox.api.Sandbox`; see there for the contract."""

    answer_grace = 30.0

    def __init__(
        self, spec: SandboxSpec, container: Container, destroy: Callable[[BeamSandbox], Coroutine[Any, Any, None]]
    ) -> None:
        super().__init__(spec, workdir=spec.workdir, scratch=SCRATCH, env={})
        self.container = container
        self._folder = f"{SCRATCH}/.codeenv-{self.id}"
        self._beam = self._line = BeamLine(container, self._folder)
        self._give_back = destroy
        self.facts: agent_program.Facts | None = None
        """Of the box, once it has started."""

    @property
    def seconds(self) -> float:
        """Since its creation: what is billed."""
        return time.monotonic() - self._created

    @property
    def seconds_left(self) -> float:
        """Until its time to live is over."""
        return self.spec.ttl_seconds - self.seconds

    async def start(self) -> agent_program.Facts:
        """Start the agent and wait until it answers. :raises SandboxError: it does not."""
        command = agent_program.command(
            self._folder,
            memory=self.spec.memory_mb * MiB,
            disk=self.spec.disk_mb * MiB,
            processes=self.spec.processes,
            milliseconds=round(1000 * self.spec.ttl_seconds),
            workdir=self.workdir,
            scratch=SCRATCH,
            home=HOME,
        )
        try:
            with anyio.fail_after(READY_SECONDS):
                said = await self._first_word(command)
            facts = agent_program.Facts.read(said)
        except (NotRun, ValueError) as error:
            text = f"the sandbox did not start: our agent needs python3 (3.9 or newer) and sh in the image: {error}"
            raise SandboxError(text, stage="create", seconds=self.seconds) from error
        except (SandboxLost, TimeoutError) as error:
            text = str(error) or f"not ready within {READY_SECONDS:g} s"
            raise SandboxError(f"the sandbox did not start: {text}", stage="create", seconds=self.seconds) from error
        self._env = {**box_environment("", self.spec.env), "PATH": facts.path, **self.spec.env}
        self.facts = facts
        return facts

    async def _first_word(self, command: Sequence[str]) -> str:
        while True:
            said = await self.container.run(command, env=agent_program.environment(), patience=READY_SECONDS)
            if "FileExistsError" in said or not said.endswith("\n"):
                # The command was run twice, or its output was lost: an earlier one has what we want.
                said = await self.container.run(["cat", f"{self._folder}/facts"])
            if said.endswith("\n"):
                return said
            await anyio.sleep(0.2)

    @asynccontextmanager
    async def open_process(
        self, command: str | Sequence[str], *, cwd: str | None = None, env: Mapping[str, str] | None = None
    ) -> AsyncGenerator[Process]:
        directory = self._path(cwd or ".")
        fields = [directory, b"", str(OUTPUT_LIMIT).encode(), b"", b"0", b"0", b"", *self._command(command, env)]
        async with AsyncExitStack() as stack:
            async with self._calling("open_process"):
                running = started(self._beam, fields, os.fsdecode(directory))
                number = await stack.enter_async_context(running)
            process = BeamProcess(self._beam, number, self._calling, self._ended)
            stack.callback(process.forget)
            yield process

    @asynccontextmanager
    async def _calling(self, stage: str, seconds: float | None = FILE_SECONDS) -> AsyncGenerator[None]:
        # At the end of its time the agent leaves, and what waits for it would wait for ever.
        left = max(0.0, self.seconds_left) + 1.0
        async with super()._calling(stage, left if seconds is None else min(left, seconds)):
            if self.seconds_left <= 0:
                raise SandboxLost("its time is over", stage=stage)
            yield

    def _hang_up(self) -> None:
        self.container.hang_up()

    def _cause(self, error: SandboxLost) -> str:
        return str(error)

    async def _destroy(self) -> None:
        try:
            await uninterrupted(self._give_back(self))
        finally:
            self._closed = True
